"""The end of a batch that another process runs."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil

from agentcell.batch.directory import read_description
from agentcell.batch.lock import holder, in_force


class NotInterruptedError(RuntimeError):
    """There was nobody to interrupt, or nobody that can be; the text says which."""


def interrupt(directory: Path) -> int:
    """Send SIGINT to the process that has the run directory at this moment, and to no other; its pid.

    A process that was started to ignore that (by a shell without job control, in the background) gets another signal.
    Raises RunDirectoryError when it is no run directory, NotInterruptedError, and OSError.
    """
    read_description(directory)
    if not in_force(directory):
        raise NotInterruptedError("no batch runs there")
    found = holder(directory)
    if found is None:
        raise NotInterruptedError("a batch has just begun there, or just ended; try again")
    process = found.process
    if process is None:
        raise NotInterruptedError(f"process {found.pid} on {found.host} runs it, which cannot be seen from here")
    try:
        process.send_signal(_heeded(process))  # which looks first whether it is still the same process
    except psutil.AccessDenied:
        raise NotInterruptedError(f"process {found.pid} runs it, and belongs to somebody else") from None
    except psutil.NoSuchProcess:
        raise NotInterruptedError("no batch runs there") from None
    return found.pid


def _heeded(process: psutil.Process) -> signal.Signals:
    """The first of the signals that would end it which it does not ignore."""
    ignored = _ignored(process.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if not ignored >> (number - 1) & 1:
            return number
    raise NotInterruptedError(f"process {process.pid} runs it, and ignores all signals that would end it")


def _ignored(pid: int) -> int:
    """The signals that the process ignores, as bits; none where the system does not say."""
    with suppress(OSError), Path(f"/proc/{pid}/status").open() as status:
        for line in status:
            if line.startswith("SigIgn:"):
                return int(line.split()[1], 16)
    return 0
