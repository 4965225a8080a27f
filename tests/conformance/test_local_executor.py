"""The executor of this machine does what every executor does."""

from pathlib import Path

import pytest
from tests.conformance.executor_checks import CHECKS, STAND_IN, Check
from tests.faults.harness import Room

from agentcell.executors.local import LocalExecutor

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_does_what_every_executor_does(check: Check, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    async with LocalExecutor(2, worker_command=STAND_IN) as executor:
        await check(executor, Room(room))
