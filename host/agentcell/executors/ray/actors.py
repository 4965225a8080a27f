"""The actors of a cluster's nodes, each with a name that its node's tasks find it by."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any
from uuid import uuid4

import anyio

from agentcell.executors.ray.node import NodeActor
from agentcell.executors.ray.relay import NAMESPACE
from agentcell.executors.ray.talk import RaySettings

THREADS = 16
"""Of an actor: some of its methods wait, and what is said meanwhile must not."""

NAME_SECONDS = 10.0
"""For the name of an actor that was killed to be free again: it is as soon as the head has taken note of that."""

RETRY_SECONDS = 0.2
"""Between two tries to have the name, which each ask the head."""


class Actors:
    """To be made when Ray is connected; `ray` is its module."""

    def __init__(self, ray: Any, settings: RaySettings) -> None:
        self.prefix = f"agentcell-{uuid4()}-"
        """What their names begin with, before the id of their node: other drivers have others."""
        self._ray = ray
        self._settings = asdict(replace(settings, left=()))
        self._actor = ray.remote(NodeActor)

    async def nodes(self) -> dict[str, Mapping[str, Any]]:
        """What Ray says of the nodes that are alive, by their ids."""
        nodes = await anyio.to_thread.run_sync(self._ray.nodes)
        return {node["NodeID"]: node for node in nodes if node["Alive"]}

    def make(self, node: str) -> Any:
        """One on this node. Raises ValueError while there is one of this name."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = self._actor.options(
            name=self.prefix + node,
            namespace=NAMESPACE,
            num_cpus=0,
            max_restarts=0,
            max_concurrency=THREADS,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        return options.remote(self._settings)

    async def make_anew(self, node: str, actor: Any) -> Any:
        """Another one in the place of one that does not answer; None where there is no such node any more."""
        self._ray.kill(actor, no_restart=True)
        with anyio.move_on_after(NAME_SECONDS):
            while node in await self.nodes():
                try:
                    return self.make(node)
                except ValueError:  # the name is still that of the actor before
                    await anyio.sleep(RETRY_SECONDS)
        return None
