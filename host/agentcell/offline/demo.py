"""`python -m agentcell.offline.demo`: one real agent session in a cell, on a scripted model. It spends nothing."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import indent
from typing import Any

import anyio
import psutil
from rich.console import Console
from rich.text import Text

from agentcell.limits import Limits
from agentcell.offline.endpoint import Endpoint, ScriptSource
from agentcell.offline.rehearsal import rehearsal
from agentcell.signals import run_until_signalled
from agentcell.terminal import tool_line
from agentcell_protocol import cell
from agentcell_protocol.exitcodes import ERROR, exit_code
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import SessionResult

SCRIPT = Path(__file__).with_name("demo.yaml")

FILES = {"fruit.txt": "apple\npear\napple\nfig\npear\napple\n"}
"""The scratch project."""

REQUEST = {
    "session_name": "demo",
    "agent_type": "coder",
    "starting_message": "Look around and count what you find.",
}

LIMITS = Limits(max_execution_seconds=120)
"""It takes three seconds; a busy machine may need ten times that."""

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT."""


def main(script: ScriptSource = SCRIPT) -> int:
    """Run the demo; the exit code says whether its session succeeded and left nothing running."""
    console = Console(highlight=False, soft_wrap=True)
    with TemporaryDirectory(prefix="agentcell-demo-") as folder, rehearsal(os.environ, script=script) as model:
        project = Path(folder)
        for name, content in FILES.items():
            (project / name).write_text(content, "utf-8")
        return run_demo(*model, project, console)


def run_demo(endpoint: Endpoint, environment: dict[str, str], project: Path, console: Console) -> int:
    """Run the session and show what ran where, and what came of it; the exit code."""
    show = Show(console)
    console.print("[bold]One real agent session in a cell[/], on a scripted model: no key, no network, no cost.\n")
    show.fact("host", f"pid {os.getpid()}: this program, which also plays the model")
    show.fact("endpoint", f"{endpoint.url}: what the CLI takes for the API")
    show.fact("project", f"{project}: {', '.join(FILES)}")
    request = parse_request({**REQUEST, "project_dir": project})
    result = anyio.run(run_until_signalled, request, LIMITS, environment, show.event)
    clients = {request.headers.get("user-agent", "?").split(" ")[0] for request in endpoint.requests}
    console.print()
    show.fact("asked by", f"{', '.join(sorted(clients)) or 'nobody'}: {len(endpoint.requests)} requests for the model")
    for path in sorted(project.iterdir()):
        if path.name not in FILES:
            show.file(path)
    left = show.left_running()
    show.result(result, left)
    return exit_code(result.error) or (ERROR if left else 0)


class Show:
    """Prints what happens, and remembers which cell it happened in."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._marker: str | None = None
        self._worker = 0
        self._cli: str | None = None

    def fact(self, name: str, value: str) -> None:
        """One line about what runs where."""
        self._console.print(Text(f"  {name:<10}", "cyan") + Text(value, "default"))

    def event(self, event: Mapping[str, Any]) -> None:
        """One line for each event that shows something."""
        match event:
            case {"type": "hello", "pid": pid, "cli": cli}:
                self.fact("cell", f"pid {pid}: a worker process for this session alone")
                self._worker, self._cli = pid, cli
            case {"type": "session_started", "session_id": session_id}:
                self._meet_the_cli()
                self.fact("session", f"{session_id}\n")
            case {"type": "text", "text": text}:
                self._console.print(Text(f"  {text}"))
            case {"type": "tool_use"}:
                self._console.print(Text(f"  • {tool_line(event)}", "magenta"))

    def _meet_the_cli(self) -> None:
        """What the cell executes has its marker in the environment; the worker itself may be a fork, which has not."""
        for process in cell.descendants(self._worker)[:1]:
            with suppress(psutil.Error):
                self._marker = process.environ().get(cell.MARKER)
            self.fact("CLI", f"pid {process.pid}: {self._cli}, marker {self._marker}")

    def file(self, path: Path) -> None:
        """A file that the session made, with its content."""
        self._console.print(Text(f"\n  {path.name}", "cyan"))
        self._console.print(Text(indent(path.read_text("utf-8").rstrip(), " " * 4), "dim"))

    def left_running(self) -> list[psutil.Process]:
        """The processes of the cell that are still there."""
        return cell.descendants() + (cell.marked(self._marker) if self._marker else [])

    def result(self, result: SessionResult, left: list[psutil.Process]) -> None:
        """How it ended."""
        colour = "red" if result.error else "green"
        tokens = f"{result.usage.input_tokens:,} tokens in, {result.usage.output_tokens:,} out"
        self._console.print(Text(f"\n  {result.status}: {result.response}", f"bold {colour}"))
        if result.error is not None and result.error.hint is not None:
            self._console.print(Text(f"  {result.error.hint}", colour))
        self._console.print(f"  {result.num_turns} turns · {tokens} · {result.execution_time:.1f} s · nothing spent")
        running = ", ".join(f"{process.pid}" for process in left)
        self._console.print(f"  left running: {running or 'nothing'}; the scratch project is removed")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
