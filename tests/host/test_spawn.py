"""A cold child is seen and signalled as it is, whatever else its program does with its children."""

import os
import signal
import sys

import anyio
import pytest

from agentcell.spawn import UNSEEN, start_cold

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 60


async def test_the_status_of_a_child_that_somebody_else_reaped_is_not_invented() -> None:
    child = start_cold({}, "/", command=(sys.executable, "-c", "raise SystemExit(3)"))
    try:
        assert child.pid is not None
        with anyio.fail_after(BOUND_SECONDS):
            await anyio.to_thread.run_sync(os.waitpid, child.pid, 0)
            child.send(signal.SIGKILL)
            assert await child.exited() == UNSEEN
    finally:
        child.close()
