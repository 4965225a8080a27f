"""What we ship passes every check, as anybody can see with the same commands."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.ending import ending
from tests.meta.pages import installed

from agentcell.conformance.host_checks import HOST_CHECKS
from agentcell.conformance.worker_checks import WORKER_CHECKS

BOUND_SECONDS = 240.0
"""For what takes 20 s on two idle cores."""


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (("worker", "--", sys.executable, "-P", "-m", "agentcell_worker"), len(WORKER_CHECKS)),
        (("worker", "--", "agentcell-worker"), len(WORKER_CHECKS)),
        (("host", "--", "agentcell", "serve", "-j", "2"), len(HOST_CHECKS)),
    ],
    ids=["worker", "agentcell-worker", "agentcell serve"],
)
def test_every_check_passes(arguments: tuple[str, ...], count: int, tmp_path: Path) -> None:
    argv = [str(Path(sys.executable).with_name("agentcell")), "conformance", *arguments]
    started = subprocess.Popen(
        argv, env=installed(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    with ending(started, BOUND_SECONDS) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        assert [line for line in lines if " passed  " not in line] == [f"{count} passed"]
        assert process.wait(BOUND_SECONDS) == 0
