"""Which nodes the bridge talks to, as the cluster changes, with a Ray that is none."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from ray.exceptions import ActorDiedError, RayError

from agentcell.errors import ExecutorError
from agentcell.executors.paths import SHARE
from agentcell.executors.ray import cluster as cluster_module
from agentcell.executors.ray.cluster import Cluster
from agentcell.executors.ray.talk import RaySettings
from agentcell_protocol.version import __version__

pytestmark = [pytest.mark.anyio, pytest.mark.ray, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

BOUND_SECONDS = 30

NODE, OTHER = "ab" * 28, "cd" * 28

FINE = {"version": __version__, "missing": []}

OLD = {"version": "0.0.1", "missing": []}

INSTALL = f"install agentcell[ray]=={__version__} on every node"


class FakeActor:
    """Answers what it is told to, or dies; `settled` are the markers that it was asked for, call by call."""

    def __init__(self, ray: "FakeRay", node: str) -> None:
        self._ray = ray
        self._node = node

    def __getattr__(self, method: str) -> Any:
        return SimpleNamespace(remote=partial(self._answer, method))

    async def _answer(self, method: str, *arguments: Any) -> Any:
        seen = self._ray.seen.get(self._node, RayError("it is gone"))
        if isinstance(seen, ActorDiedError):
            self._ray.seen[self._node] = FINE  # the next one lives
        if isinstance(seen, Exception):
            raise seen
        if method == "settle":
            self._ray.settled.append((self._node, *arguments))
            return len(*arguments)
        return seen if method == "look" else None


class FakeRay:
    """Has these nodes with what is `seen` on each, and refuses a name that an actor has until that is killed."""

    def __init__(self, *nodes: str) -> None:
        self.seen: dict[str, Any] = dict.fromkeys(nodes or [NODE], FINE)
        self.made = 0
        self.settled: list[tuple[str, list[str]]] = []
        self.submitted: list[dict[str, Any]] = []
        self._names: dict[FakeActor, str] = {}

    def remote(self, *things: Any, **_options: Any) -> Any:
        return (
            SimpleNamespace(options=self._options)
            if things
            else lambda _function: SimpleNamespace(options=self._submit)
        )

    def nodes(self) -> list[dict[str, Any]]:
        resources = {"CPU": 2.0, "memory": 2.0**30}
        return [
            {"NodeID": node, "Alive": True, "Resources": resources, "NodeManagerHostname": node[:2]}
            for node in self.seen
        ]

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: NODE)

    def kill(self, actor: FakeActor, *, no_restart: bool) -> None:
        assert no_restart
        self._names.pop(actor, None)

    def forget(self) -> None:
        """Have all names free."""
        self._names.clear()

    def _submit(self, **options: Any) -> Any:
        return SimpleNamespace(remote=lambda *_arguments: self.submitted.append(options))

    def _options(self, *, name: str, **_others: Any) -> Any:
        def remote(_settings: dict[str, Any]) -> FakeActor:
            if name in self._names.values():
                raise ValueError(name)
            self.made += 1
            actor = FakeActor(self, name[-len(NODE) :])
            self._names[actor] = name
            return actor

        return SimpleNamespace(remote=remote)


class Told:
    """Takes what is wrong with nodes that are left out."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    async def __call__(self, fault: ExecutorError) -> None:
        self.faults.append(str(fault))


def cluster_of(ray: FakeRay, **settings: Any) -> Cluster:
    """Its keepers have ended as soon as their nodes are given up."""
    return Cluster(ray, RaySettings(**{"lease_seconds": -1000, **settings}), Told())


def selector(ray: FakeRay, cluster: Cluster) -> Any:
    """Which nodes a task is kept away from."""
    cluster.submit(b"", memory_mb=1, name="a")
    return ray.submitted[-1].get("label_selector")


async def test_a_node_that_was_given_up_and_is_there_all_the_same_is_tried_again() -> None:
    ray = FakeRay()
    cluster = cluster_of(ray)
    await cluster._look()
    contact = cluster.contact(NODE)
    contact.begin_giving_up()
    await cluster._look()
    assert (ray.made, contact.is_given_up, cluster.contact(NODE) is contact) == (2, False, True)


async def test_a_node_that_is_gone_is_forgotten_when_its_keeper_has_ended() -> None:
    ray = FakeRay(NODE, OTHER)
    cluster = cluster_of(ray)
    await cluster._look()
    contact = cluster.contact(OTHER)
    del ray.seen[OTHER]
    await cluster._look()
    assert contact.is_over
    ray.seen[OTHER] = FINE
    ray.forget()
    await cluster._look()
    assert cluster.contact(OTHER) is not contact


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (OLD, f"agentcell 0.0.1 is installed on node cd, and {__version__} here; {INSTALL}"),
        (
            {"version": __version__, "missing": ["/shared"]},
            f"the directory /shared is not there on node cd; {SHARE}",
        ),
        (
            RayError("…\nModuleNotFoundError: No module named 'agentcell'"),
            "agentcell is not installed on node cd: ModuleNotFoundError: No module named 'agentcell'; " + INSTALL,
        ),
    ],
)
async def test_a_node_that_cannot_make_attempts_gets_none_and_that_is_told_once(seen: Any, told: str) -> None:
    ray, faults = FakeRay(NODE, OTHER), Told()
    cluster = Cluster(ray, RaySettings(lease_seconds=-1000), faults)
    ray.seen[OTHER] = seen
    await cluster.open()
    assert selector(ray, cluster) == {"ray.io/node-id": f"!in({OTHER})"}
    await cluster._look()
    await cluster.settle(["x"])
    await cluster._tell_left_out()
    assert faults.faults == [told]
    assert cluster.capacity.max_sessions == 4
    assert ray.settled == [(NODE, ["x"])]


async def test_where_no_node_can_make_attempts_that_is_said_and_why() -> None:
    ray = FakeRay(NODE, OTHER)
    ray.seen.update({NODE: OLD, OTHER: RayError("slow")})
    with pytest.raises(ExecutorError, match=r"agentcell 0\.0\.1 is installed on node ab"):
        await cluster_of(ray).open()


async def test_an_actor_that_is_killed_while_it_starts_has_a_successor() -> None:
    ray = FakeRay()
    ray.seen[NODE] = ActorDiedError()
    cluster = cluster_of(ray)
    await cluster.open()
    assert (ray.made, cluster.contact(NODE).is_ready) == (2, True)


async def test_a_node_that_has_its_directories_again_gets_attempts_again() -> None:
    ray = FakeRay(NODE, OTHER)
    cluster = cluster_of(ray)
    await cluster.open()
    ray.seen[OTHER] = {"version": __version__, "missing": ["/shared"]}
    await cluster.settle(["x"])
    assert selector(ray, cluster) == {"ray.io/node-id": f"!in({OTHER})"}
    ray.seen[OTHER] = FINE
    await cluster._meet(OTHER)
    assert selector(ray, cluster) is None


async def test_of_a_node_that_joins_nothing_is_left_that_was_to_end_everywhere() -> None:
    ray = FakeRay()
    cluster = cluster_of(ray, left=("before",))
    await cluster.open()
    await cluster.settle(["at first"])
    ray.seen[OTHER] = FINE
    await cluster.settle(["then"])
    assert ray.settled == [
        (NODE, ["before"]),
        (NODE, ["at first"]),
        (OTHER, ["at first", "before", "then"]),
        (NODE, ["then"]),
        (OTHER, ["then"]),
    ]


async def test_a_node_that_could_not_be_reached_is_swept_once_it_is() -> None:
    ray = FakeRay(NODE, OTHER)
    ray.seen[OTHER] = RayError("about to die")
    cluster = cluster_of(ray)
    await cluster.open()
    await cluster.settle(["before"])
    ray.seen[OTHER] = FINE
    await cluster._look()
    await cluster._meet(OTHER)
    assert ray.settled == [(NODE, ["before"]), (OTHER, ["before"])]


async def test_a_bridge_whose_own_node_has_died_ends() -> None:
    ray, ended = FakeRay(NODE, OTHER), anyio.Event()
    cluster = Cluster(ray, RaySettings(), Told(), end=ended.set)
    await cluster.open()
    assert not ended.is_set()
    del ray.seen[NODE]
    await cluster._look()
    assert ended.is_set()


async def test_what_waits_is_given_back_when_there_has_been_no_node_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(cluster_module, "DESERTED_SECONDS", 0.05)
    ray = FakeRay(NODE, OTHER)
    ray.seen[NODE] = OLD
    cluster = cluster_of(ray, lease_seconds=BOUND_SECONDS)
    await cluster.open()
    del ray.seen[OTHER]
    given_back: list[str] = []
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:

            def give_back(reason: str) -> None:
                given_back.append(reason)
                tasks.cancel_scope.cancel()

            tasks.start_soon(cluster.tend, give_back)
    why = f"agentcell 0.0.1 is installed on node ab, and {__version__} here"
    assert given_back == [f"no node has room for a cell of 0.5 cores and 256 MB; {why}"]
