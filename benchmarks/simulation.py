"""Runs `agentcell batch` over many rows on nodes that are simulated, and prints what it took.

argv: a directory to run in, how many rows, and how many nodes. All is the command's own, from the file of rows to the
run directory, but for the executor. As JSON: the exit code, the attempts, the nodes that were lost, how many rows have
a result and how many of these failed, CPU and attempts a second from the first one to the end, memory with all nodes in
use and the most there ever was (MB), and the sizes of journal and results (bytes).
"""

import json
import sys
import time
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import psutil

import agentcell.commands.batching
from agentcell.cli import main
from agentcell.orders import Order
from agentcell.run import Attempted
from benchmarks.nodes import SimulatedNodes

WARM = 500
"""Attempts that have ended until all code has run. All nodes are in use then."""

KIBIBYTE = 1024
MEBIBYTE = 1024 * 1024


class Watched(SimulatedNodes):
    """The same, with a look at this process when the first attempt is made, and when it is warm."""

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self.ended = 0
        self.begun = self.warm = Look()

    async def attempt(self, order: Order) -> Attempted:
        """As ever."""
        if self.attempts == 0:
            self.begun = Look()
        attempted = await super().attempt(order)
        self.ended += 1
        if self.ended == WARM:
            self.warm = Look()
        return attempted


class Look:
    """What this process has taken by now."""

    def __init__(self) -> None:
        self.cpu = time.process_time()
        self.wall = time.monotonic()
        self.memory_mb = psutil.Process().memory_info().rss / MEBIBYTE
        self.most_mb = getrusage(RUSAGE_SELF).ru_maxrss * KIBIBYTE / MEBIBYTE


def run(directory: Path, rows: int, nodes: SimulatedNodes) -> int:
    """The command's exit code."""
    with (directory / "rows.jsonl").open("w") as file:
        for number in range(rows):
            row = {"session_name": f"row-{number}", "starting_message": f"Do {number}. " * 20}
            file.write(json.dumps({**row, "agent_type": "planner", "project_dir": str(directory)}) + "\n")
    vars(agentcell.commands.batching)["executor_of"] = lambda *_given: nodes
    sys.argv[1:] = ["batch", str(directory / "rows.jsonl"), "--min-free-mb", "0", "--progress", "none"]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def summary(directory: Path, nodes: Watched, exit_code: int) -> dict[str, float]:
    """What was seen of it."""
    end, begun = Look(), nodes.begun
    results = (directory / "rows.run/results.jsonl").read_bytes().splitlines()
    return {
        "exit_code": exit_code,
        "attempts": nodes.attempts,
        "lost_nodes": nodes.lost,
        "results": len(results),
        "failed": sum(line.startswith(b'{"status":"error"') for line in results),
        "cpu_seconds_an_attempt": (end.cpu - begun.cpu) / nodes.ended,
        "attempts_a_second": nodes.ended / (end.wall - begun.wall),
        "early_mb": nodes.warm.memory_mb,
        "most_mb": end.most_mb,
        "journal_bytes": (directory / "rows.run/journal.jsonl").stat().st_size,
        "results_bytes": (directory / "rows.run/results.jsonl").stat().st_size,
    }


if __name__ == "__main__":
    place, played = Path(sys.argv[1]), Watched(int(sys.argv[3]))
    ended = run(place, int(sys.argv[2]), played)
    print(json.dumps(summary(place, played, ended)))
