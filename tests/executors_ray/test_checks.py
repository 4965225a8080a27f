"""The executor of a Ray cluster does what every executor does."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conformance.executor_checks import CHECKS, STAND_IN, Check
from tests.executors_ray.clusters import RayCluster
from tests.faults.harness import Room

from agentcell.executors.ray import RayExecutor

pytestmark = [pytest.mark.anyio, pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop is enough here: what differs between them is tried without a cluster, in `test_links`."""
    return "asyncio"


@pytest.fixture(scope="module")
async def executor(cluster: RayCluster, anyio_backend: str) -> AsyncIterator[RayExecutor]:
    """One for all of them."""
    async with RayExecutor(cluster.address, worker_command=STAND_IN) as executor:
        yield executor


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_does_what_every_executor_does(executor: RayExecutor, check: Check, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    await check(executor, Room(room))
