"""What every test gets: both event loops, and the proof that it left nothing behind."""

import gc
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.leftovers import Before

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


def pytest_configure() -> None:
    """Started in the background of a shell, with SIGINT ignored, tests and children mind it all the same.

    A run that is terminated unwinds, so that what it has started is ended.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both event loops; a test for one only says `@pytest.mark.parametrize("anyio_backend", ["asyncio"])`."""
    return str(request.param)


@pytest.fixture(scope="session")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where this run's temporary files lie, those of its children too: other runs have other places."""
    directory = tmp_path_factory.mktemp("t", numbered=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(directory))
        patch.setattr(tempfile, "tempdir", str(directory))
        yield directory


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(tmp_path_factory: pytest.TempPathFactory, temporary: Path) -> Iterator[None]:
    """Fails a test that leaves a process, a zombie, an open descriptor or a temporary file."""
    if not HAS_PROC:
        yield
        return
    before = Before.look(tmp_path_factory.getbasetemp(), temporary)
    yield
    if left := before.left():
        gc.collect()  # an open file in a cycle is untidy, not left behind
        left = _left_after_grace(before)
        before.end()
    assert not left, "left behind: " + "; ".join(left)


def _left_after_grace(before: Before) -> list[str]:
    deadline = time.monotonic() + GRACE_SECONDS
    while (left := before.left()) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return left
