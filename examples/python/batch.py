"""Many sessions at once, each with a listener of its own that tells what it does and counts its tools.

    batch.py REQUESTS.jsonl [AT_ONCE]

For a program that wants to hear everything itself. `agentcell batch` keeps a journal, tries again what may end better,
and goes on where it was cut.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from agentcell import Host, Limits, RequestError

LIMITS = Limits(max_execution_seconds=600)


class Listener:
    """Hears one session."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tools: Counter[str] = Counter()

    def __call__(self, event: dict[str, Any]) -> None:
        """Tell it, and count the tools."""
        match event:
            case {"type": "tool_use", "name": tool}:
                self.tools[tool] += 1
                self.tell(f"uses {tool}")
            case {"type": "text", "text": text}:
                self.tell(f"says: {text}")
            case {"type": "api_retry", "delay_s": seconds}:
                self.tell(f"waits {seconds} s for the API")

    def tell(self, what: str) -> None:
        """Print it under the session's name."""
        print(f"{self.name} {what}", flush=True)


async def run(host: Host, request: dict[str, Any]) -> bool:
    """Run one request as soon as there is room, and tell how it ended; whether that was well."""
    listener = Listener(request.get("session_name", "?"))
    try:
        result = await host.run(request, limits=LIMITS, on_event=listener)
    except RequestError as mistake:
        listener.tell(f"was refused: {mistake}")
        return False
    used = ", ".join(f"{tool} {times}" for tool, times in listener.tools.items()) or "none"
    outcome = result.status if result.error is None else f"{result.error.category}, {result.error.message}"
    listener.tell(f"ended: {outcome}; tools: {used}; {result.usage.output_tokens} tokens")
    return result.error is None


async def main(requests: list[dict[str, Any]], at_once: int) -> int:
    """Run them all; the exit code."""
    async with Host(at_once) as host, asyncio.TaskGroup() as tasks:
        rows = [tasks.create_task(run(host, request)) for request in requests]
    return 0 if all(row.result() for row in rows) else 1


if __name__ == "__main__":
    path, at_once = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    raise SystemExit(asyncio.run(main(rows, at_once)))
