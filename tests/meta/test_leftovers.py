"""The look that every test is followed by sees each kind of thing that can be left behind."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.leftovers import Before

Lines = Iterator[tuple[str, ...]]
"""How the lines begin that tell of what is left."""


@contextmanager
def descriptor(_: Path) -> Lines:
    fd = os.open(os.devnull, os.O_RDONLY)
    yield ("descriptor ",)
    os.close(fd)


@contextmanager
def child(_: Path) -> Lines:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield "descriptor ", f"process {process.pid} (cat )"


@contextmanager
def zombie(_: Path) -> Lines:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield (f"zombie {process.pid} (true)",)


@contextmanager
def orphan(directory: Path) -> Lines:
    """Known by its directory alone."""
    shell = "exec 3<&0; cat <&3 >/dev/null & echo $!"
    reads, writes = os.pipe()
    ended = subprocess.run(
        ["/usr/bin/env", "-i", "/bin/sh", "-c", shell],
        cwd=directory,
        stdin=reads,
        stdout=subprocess.PIPE,
        check=True,
    )
    os.close(reads)
    yield "descriptor ", f"process {int(ended.stdout)} (cat )"
    os.close(writes)


@contextmanager
def file(directory: Path) -> Lines:
    path = directory / "temporary" / "file"
    path.touch()
    yield (f"file {path}",)
    path.unlink()


@pytest.mark.parametrize("leave", [descriptor, child, zombie, orphan, file])
def test_what_is_left_behind_is_seen(
    tmp_path: Path, leave: Callable[[Path], AbstractContextManager[tuple[str, ...]]]
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = Before.look(tmp_path, temporary)
    assert before.left() == []
    with leave(tmp_path) as starts:
        left = before.left()
    assert [line.startswith(start) for line, start in zip(left, starts, strict=True)] == [True] * len(starts)


def test_what_is_left_of_processes_is_ended(tmp_path: Path) -> None:
    before = Before.look(tmp_path, tmp_path)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        before.end()
        assert process.wait(10) is not None
