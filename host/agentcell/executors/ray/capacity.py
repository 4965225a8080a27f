"""What the nodes of a cluster have room for, by what they say they have."""

from collections.abc import Mapping, Sequence

from agentcell.memory import MEBIBYTE

CPU, MEMORY = "CPU", "memory"
"""What Ray calls a core, and a byte."""


class Capacity:
    """`nodes` are what each of them has in all."""

    def __init__(self, *, cell_cpus: float, cell_memory_mb: float, nodes: Sequence[Mapping[str, float]] = ()) -> None:
        self.nodes = nodes
        self._cpus = cell_cpus
        self._memory_mb = cell_memory_mb

    @property
    def cell(self) -> str:
        """What a cell asks for that asks for nothing special."""
        return f"a cell of {self._cpus:g} cores and {self._memory_mb:g} MB"

    @property
    def max_sessions(self) -> int:
        """How many cells run at a time when they ask for nothing special."""
        return sum(int(min(node.get(CPU, 0.0) / self._cpus, _memory_mb(node) / self._memory_mb)) for node in self.nodes)

    @property
    def has_cores(self) -> bool:
        """Whether there is a node that has those of a cell."""
        return bool(self._with_cores)

    def misfit(self, memory_mb: float) -> str | None:
        """Why no node has ever room for a cell that asks for so much; None where one has, or where there is none."""
        most = max(map(_memory_mb, self._with_cores), default=memory_mb)
        if most < memory_mb:
            return f"a cell of {memory_mb:g} MB fits on no node: the largest has {most:.0f} MB for all of its cells"
        return None

    @property
    def _with_cores(self) -> list[Mapping[str, float]]:
        return [node for node in self.nodes if node.get(CPU, 0.0) >= self._cpus]


def _memory_mb(node: Mapping[str, float]) -> float:
    return node.get(MEMORY, 0.0) / MEBIBYTE
