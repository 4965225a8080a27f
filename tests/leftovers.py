"""What a test may leave behind: processes, zombies, descriptors and temporary files."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Before:
    """What there was before a test; whatever is there afterwards besides is left behind.

    A process is ours when this one is its parent, or when its directory or environment names one below `scratch`:
    other runs on the same machine have other ones. `temporary` is where this run's temporary files lie.
    """

    scratch: bytes
    temporary: Path
    descriptors: dict[str, str]
    pids: frozenset[int]
    files: frozenset[str]

    @classmethod
    def look(cls, scratch: Path, temporary: Path) -> Self:
        return cls(os.fsencode(scratch), temporary, _descriptors(), _pids(), _files(temporary))

    def left(self) -> list[str]:
        """A line for everything that is left by now."""
        return [*self._descriptors_left(), *map(_described, self._processes_left()), *self._files_left()]

    def end(self) -> None:
        """Kill what is left of processes, and reap it if it is ours to reap."""
        for pid in self._processes_left():
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def _descriptors_left(self) -> list[str]:
        now = _descriptors()
        if len(now) <= len(self.descriptors):
            return []
        return [f"descriptor {fd} ({now[fd]})" for fd in sorted(now.keys() - self.descriptors.keys(), key=int)]

    def _processes_left(self) -> list[int]:
        return [pid for pid in sorted(_pids() - self.pids) if _is_ours(pid, self.scratch)]

    def _files_left(self) -> list[str]:
        return [f"file {self.temporary / name}" for name in sorted(_files(self.temporary) - self.files)]


def _descriptors() -> dict[str, str]:
    """What this process has open, by number."""
    return {entry.name: target for entry in Path("/proc/self/fd").iterdir() if (target := _target(entry))}


def _pids() -> frozenset[int]:
    return frozenset(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _files(directory: Path) -> frozenset[str]:
    return frozenset(entry.name for entry in directory.iterdir())


def _is_ours(pid: int, scratch: bytes) -> bool:
    """Of the dead only those are ours that wait for this process to reap them."""
    process = Path("/proc", str(pid))
    state, parent = _state(process)
    if parent == os.getpid():
        return state != b"X"
    if state in b"ZX":
        return False
    return scratch in os.fsencode(_target(process / "cwd")) or scratch in _read(process / "environ")


def _described(pid: int) -> str:
    process = Path("/proc", str(pid))
    if _state(process)[0] == b"Z":
        return f"zombie {pid} ({_read(process / 'comm').decode(errors='replace').strip()})"
    command = _read(process / "cmdline").replace(b"\0", b" ").decode(errors="replace")
    return f"process {pid} ({command[:200]})"


def _state(process: Path) -> tuple[bytes, int]:
    """Its state and its parent: "pid (command) state parent …", and the command may hold anything."""
    state, parent, *_ = [*_read(process / "stat").rpartition(b") ")[2].split(), b"X", b"0"]
    return state, int(parent)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""
