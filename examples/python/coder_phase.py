"""An app that has a plan built, session by session, and meanwhile tells everybody who asks how far it is.

    coder_phase.py [PROJECT_DIR [SPEC_DIR]]

Each session runs in a cell of its own: it may crash, hang, or want all memory, and the app goes on serving.
`nc 127.0.0.1 PORT` asks.
"""

import asyncio
import sys
from typing import Any

from agentcell import Limits, run_agent_session_isolated

MESSAGE = "Implement the next subtask of the plan, and set its status to completed."

MAX_SESSIONS = 10

LIMITS = Limits(max_execution_seconds=1800, max_memory_mb=2048)


class Progress:
    """What the session that runs does at the moment."""

    def __init__(self) -> None:
        self.now = "is about to begin"

    def listen(self, event: dict[str, Any]) -> None:
        """Take an event of the session; a callback that awaits does as well."""
        match event:
            case {"type": "tool_use", "name": name}:
                self.now = f"uses {name}"
            case {"type": "text", "text": text}:
                self.now = f"says: {text}"

    async def answer(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Tell it to somebody who has connected."""
        writer.write(f"{self.now}\n".encode())
        writer.close()
        await writer.wait_closed()


async def build(project_dir: str, spec_dir: str | None, progress: Progress) -> int:
    """Run sessions until the plan is done; the exit code."""
    for number in range(1, MAX_SESSIONS + 1):
        status, text, usage = await run_agent_session_isolated(
            project_dir,
            spec_dir,
            agent_type="coder",
            model=None,
            starting_message=MESSAGE,
            session_name=f"build-{number}",
            subtask_id=f"build-{number}",  # what may end better is tried again
            limits=LIMITS,
            on_event=progress.listen,
        )
        print(f"{status}: {text} ({usage['output_tokens']} tokens)", flush=True)
        if status != "continue":
            return 0 if status == "complete" else 1
    return 1


async def main(project_dir: str = ".", spec_dir: str | None = None) -> int:
    """Build, and serve meanwhile; the exit code."""
    progress = Progress()
    async with await asyncio.start_server(progress.answer, "127.0.0.1", 0) as server:
        print(f"ask 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        return await build(project_dir, spec_dir, progress)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(*sys.argv[1:3])))
