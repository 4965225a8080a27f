"""A cell's private directory goes with the cell, or with a later one when its host was killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ending import ending

from agentcell.hold import held
from agentcell.offline.rehearsal import rehearsal
from agentcell.scratch import PREFIX, scratch, sweep_stale

HOLDER = """
import sys, time
from pathlib import Path
from agentcell.scratch import scratch
with scratch({"TMPDIR": sys.argv[1]}) as directory:
    (directory / "file").touch()
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process with such a directory."""
    argv = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with ending(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as process:
        yield process


def directory_of(process: "subprocess.Popen[str]") -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_it_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with scratch({"TMPDIR": str(tmp_path)}) as directory:
        assert (directory.parent, oct(directory.stat().st_mode)) == (tmp_path, "0o40700")
        (directory / "deep/er").mkdir(parents=True)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_host_has_left_is_swept(tmp_path: Path, elsewhere: "subprocess.Popen[str]") -> None:
    directory = directory_of(elsewhere)
    sweep_stale({"TMPDIR": str(tmp_path)}, older_than=-1)
    assert directory.exists()
    elsewhere.kill()
    elsewhere.wait()
    sweep_stale({"TMPDIR": str(tmp_path)})
    assert directory.exists()
    sweep_stale({"TMPDIR": str(tmp_path)}, older_than=-1)
    assert not directory.exists()


def test_what_is_in_use_or_somebody_elses_is_not_swept(tmp_path: Path) -> None:
    (tmp_path / "agentcell-other").mkdir()
    (tmp_path / f"{PREFIX}file").touch()
    with scratch({"TMPDIR": str(tmp_path)}) as directory:
        sweep_stale({"TMPDIR": str(tmp_path)}, older_than=-1)
        assert directory.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}file", "agentcell-other"]


def test_a_forked_process_holds_nothing_on(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    with held(tmp_path):
        if not (child := os.fork()):
            os.close(writes)
            os.read(reads, 1)
            os._exit(0)
    with held(tmp_path), pytest.raises(BlockingIOError), held(tmp_path):
        pass
    os.close(writes)
    os.close(reads)
    os.waitpid(child, 0)


def test_the_home_of_a_rehearsal_is_held_and_swept_like_it(tmp_path: Path) -> None:
    with rehearsal({"TMPDIR": str(tmp_path)}) as (_, environment):
        [home] = tmp_path.iterdir()
        assert (str(home), home.name.startswith(PREFIX)) == (environment["HOME"], True)
        sweep_stale({"TMPDIR": str(tmp_path)}, older_than=-1)
        assert home.exists()
    assert list(tmp_path.iterdir()) == []
