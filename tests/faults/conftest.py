"""A room for each misbehaving worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.harness import ForkedWorkers, Room, bring_up


@pytest.fixture(scope="module")
def forked_workers() -> Iterator[ForkedWorkers]:
    """One server for the tests of a module."""
    workers = ForkedWorkers()
    bring_up(workers.server)
    yield workers
    workers.server.close()


@pytest.fixture
def room(tmp_path: Path, request: pytest.FixtureRequest, forked_workers: ForkedWorkers) -> Iterator[Room]:
    """An empty directory, in which workers are forked or, with the parameter "cold", started afresh.

    Afterwards it must be as empty again.
    """
    directory = tmp_path / "project"
    directory.mkdir()
    is_cold = getattr(request, "param", "fork") == "cold"
    yield Room(directory) if is_cold else Room(directory, forked_workers.spawner)
    assert list(directory.iterdir()) == []
