"""The contract of a cell: its marker, how its processes are found and ended. Host and worker both use it.

A process is held as a `psutil.Process`, which knows its start time: a pid that was given to somebody else
is neither signalled nor waited for.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Literal
from uuid import uuid4

import psutil

Start = Literal["fork", "cold"]
"""How a cell's worker starts: as a fork of a process that has everything loaded, or as a fresh one."""

MARKER = "AGENTCELL_CELL"
"""Environment variable, a UUID, in everything a cell executes."""

DRAIN_VARIABLE = "AGENTCELL_DRAIN_SECONDS"
"""Environment variable: seconds the cell may wait for background work after its turn has ended."""

DRAIN_SECONDS = 10.0
"""The same, where nobody says otherwise."""

PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h."""

TERM_SECONDS = 2.0
"""From SIGTERM to SIGKILL; the CLI ends its foreground tools in under 2 s."""

KILL_SECONDS = 3.0
"""From SIGKILL to giving up: only a process stuck in the kernel lasts longer."""

SETTLE_SECONDS = 0.02
"""Between two looks at the process table while processes end."""

ENVIRON_BYTES = 64 * 1024
"""Read at once: more than most environments have."""

CLEAR_LOOKS = 2
"""Looks without a find before all are gone: a process is not seen while it is just being executed or forked."""


def new_marker() -> str:
    """A marker that no other cell has."""
    return str(uuid4())


def become_subreaper() -> bool:
    """Have this process inherit its orphaned descendants, so that a walk finds them. Linux only; says whether."""
    if sys.platform != "linux":
        return False
    return int(_libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0


@cache
def _libc() -> ctypes.CDLL:
    """Loaded once: a fork of one who has it finds it loaded."""
    return ctypes.CDLL(None, use_errno=True)


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """All living processes below `pid` (this process), zombies left out; empty when `pid` is gone."""
    try:
        return [p for p in psutil.Process(pid).children(recursive=True) if is_alive(p)]
    except psutil.NoSuchProcess:
        return []


def has_children() -> bool:
    """Whether this process has any, also one that has ended and is not reaped; where that cannot be asked, True.

    Who has none has no descendants either. The kernel says so in one call, and overlooks none that is just forking.
    """
    if sys.platform != "linux":
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def children() -> set[int] | None:
    """The pids of this process's children, also of ended ones that are not reaped; None where the kernel lists none.

    It is all of them if this process has one thread: who is listed is not reaped meanwhile, and who loses its parent
    below this process, a subreaper, is its child in the same moment. Linux only, where a kernel was so configured.
    """
    listed = _read("/proc/thread-self/children") if sys.platform == "linux" else None  # not by pid: see pid namespaces
    return None if listed is None else set(map(int, listed.split()))


def marked(marker: str, variable: str = MARKER) -> list[psutil.Process]:
    """All other living processes of this user whose environment holds the marker."""
    pids = _pids_with(f"{variable}={marker}".encode()) if sys.platform == "linux" else psutil.pids()
    found = (process_at(pid) for pid in pids if pid != os.getpid())
    return [p for p in found if p is not None and is_alive(p) and _has_marker(p, marker, variable)]


def process_at(pid: int) -> psutil.Process | None:
    """The process that has this pid now, if there is one."""
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs; a zombie does not, unless only the first of its threads has ended."""
    try:
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.Error:
        return False


def end(
    find: Callable[[], Iterable[psutil.Process]],
    *,
    term_seconds: float = TERM_SECONDS,
    awaited: Container[int] = (),
    clear_looks: int = CLEAR_LOOKS,
) -> int:
    """End every process that `find` finds, until it finds none `clear_looks` times running; how many there were.

    SIGTERM first, SIGKILL after `term_seconds`, at the latest `KILL_SECONDS` after that it returns. Blocks.
    Those that are children of this process by then are reaped, except the pids in `awaited`: somebody else
    waits for them and would be told a false exit code.
    """
    seen: set[psutil.Process] = set()
    for seconds in ending(find, seen, term_seconds=term_seconds, awaited=awaited, clear_looks=clear_looks):
        time.sleep(seconds)
    return len(seen)


def end_descendants(*, term_seconds: float = TERM_SECONDS) -> int:
    """`end` for all that is below this process, without a look at the process table if nothing is."""
    return end(descendants, term_seconds=term_seconds) if has_children() else 0


def ending(
    find: Callable[[], Iterable[psutil.Process]],
    seen: set[psutil.Process],
    *,
    term_seconds: float = TERM_SECONDS,
    awaited: Container[int] = (),
    stirs: Callable[[], bool] = lambda: False,
    clear_looks: int = CLEAR_LOOKS,
) -> Iterator[float]:
    """`end` in steps, between which so many seconds are to pass; what was found is added to `seen`.

    Those that are in `seen` before have had their SIGTERM. `stirs` says whether `find` has just seen a sign of
    what it did not find.
    """
    kill_at = time.monotonic() + term_seconds
    give_up_at = kill_at + KILL_SECONDS
    in_vain = 0
    while in_vain < clear_looks and (now := time.monotonic()) < give_up_at:
        found = _found(find)
        for process in found or ():
            if now >= kill_at:
                signal_process(process, signal.SIGKILL)
            elif process not in seen:
                signal_process(process, signal.SIGTERM)
            seen.add(process)
        in_vain = 0 if found is None or found or stirs() else in_vain + 1
        if in_vain < clear_looks:
            yield SETTLE_SECONDS
    for process in seen:
        if process.pid not in awaited:
            reap(process)


def _found(find: Callable[[], Iterable[psutil.Process]]) -> list[psutil.Process] | None:
    """What it finds; None where there was no descriptor left to look with."""
    try:
        return list(find())
    except OSError:
        return None


def signal_process(process: psutil.Process, number: int) -> None:
    """Send a signal to exactly this process, if it is still there."""
    with suppress(psutil.Error, OSError):  # without a descriptor left, who it is cannot be seen: another time
        process.send_signal(number)


def reap(process: psutil.Process) -> None:
    """Take the exit status of a child that has ended, by its pid; others are left alone."""
    with suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)


def _pids_with(variable: bytes) -> Iterator[int]:
    """Candidates, at one read per process; to ask psutil about each costs ten times that."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - a path object for each would double the cost
        if name.isdigit() and variable in (_read(f"/proc/{name}/environ") or b""):
            yield int(name)


def _read(path: str) -> bytes | None:
    """What a file holds; None when it is gone or not ours to read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # a file object doubles the cost, too
    except OSError:
        return None
    parts = []
    try:
        while part := os.read(fd, ENVIRON_BYTES):
            parts.append(part)
    except OSError:
        return None
    finally:
        os.close(fd)
    return b"".join(parts)


def _has_marker(process: psutil.Process, marker: str, variable: str) -> bool:
    try:
        return process.environ().get(variable) == marker
    except (psutil.Error, OSError):
        return False
