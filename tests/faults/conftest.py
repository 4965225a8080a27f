"""A room for each misbehaving worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.harness import ForkedWorkers, Room


@pytest.fixture
def room(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Room]:
    """An empty directory, in which workers are forked or, with the parameter "cold", started afresh.

    Afterwards it must be as empty again.
    """
    directory = tmp_path / "project"
    directory.mkdir()
    if getattr(request, "param", "fork") == "cold":
        yield Room(directory)
    else:
        workers = ForkedWorkers()
        yield Room(directory, workers.spawner)
        workers.server.close()
    assert list(directory.iterdir()) == []
