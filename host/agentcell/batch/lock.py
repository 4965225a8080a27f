"""One batch per run directory: its lock, which ends with the process that has it, whatever ends that."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import psutil

from agentcell.batch.values import amount
from agentcell.errors import BusyError, RunDirectoryError
from agentcell.transcripts import PRIVATE_FILE
from agentcell_protocol.cell import is_alive, process_at

LOCK = "lock"

START_SECONDS = 1.0
"""By which two looks at one process may differ in when it started, where the clock was set in between."""

PIDS = 2**31
"""No process has such a number."""

LOOKS, LOOK_SECONDS = 4, 0.01
"""How often it is tried again, and after how long: who only looks has the lock for some microseconds."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has the lock, or died with it. Times are in Unix seconds."""

    pid: int
    since: float
    started: float
    host: str

    @property
    def process(self) -> psutil.Process | None:
        """The same as a process that can be signalled; None when it does not live, or not on this machine."""
        process = process_at(self.pid)
        if self.host != socket.gethostname() or process is None or not is_alive(process):
            return None
        return process if abs(process.create_time() - self.started) < START_SECONDS else None


def holder(directory: Path) -> Holder | None:
    """Who has the run directory, or died with it; None when nobody has it. The lock is not touched."""
    try:
        said = orjson.loads((directory / LOCK).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    match said:
        case {"pid": int(pid), "since": since, "started": started, "host": str(host)} if 0 < pid < PIDS:
            times = amount(since), amount(started)
            return None if None in times else Holder(pid, times[0] or 0.0, times[1] or 0.0, host)
    return None


def was_left(directory: Path) -> bool:
    """Whether who had it last has not given it back, and so has died. Raises OSError."""
    try:
        return (directory / LOCK).stat().st_size > 0
    except FileNotFoundError:
        return True


def in_force(directory: Path) -> bool:
    """Whether somebody has the run directory at this moment, be it on another machine. Nothing in it is changed."""
    try:
        fd = os.open(directory / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Within, the run directory is this process's. Raises BusyError while it is another's, and RunDirectoryError."""
    fd = _open(directory)
    try:
        _take(fd, directory)
        _refuse_copy(directory)
        mine = Holder(os.getpid(), time.time(), psutil.Process().create_time(), socket.gethostname())
        os.ftruncate(fd, 0)
        os.pwrite(fd, orjson.dumps(asdict(mine), option=orjson.OPT_APPEND_NEWLINE), 0)
        try:
            yield
        finally:
            os.ftruncate(fd, 0)  # whoever is killed leaves it as it is
    finally:
        os.close(fd)


def _open(directory: Path) -> int:
    try:
        return os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    except OSError as refused:
        reason = f"it cannot be written to ({refused.strerror})"
        raise RunDirectoryError(directory, reason, "make it writable, or name another directory") from None


def _refuse_copy(directory: Path) -> None:
    """Raise RunDirectoryError when who has the lock, by what it says, lives: then it has another one."""
    other = holder(directory)
    if other is not None and other.pid != os.getpid() and other.process is not None:
        reason = f"it is a copy of one that process {other.pid} runs at this moment"
        raise RunDirectoryError(directory, reason, "wait for that batch, or name another directory")


def _take(fd: int, directory: Path) -> None:
    try:
        _flock(fd)
    except BlockingIOError:
        other = holder(directory)
        raise BusyError(directory, *((other.pid, other.since) if other else (None, None))) from None
    except OSError as refused:
        reason = f"its file system has no locks ({refused.strerror})"
        raise RunDirectoryError(directory, reason, "name a directory on a local disk") from None


def _flock(fd: int) -> None:
    """Take the lock, also when somebody looks at this very moment whether anybody has it."""
    for _ in range(LOOKS):
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOOK_SECONDS)
    return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
