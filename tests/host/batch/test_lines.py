"""A line that was appended is on the disk, whole, whatever happens next; one that could not be is not there at all."""

import errno
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from tests.ending import ending

from agentcell.batch.lines import Lines
from agentcell.batch.repair import Repair, read_whole

WAIT_SECONDS = 30

APPENDER = """
import sys
from pathlib import Path
import anyio
from agentcell.batch.lines import Lines

async def append(lines, task):
    for number in range(10_000):
        await lines.append({"task": task, "number": number, "text": "x" * 100_000})
        print(task, number, flush=True)

async def main():
    async with anyio.create_task_group() as tasks:
        for task in range(3):
            tasks.start_soon(append, lines, task)

with Lines.open(Path(sys.argv[1]), lambda *_: True) as lines:
    anyio.run(main)
"""

ON_A_FULL_DISK = """
import errno, resource, sys
from pathlib import Path
import anyio
from agentcell.batch.lines import Lines

async def main():
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_500, resource.RLIM_INFINITY))
    for number in range(3):
        try:
            print(await lines.append({"number": number, "text": "x" * 1_000}))
        except OSError as full:
            print(full, full.errno == errno.EFBIG, path.stat().st_size)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(await lines.append({"number": 3}))

path = Path(sys.argv[1])
with Lines.open(path, lambda *_: True) as lines:
    anyio.run(main)
"""


def messages(path: Path) -> list[dict[str, Any]]:
    """What is in the file, all of which must be whole."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def anything(_: int, __: dict[str, Any]) -> bool:
    return True


@pytest.mark.anyio
async def test_lines_are_appended_where_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with Lines.open(path, anything) as lines:
        offsets = [await lines.append({"n": 1}), await lines.append({"n": 2})]
    assert offsets == [0, 8]
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'
    assert oct(path.stat().st_mode & 0o777) == "0o600"


@pytest.mark.anyio
async def test_those_that_come_together_share_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    flushes: list[int] = []
    with Lines.open(path, anything) as lines:
        monkeypatch.setattr(os, "fsync", flushes.append)
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(lines.append, {"n": number})
    assert sorted(message["n"] for message in messages(path)) == list(range(50))
    assert 1 <= len(flushes) <= 3


@pytest.mark.anyio
async def test_what_is_on_its_way_is_not_cancelled(tmp_path: Path) -> None:
    path, told = tmp_path / "f", []
    with Lines.open(path, anything) as lines, anyio.CancelScope() as scope:
        scope.cancel()
        told.append(await lines.append({"n": 1}))
    assert (told, messages(path)) == ([0], [{"n": 1}])


def test_the_name_of_a_new_file_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed, flush = list[Path](), os.fsync

    def seen(fd: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{fd}").readlink())
        flush(fd)

    monkeypatch.setattr(os, "fsync", seen)
    for expected in ([tmp_path], []):
        with Lines.open(tmp_path / "f", anything):
            assert flushed == expected
        flushed.clear()


def test_it_goes_on_behind_what_is_there_and_nothing_before_it_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b'{"n":1}\n{"n":')
    with Lines.open(path, anything) as lines:
        assert lines.repair == Repair(path, tmp_path / "f.torn-1", (2,))
        assert lines.write([{"n": 2}, {"n": 3}]) == [8, 16]
    assert messages(path) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_rewritten_file_is_the_one_that_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with Lines.open(path, anything) as lines:
        lines.write([{"n": 1}, {"n": 2}])
        lines.rewrite(iter([b'{"n":2}\n']))
        assert lines.write([{"n": 3}]) == [8]
    assert messages(path) == [{"n": 2}, {"n": 3}]


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_what_could_not_be_written_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    path, write = tmp_path / "f", os.write

    def fail(fd: int, content: bytes = b"") -> int:
        if content:
            write(fd, content[:3])
        monkeypatch.undo()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Lines.open(path, anything) as lines:
        lines.write([{"n": 1}])
        monkeypatch.setattr(os, failing, fail)
        with pytest.raises(OSError, match="No space left"):
            lines.write([{"n": 2}, {"n": 3}])
        assert messages(path) == [{"n": 1}]
        lines.write([{"n": 4}])
    assert path.read_bytes() == b'{"n":1}\n{"n":4}\n'


def test_what_could_not_be_taken_back_at_once_is_before_the_next_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "f", os.write

    def fail(fd: int, content: bytes = b"") -> int:
        if content:
            write(fd, content[:3])
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Lines.open(path, anything) as lines, ExitStack() as broken:
        patch = broken.enter_context(pytest.MonkeyPatch.context())
        for name in ("write", "ftruncate"):
            patch.setattr(os, name, fail)
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output error"):
                lines.write([{"n": 1}])
        assert path.read_bytes() == b'{"n'
        broken.close()
        assert lines.write([{"n": 2}]) == [0]
    assert messages(path) == [{"n": 2}]


@pytest.mark.anyio
async def test_all_who_wait_are_told_that_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[OSError] = []

    async def append(lines: Lines, number: int) -> None:
        try:
            await lines.append({"n": number})
        except OSError as failure:
            failures.append(failure)

    def fail(fd: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with Lines.open(tmp_path / "f", anything) as lines:
        monkeypatch.setattr(os, "fsync", fail)
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(append, lines, number)
        monkeypatch.undo()
        assert await lines.append({"n": 6}) == 0
    assert {(failure.errno, failure.filename) for failure in failures} == {(errno.EDQUOT, str(tmp_path / "f"))}
    assert (len(failures), len({id(failure) for failure in failures})) == (5, 5)


@pytest.mark.parametrize("after", [1, 7, 40])
def test_a_writer_that_is_killed_leaves_whole_lines_and_all_that_it_was_told_are_there(
    tmp_path: Path, after: int
) -> None:
    path = tmp_path / "f"
    appending = subprocess.Popen([sys.executable, "-c", APPENDER, str(path)], stdout=subprocess.PIPE, text=True)
    with ending(appending, WAIT_SECONDS) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline().split() for _ in range(after)]
        writer.kill()
        told += [line.split() for line in writer.stdout if line.endswith("\n")]
        assert writer.wait(WAIT_SECONDS) == -signal.SIGKILL
    with Lines.open(path, anything) as lines:
        lines.write([{"task": 3, "number": 0}])
    found = [(message["task"], message["number"]) for message in messages(path)]
    assert len(found) == len(list(read_whole(path)))
    assert {(int(task), int(number)) for task, number in told} <= set(found)
    assert [[number for task, number in found if task == one] for one in range(3)] == [
        list(range(sum(task == one for task, _ in found))) for one in range(3)
    ]


def test_on_a_full_disk_a_line_is_there_or_it_is_said_that_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "f"
    ended = subprocess.run(
        [sys.executable, "-c", ON_A_FULL_DISK, str(path)],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    size = len(orjson.dumps({"number": 0, "text": "x" * 1_000})) + 1
    full = f"[Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}: {str(path)!r}"
    assert ended.stdout.splitlines() == ["0", str(size), f"{full} True {2 * size}", str(2 * size)]
    assert [message["number"] for message in messages(path)] == [0, 1, 3]
