"""The wait for `agentcell --help` against that for an interpreter that imports click, which every command line pays."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Figure, Measured, compare, wall

COMMAND = Path(sys.executable).with_name("agentcell")
"""The console script as it is installed."""

PAIRS = 25
GOAL = 2.0


def run() -> list[Figure]:
    """Both from the start of the process to its end."""
    with tempfile.TemporaryDirectory() as home:
        ours = _process([str(COMMAND), "--help"], home)
        theirs = _process([sys.executable, "-c", "import click"], home)
        seen = compare(ours, theirs, pairs=PAIRS)
    detail = f"{seen.ours.median * 1000:.0f} ms, click {seen.theirs.median * 1000:.0f} ms"
    return [
        Figure(
            "help", "agentcell --help", 'python -c "import click"', seen.ratio, GOAL, noise=seen.noise, detail=detail
        )
    ]


def _process(command: list[str], home: str) -> Measured:
    environment = {"PATH": os.environ["PATH"], "HOME": home}
    return wall(lambda: subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True))
