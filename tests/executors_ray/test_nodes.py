"""Which nodes the bridge talks to, as the cluster changes, with a Ray that is none."""

from types import SimpleNamespace
from typing import Any

import pytest

from agentcell.executors.ray.cluster import Cluster
from agentcell.executors.ray.talk import RaySettings

pytestmark = [pytest.mark.anyio, pytest.mark.ray, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

NODE = "ab" * 28


class FakeRay:
    """Has one node, and refuses a name that an actor has until that is killed."""

    def __init__(self) -> None:
        self.is_alive = True
        self.made = 0
        self._names: dict[int, str] = {}

    def remote(self, *_things: Any, **_options: Any) -> Any:
        return SimpleNamespace(options=self._options) if _things else lambda _function: None

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": NODE, "Alive": self.is_alive, "Resources": {}}]

    def kill(self, actor: int, *, no_restart: bool) -> None:
        assert no_restart
        self._names.pop(actor, None)

    def _options(self, *, name: str, **_others: Any) -> Any:
        def remote(_settings: dict[str, Any]) -> int:
            if name in self._names.values():
                raise ValueError(name)
            self.made += 1
            self._names[self.made] = name
            return self.made

        return SimpleNamespace(remote=remote)


async def test_a_node_that_was_given_up_and_is_there_all_the_same_is_tried_again() -> None:
    ray = FakeRay()
    cluster = Cluster(ray, RaySettings(lease_seconds=-1000))
    await cluster._look()
    contact = cluster.contact(NODE)
    contact.begin_giving_up()
    await cluster._look()
    assert (ray.made, contact.is_given_up, cluster.contact(NODE) is contact) == (2, False, True)


async def test_a_node_that_is_gone_is_forgotten_when_its_keeper_has_ended() -> None:
    ray = FakeRay()
    cluster = Cluster(ray, RaySettings(lease_seconds=-1000))
    await cluster._look()
    contact = cluster.contact(NODE)
    ray.is_alive = False
    await cluster._look()
    assert contact.is_over
    ray.is_alive = True
    ray.kill(1, no_restart=True)
    await cluster._look()
    assert cluster.contact(NODE) is not contact
