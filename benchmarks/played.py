"""A batch in a process of its own whose cells are played: see `tests.faults.long_batch`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.faults import long_batch
from tests.meta.source import ROOT


def play(folder: Path, rows: int) -> dict[str, Any]:
    """Run it in an empty folder; what it has seen of itself."""
    ended = subprocess.run(
        [sys.executable, "-m", long_batch.__name__, str(folder), str(rows)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    seen: dict[str, Any] = json.loads(ended.stdout)
    assert (seen["exit_code"], seen["rows"]) == (0, rows)
    return seen
