"""One cluster for all tests of a file that need one."""

from collections.abc import Iterator

import pytest
from tests.executors_ray.clusters import RAY, RayCluster, ray_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """Two nodes with two cores each, on the loopback."""
    with ray_cluster() as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in RAY.items():
            patch.setenv(name, value)
        yield cluster
