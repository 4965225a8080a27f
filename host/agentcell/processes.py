"""The process table: a row for each process, and the trees of the cells in it."""

import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, inf

import psutil

MEBIBYTE = 1024 * 1024

RENEWAL_SECONDS = 5.0
"""In which each process that belongs to no cell is looked at again, some at every look: its pid may be reused."""

LAST_FIELD = 21
"""Of those after the name in a stat file: the resident size; the rest of them is not taken apart."""

ROW_BYTES = 4096
"""More than the kernel writes into one stat file."""


@dataclass(frozen=True, slots=True)
class Row:
    """A living process. `memory_mb` is its resident size, `cpu_seconds` with that of the children it waited for.

    `start` tells it from another process that had its pid before; it is in a unit of the system's own.
    """

    pid: int
    parent: int
    start: float
    name: str
    memory_mb: float
    cpu_seconds: float
    threads: int


class Table:
    """The processes of some cells, at the price of reading only what may have changed."""

    def __init__(self) -> None:
        self._foreign: dict[int, None] = {}
        self._looked_at = -inf

    def look(self, roots: Collection[int], now: float) -> dict[int, list[Row]]:
        """The rows of each root and of all that is below it, as they are `now` (seconds of any one clock)."""
        pids = set(read_pids())
        for pid in {*roots, *self._to_renew(now), *(self._foreign.keys() - pids)}:
            self._foreign.pop(pid, None)
        found = (read_row(pid) for pid in pids - self._foreign.keys())
        rows = {row.pid: row for row in found if row is not None}
        trees = trees_of(roots, rows)
        self._foreign |= dict.fromkeys(self._strangers(rows, trees))
        return trees

    def _to_renew(self, now: float) -> list[int]:
        """Those that were not looked at for longest, as many as the time since the last look is worth."""
        share = min(1.0, (now - self._looked_at) / RENEWAL_SECONDS)
        self._looked_at = now
        return list(islice(self._foreign, ceil(share * len(self._foreign))))

    def _strangers(self, rows: Mapping[int, Row], trees: Mapping[int, list[Row]]) -> set[int]:
        """What certainly belongs to no cell: a process whose parent has just vanished is left in doubt."""
        ours = {row.pid for tree in trees.values() for row in tree}
        known = rows.keys() | self._foreign.keys() | {0}
        return {pid for pid, row in rows.items() if pid not in ours and row.parent in known}


def trees_of(roots: Iterable[int], rows: Mapping[int, Row]) -> dict[int, list[Row]]:
    """Each root's own row and those of its descendants; nothing for a root that is not there."""
    children: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows.values():
        children[row.parent].append(row)
    trees = {}
    for root in roots:
        tree = [rows[root]] if root in rows else []
        for row in tree:  # grows while it is walked
            tree += children[row.pid]
        trees[root] = tree
    return trees


def kill(row: Row) -> None:
    """Kill exactly this process, if it is still there."""
    now = read_row(row.pid)
    if now is not None and now.start == row.start:
        with suppress(ProcessLookupError, PermissionError):  # it may be another user's, started by way of sudo
            os.kill(row.pid, signal.SIGKILL)


def survivors(rows: Iterable[Row]) -> list[psutil.Process]:
    """Those of them that still live."""
    found = []
    for row in rows:
        with suppress(psutil.Error):
            process = psutil.Process(row.pid)
            now = read_row(row.pid)  # read afterwards: if it is the row's, it was before
            if now is not None and now.start == row.start:
                found.append(process)
    return found


def weigh(rows: Iterable[Row]) -> float:
    """Their memory in MB, where what several share counts once. Blocks: the kernel looks at every page."""
    return sum(map(_proportional_mb, rows))


def count_descriptors(rows: Iterable[Row]) -> int:
    """The descriptors they have open, all together; those of a process of somebody else cannot be seen."""
    return sum(map(_descriptors, rows))


def read_linux_pids() -> list[int]:
    """The pid of every process; of none where there is no descriptor left to look with."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - a tenth of the cost
    except OSError:
        return []


def read_linux_row(pid: int) -> Row | None:
    """The process as the kernel has it; None when it is gone or waits only to be reaped."""
    row = _read_stat(f"/proc/{pid}/stat", pid)
    if row is not None and row.threads > 1 and not row.memory_mb:
        return _seen_by_its_threads(row)
    return row


def read_any_pids() -> list[int]:
    """As `read_linux_pids`, where there is no /proc."""
    return psutil.pids()


def read_any_row(pid: int) -> Row | None:
    """As `read_linux_row`, where there is no /proc, at many times its cost."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            return Row(
                pid=pid,
                parent=process.ppid(),
                start=process.create_time(),
                name=process.name(),
                memory_mb=process.memory_info().rss / MEBIBYTE,
                cpu_seconds=sum(process.cpu_times()[:4]),
                threads=process.num_threads(),
            )
    except psutil.Error:
        return None


def _read_stat(path: str, pid: int) -> Row | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _parse(pid, os.read(fd, ROW_BYTES))
    except OSError:
        return None
    finally:
        os.close(fd)


def _seen_by_its_threads(row: Row) -> Row:
    """With the memory of a process whose first thread has ended: the kernel tells it of the others."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{row.pid}/task"):  # noqa: PTH208 - as above
            seen = _read_stat(f"/proc/{row.pid}/task/{thread}/stat", row.pid)
            if seen is not None and seen.memory_mb:
                return replace(row, memory_mb=seen.memory_mb)
    return row


def _parse(pid: int, stat: bytes) -> Row | None:
    """A line of proc_pid_stat(5); the name may hold anything, so what follows it is found from the end."""
    head, _, tail = stat.rpartition(b") ")
    fields = tail.split(None, LAST_FIELD + 1)
    if not fields or (fields[0] in b"ZX" and int(fields[17]) < 2):  # a zombie with threads is one that goes on
        return None
    return Row(
        pid=pid,
        parent=int(fields[1]),
        start=float(fields[19]),
        name=head.partition(b" (")[2].decode(errors="replace"),
        memory_mb=int(fields[LAST_FIELD]) * _PAGE_MB,
        cpu_seconds=sum(map(int, fields[11:15])) / _TICKS,
        threads=int(fields[17]),
    )


def _proportional_mb(row: Row) -> float:
    try:
        share = float(psutil.Process(row.pid).memory_full_info().pss) / MEBIBYTE
    except (AttributeError, psutil.Error, OSError):
        return row.memory_mb
    if not share and (now := read_row(row.pid)) is not None:  # its first thread has ended
        return now.memory_mb
    return share


def _descriptors(row: Row) -> int:
    try:
        return psutil.Process(row.pid).num_fds()
    except (AttributeError, psutil.Error, OSError):
        return 0


_IS_LINUX = sys.platform == "linux"
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / MEBIBYTE if _IS_LINUX else 0.0
_TICKS = os.sysconf("SC_CLK_TCK") if _IS_LINUX else 1

read_pids: Callable[[], list[int]] = read_linux_pids if _IS_LINUX else read_any_pids
read_row: Callable[[int], Row | None] = read_linux_row if _IS_LINUX else read_any_row
