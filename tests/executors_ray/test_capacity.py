"""How much a cluster has room for."""

from agentcell.executors.ray.capacity import Capacity
from agentcell.memory import MEBIBYTE


def node(cpus: float, memory_mb: float) -> dict[str, float]:
    return {"CPU": cpus, "memory": memory_mb * MEBIBYTE, "object_store_memory": 1.0}


def capacity(*nodes: dict[str, float]) -> Capacity:
    return Capacity(cell_cpus=0.5, cell_memory_mb=256, nodes=nodes)


def test_each_node_has_room_for_what_its_cores_and_its_memory_allow() -> None:
    assert capacity().max_sessions == 0
    assert capacity(node(2, 4096)).max_sessions == 4
    assert capacity(node(64, 1024)).max_sessions == 4
    assert capacity(node(2, 4096), node(0, 4096), {}, node(1, 4096)).max_sessions == 6


def test_what_fits_on_the_largest_node_is_no_misfit() -> None:
    both = capacity(node(2, 1024), node(2, 4096))
    assert both.misfit(4096) is None
    assert both.misfit(4097) == "a cell of 4097 MB fits on no node: the largest has 4096 MB for all of its cells"


def test_where_no_node_has_the_cores_nothing_is_too_large_for_what_may_come() -> None:
    assert not capacity(node(0.25, 4096)).has_cores
    assert capacity(node(0.25, 4096)).misfit(10**6) is None
    assert capacity(node(0.25, 4096), node(0.5, 4096)).has_cores
