"""What a command and everything below it took: `python -m benchmarks.spent COMMAND...` prints it as JSON.

A process that outlives its parent becomes a child of this one, which waits for it, so that none is left uncounted.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from agentcell_protocol.cell import become_subreaper


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds by the clock from the start of a command to its end, and of CPU until nothing below it lived."""

    wall: float
    cpu: float


def spent(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Spent:
    """Run it in a process of its own that counts. Raises CalledProcessError when it fails."""
    counted = [sys.executable, "-m", __name__, *command]
    ended = subprocess.run(counted, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return Spent(**json.loads(ended.stdout))


def main(command: Sequence[str]) -> int:
    """Run it; the exit code is the command's."""
    become_subreaper()
    started = time.perf_counter()
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    wall = time.perf_counter() - started
    with suppress(ChildProcessError):
        while True:
            os.wait()
    usage = getrusage(RUSAGE_CHILDREN)
    print(json.dumps(asdict(Spent(wall, usage.ru_utime + usage.ru_stime))))
    return ended.returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
