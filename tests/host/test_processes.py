"""Which processes belong to a cell, and what they take."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.ending import ending

from agentcell import processes
from agentcell.processes import (
    RENEWAL_SECONDS,
    Row,
    Table,
    count_descriptors,
    kill,
    read_any_row,
    read_row,
    trees_of,
    weigh,
)

Read = Callable[[int], Row | None]


def row(pid: int, parent: int, **members: float) -> Row:
    known = {"start": 1.0, "memory_mb": 1.0, "cpu_seconds": 0.0, "threads": 1}
    return Row(pid=pid, parent=parent, name="p", **{**known, **members})  # type: ignore[arg-type]


@contextmanager
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A child that lives until it is killed, and by now is the program it executes."""
    with ending(subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdout.readline()
        yield process


def test_a_tree_is_a_root_and_all_below_it_the_root_first() -> None:
    rows = {pid: row(pid, parent) for pid, parent in [(5, 2), (1, 0), (2, 1), (3, 2), (4, 1), (9, 8)]}
    trees = trees_of([2, 9, 7], rows)
    assert {root: [row.pid for row in tree] for root, tree in trees.items()} == {2: [2, 5, 3], 9: [9], 7: []}


class Fake:
    """A process table in memory, which counts what is read of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: list[Row]) -> None:
        self.rows = {row.pid: row for row in rows}
        self.reads: list[int] = []
        self.scans = 0
        monkeypatch.setattr(processes, "read_pids", self.scan)
        monkeypatch.setattr(processes, "read_row", self.read)

    def scan(self) -> list[int]:
        self.scans += 1
        return list(self.rows)

    def read(self, pid: int) -> Row | None:
        self.reads.append(pid)
        return self.rows.get(pid)

    def take_reads(self) -> list[int]:
        reads, self.reads = sorted(self.reads), []
        return reads


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    return Fake(monkeypatch, [row(1, 0), row(2, 1), row(10, 1), row(11, 10)])


def test_between_renewals_only_the_cells_and_what_is_new_are_read(fake: Fake) -> None:
    table = Table()
    table.look([10], 0.0)
    assert fake.take_reads() == [1, 2, 10, 11]
    table.look([10], 0.0)
    assert fake.take_reads() == [10, 11]
    fake.rows |= {12: row(12, 11), 13: row(13, 2)}
    assert [row.pid for row in table.look([10], 0.0)[10]] == [10, 11, 12]
    assert fake.take_reads() == [10, 11, 12, 13]
    table.look([10], 0.0)
    assert fake.take_reads() == [10, 11, 12]


def test_one_scan_serves_all_cells_and_no_process_is_read_twice(fake: Fake) -> None:
    fake.rows |= {20: row(20, 1), 21: row(21, 20)}
    assert {root: len(tree) for root, tree in Table().look([10, 20, 11], 0.0).items()} == {10: 2, 20: 2, 11: 1}
    assert (fake.scans, fake.take_reads()) == (1, [1, 2, 10, 11, 20, 21])


def test_in_time_every_stranger_is_read_again(fake: Fake) -> None:
    table = Table()
    table.look([10], 0.0)
    fake.take_reads()
    fake.rows[2] = row(2, 10, start=2.0)  # the pid has a new owner, and he is ours
    table.look([10], RENEWAL_SECONDS / 2)
    assert fake.take_reads() == [1, 10, 11]
    assert [row.pid for row in table.look([10], RENEWAL_SECONDS)[10]] == [10, 11, 2]


def test_a_stranger_that_becomes_a_root_is_read(fake: Fake) -> None:
    table = Table()
    table.look([10], 0.0)
    assert [row.pid for row in table.look([2], 0.0)[2]] == [2]


def test_a_process_whose_parent_has_vanished_is_read_until_it_is_known_whose_it_is(fake: Fake) -> None:
    table = Table()
    fake.rows[12] = row(12, 99)
    table.look([10], 0.0)
    fake.rows[12] = row(12, 10)
    assert [row.pid for row in table.look([10], 0.0)[10]] == [10, 11, 12]


def test_a_look_without_a_descriptor_sees_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def listdir(path: str) -> list[str]:
        raise OSError(errno.EMFILE, "Too many open files", path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert Table().look([1], 0.0) == {1: []}


@pytest.mark.parametrize("read", [read_row, read_any_row])
def test_a_living_process_is_read(read: Read) -> None:
    with sleeper() as process:
        found = read(process.pid)
        assert found is not None
        assert (found.pid, found.parent, found.name, found.threads) == (process.pid, os.getpid(), "cat", 1)
        assert found.memory_mb > 0


@pytest.mark.parametrize("read", [read_row, read_any_row])
def test_a_process_that_waits_to_be_reaped_is_gone(read: Read) -> None:
    with sleeper() as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert read(process.pid) is None
    assert read(process.pid) is None


def test_exactly_the_process_that_was_seen_is_killed() -> None:
    with sleeper() as process:
        seen = read_row(process.pid)
        assert seen is not None
        kill(replace(seen, start=seen.start + 1))
        assert process.poll() is None
        kill(seen)
        assert process.wait(10) == -signal.SIGKILL
        kill(seen)


def test_what_processes_share_counts_once() -> None:
    with sleeper() as one, sleeper() as other:
        rows = [found for process in (one, other) if (found := read_row(process.pid)) is not None]
        assert 0 < weigh(rows) < sum(row.memory_mb for row in rows)
        assert count_descriptors(rows) >= 6
    assert weigh(rows) == sum(row.memory_mb for row in rows)
    assert count_descriptors(rows) == 0


FIRST_THREAD_ENDS = """
import ctypes, threading
first = threading.main_thread().native_id
held = bytearray(b"x") * 50_000_000
def go_on():
    while open(f"/proc/self/task/{first}/stat").read().rpartition(")")[2].split()[0] != "Z":
        pass
    print("up", flush=True)
    threading.Event().wait()
threading.Thread(target=go_on).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_seen_with_what_it_takes_and_can_be_killed() -> None:
    command = [sys.executable, "-c", FIRST_THREAD_ENDS]
    with ending(subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        found = read_row(process.pid)
        assert found is not None
        assert found.memory_mb > 45
        assert weigh([found]) > 45
        kill(found)
        assert process.wait(60) == -signal.SIGKILL
