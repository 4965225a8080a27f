"""An executor is waited for as long as somebody wants it."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcell.errors import ExecutorError
from agentcell.executors.opening import unless

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 30


async def never() -> int:
    await anyio.sleep_forever()
    raise AssertionError


async def test_what_it_opens_to_is_given() -> None:
    async def open_it() -> int:
        return 3

    with anyio.fail_after(BOUND_SECONDS):
        assert await unless(never, open_it) == 3


async def test_who_does_not_want_it_any_more_does_not_wait_for_it() -> None:
    with anyio.fail_after(BOUND_SECONDS):
        assert await unless(checkpoint, never) is None


async def test_why_it_cannot_be_opened_is_raised_as_it_is() -> None:
    async def fail() -> None:
        raise ExecutorError("no cluster", "start one")

    with anyio.fail_after(BOUND_SECONDS), pytest.raises(ExecutorError, match="no cluster; start one"):
        await unless(never, fail)
