"""One cluster for all tests of a file that need one, and bridges that are played."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.executors_ray.bridges import Bridge
from tests.executors_ray.clusters import RAY, RayCluster, ray_cluster

import agentcell.executors.ray.link


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """Two nodes with two cores each, on the loopback."""
    with ray_cluster() as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in RAY.items():
            patch.setenv(name, value)
        yield cluster


@pytest.fixture
def bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bridge:
    """What to call for the bridges that start from then on to be this program."""
    file = tmp_path / "bridge.py"
    monkeypatch.setattr(agentcell.executors.ray.link, "BRIDGE", (sys.executable, "-P", str(file)))

    def set_program(text: str) -> None:
        file.write_text(text)

    return set_program
