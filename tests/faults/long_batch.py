"""Runs `agentcell batch` over many rows, and prints what its process took after the first of them and later.

argv: a directory to run in, and how many rows. All is the command's own, from the file of rows to the run directory,
but for the cells: each says what it says at once and without a process. What cells leave in their host is looked at
in `endurance`. As JSON: the exit code, how many rows were run, `early_mb`, the most that there was after that, and
`row_cpu_seconds`, what a row took after the very first.
"""

import json
import sys
import time
from pathlib import Path

import psutil
from anyio.lowlevel import checkpoint

import agentcell.executors.local
from agentcell.cli import main
from agentcell.orders import Order
from agentcell.run import Attempted
from agentcell_protocol.result import SessionResult, Usage

FIRST = 500
"""Until then caches fill and pools grow."""

WARM = 50
"""Until then code is imported and run for the first time."""

AT_ONCE = 16

EVENTS = 5
"""Of each row."""

memory_mb: list[float] = []
"""What this process has as each row ends."""

cpu_seconds: list[float] = []
"""What it has taken as each row ends."""


async def play(order: Order, _resources: object) -> Attempted:
    """In place of an attempt in a cell."""
    assert order.on_event is not None
    for number in range(EVENTS):
        order.on_event({"type": "text", "text": f"{number} of {order.request.session_name}. " * 20})
    await checkpoint()
    memory_mb.append(psutil.Process().memory_info().rss / 1024 / 1024)
    cpu_seconds.append(time.process_time())
    return Attempted(
        SessionResult(
            status="complete",
            response="It is done. " * 50,
            session_name=order.request.session_name,
            id=order.request.identity,
            session_id=order.request.session_id,
            usage=Usage(input_tokens=100, output_tokens=10),
            cost_usd=0.01,
        )
    )


def run(directory: Path, rows: int) -> int:
    """The command's exit code."""
    with (directory / "rows.jsonl").open("w") as file:
        for number in range(rows):
            row = {"session_name": f"row-{number}", "starting_message": f"Do {number}. " * 20}
            file.write(json.dumps({**row, "agent_type": "planner", "project_dir": str(directory)}) + "\n")
    vars(agentcell.executors.local)["attempt"] = play
    sys.argv[1:] = ["batch", str(directory / "rows.jsonl"), "-j", str(AT_ONCE), "--min-free-mb", "0"]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    ended = run(Path(sys.argv[1]), int(sys.argv[2]))
    late = memory_mb[FIRST:] or memory_mb[-1:]
    seen = {
        "exit_code": ended,
        "rows": len(memory_mb),
        "early_mb": memory_mb[:FIRST][-1],
        "late_mb": max(late),
        "row_cpu_seconds": (time.process_time() - cpu_seconds[WARM - 1]) / (len(cpu_seconds) - WARM),
    }
    print(json.dumps(seen))
