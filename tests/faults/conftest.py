"""A room for each misbehaving worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.harness import Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """An empty directory; afterwards it must be as empty again."""
    directory = tmp_path / "project"
    directory.mkdir()
    yield Room(directory)
    assert list(directory.iterdir()) == []
