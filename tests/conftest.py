"""What every test gets: both event loops, and the proof that it left nothing behind."""

import gc
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# a busy machine makes an example slow, not wrong; in CI every run tries the same ones
settings.register_profile(
    "agentcell", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("agentcell")

GRACE_SECONDS = 3.0
"""What a test stopped may take this long to be gone: threads close their sockets, the kernel its processes."""

LOOK_SECONDS = 0.02
"""Between two looks, taken only while something is still there."""

HAS_PROC = Path("/proc/self/fd").is_dir()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both event loops; a test for one only says `@pytest.mark.parametrize("anyio_backend", ["asyncio"])`."""
    return str(request.param)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The directory below which every `tmp_path` of this run lies: a process that knows it came from a test."""
    return os.fsencode(tmp_path_factory.getbasetemp())


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(scratch: bytes) -> Iterator[None]:
    """Fails a test that leaves a process or an open descriptor."""
    if not HAS_PROC:
        yield
        return
    descriptors, pids = _descriptors(), _pids()
    yield
    if left := _left(descriptors, pids, scratch):
        gc.collect()  # an open file in a cycle is untidy, not left behind
        left = _left_after_grace(descriptors, pids, scratch)
        _end_left(pids, scratch)
    assert not left, "left behind: " + "; ".join(left)


def _left_after_grace(descriptors: dict[str, str], pids: set[int], scratch: bytes) -> list[str]:
    deadline = time.monotonic() + GRACE_SECONDS
    while (left := _left(descriptors, pids, scratch)) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return left


def _left(descriptors: dict[str, str], pids: set[int], scratch: bytes) -> list[str]:
    return _descriptors_left(descriptors) + _processes_left(pids, scratch)


def _descriptors_left(before: dict[str, str]) -> list[str]:
    now = _descriptors()
    if len(now) <= len(before):
        return []
    return [f"descriptor {fd} ({now[fd]})" for fd in sorted(now.keys() - before.keys(), key=int)]


def _processes_left(before: set[int], scratch: bytes) -> list[str]:
    return [f"process {pid} ({_command(pid)})" for pid in sorted(_pids() - before) if _is_ours(pid, scratch)]


def _end_left(before: set[int], scratch: bytes) -> None:
    for pid in _pids() - before:
        with suppress(ProcessLookupError):
            if _is_ours(pid, scratch):
                os.kill(pid, signal.SIGKILL)


def _descriptors() -> dict[str, str]:
    """What this process has open, by number."""
    return {entry.name: target for entry in Path("/proc/self/fd").iterdir() if (target := _target(entry))}


def _pids() -> set[int]:
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


def _is_ours(pid: int, scratch: bytes) -> bool:
    """Whether it lives and is a child of this process, or lives in, or was told of, this run's directory."""
    process = Path("/proc", str(pid))
    # "pid (command) state parent …", and the command may hold anything
    state, parent, *_ = [*_read(process / "stat").rpartition(b") ")[2].split(), b"Z", b"0"]
    if state in b"ZX":
        return False
    if int(parent) == os.getpid():
        return True
    return scratch in os.fsencode(_target(process / "cwd")) or scratch in _read(process / "environ")


def _command(pid: int) -> str:
    return _read(Path("/proc", str(pid), "cmdline")).replace(b"\0", b" ").decode(errors="replace")[:200]


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
