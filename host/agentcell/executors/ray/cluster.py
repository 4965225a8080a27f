"""The cluster as the bridge sees it: its nodes, what they have room for, and an actor on each of them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import anyio

from agentcell.errors import ExecutorError
from agentcell.executors.ray.capacity import Capacity
from agentcell.executors.ray.contact import ALIVES_PER_LEASE, Contact, UnreachableError
from agentcell.executors.ray.node import NodeActor
from agentcell.executors.ray.relay import NAMESPACE, relay
from agentcell.executors.ray.talk import UNDER_WAY, RaySettings
from agentcell.memory import MEBIBYTE
from agentcell_protocol.version import __version__

LOOK_SECONDS = 5.0
"""Between two looks at which nodes there are; one that a session is placed on before is noticed by that."""

THREADS = 16
"""Of an actor: some of its methods wait, and what is said meanwhile must not."""

NAME_SECONDS = 10.0
"""For the name of an actor that is gone to be free again."""

RETRY_SECONDS = 0.2
"""Between two tries to have the name."""

MISSING = "No module named"
"""What Ray says of a node on which agentcell is not installed: it hands on what Python said there."""

T = TypeVar("T")


class Cluster:
    """To be made when Ray is connected; `ray` is its module."""

    def __init__(self, ray: Any, settings: RaySettings) -> None:
        self.actors = f"agentcell-{uuid4()}-"
        """What the actors' names begin with, before the id of their node: other drivers have others."""
        self.capacity = Capacity(cell_cpus=settings.cell_cpus, cell_memory_mb=settings.cell_memory_mb)
        self._ray = ray
        self._settings = settings
        self._contacts: dict[str, Contact] = {}
        self._actor = ray.remote(NodeActor)
        streaming = {"num_returns": "streaming", "_generator_backpressure_num_objects": UNDER_WAY}
        self._relay = ray.remote(max_retries=0, scheduling_strategy="SPREAD", **streaming)(relay)

    async def open(self) -> None:
        """Have a keeper on every node. Raises ExecutorError for a cluster that cannot be used."""
        await self._look()
        seen: dict[str, Any] = {}
        async with anyio.create_task_group() as tasks:
            for node, contact in self._contacts.items():
                tasks.start_soon(_look_at, contact, self._settings.directories, seen, node)
        has_usable = any(not isinstance(one, UnreachableError) for one in seen.values())
        for node in sorted(seen):
            if has_usable and _may_have_gone(seen[node]):
                self._contacts[node].begin_giving_up()  # it is tried again while it is among those that are there
            else:
                self._check(seen[node])
        if self.capacity.max_sessions == 0:
            reason = f"no node has room for {self.capacity.cell}"
            raise ExecutorError(reason, "bring up a node that has, before the batch")

    async def tend(self) -> None:
        """Keep the keepers alive, and notice which nodes join, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_alive)
            while True:
                await anyio.sleep(LOOK_SECONDS)
                await self._look()

    def contact(self, node: str) -> Contact:
        """That of the node with this id."""
        if node not in self._contacts:
            make = partial(self._make_anew, node)
            self._contacts[node] = Contact(self._make(node), make, lease_seconds=self._settings.lease_seconds)
        return self._contacts[node]

    def submit(self, line: bytes, *, memory_mb: float, name: str) -> Any:
        """Have a node make the attempt of this line, as soon as one has room; what the task says."""
        options = self._relay.options(name=name, num_cpus=self._settings.cell_cpus, memory=int(memory_mb * MEBIBYTE))
        return options.remote(line, self.actors, self._settings.version)

    def cancel(self, task: Any) -> None:
        """Take a task back."""
        self._ray.cancel(task)

    async def settle(self, markers: Sequence[str], node: str | None = None) -> int:
        """End what is left of these on the node, or on all; how many processes were. Nothing is left afterwards."""
        contacts = list(self._contacts.values()) if node is None else [self.contact(node)]
        return sum(await _gathered(partial(contact.settle, markers) for contact in contacts))

    async def close(self) -> None:
        """End the keepers."""
        there = [contact for contact in self._contacts.values() if not contact.is_given_up]
        await _gathered(contact.close for contact in there)

    async def _keep_alive(self) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                for contact in self._contacts.values():
                    if not contact.is_given_up:
                        tasks.start_soon(contact.keep_alive)
                await anyio.sleep(self._settings.lease_seconds / ALIVES_PER_LEASE)

    async def _look(self) -> None:
        """Take note of who is there: a node that is gone is forgotten when its keeper has ended for certain.

        One that was given up and is still there is then tried again.
        """
        alive = await self._alive()
        self.capacity.nodes = [node["Resources"] for node in alive.values()]
        for node, contact in list(self._contacts.items()):
            if node not in alive:
                contact.begin_giving_up()
            if contact.is_over and node in alive:
                await contact.begin_again()
            elif contact.is_over:
                del self._contacts[node]
        for node in alive:
            self.contact(node)

    async def _alive(self) -> dict[str, Mapping[str, Any]]:
        nodes = await anyio.to_thread.run_sync(self._ray.nodes)
        return {node["NodeID"]: node for node in nodes if node["Alive"]}

    def _make(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = self._actor.options(
            name=self.actors + node,
            namespace=NAMESPACE,
            num_cpus=0,
            max_restarts=0,
            max_concurrency=THREADS,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        return options.remote(asdict(self._settings))

    async def _make_anew(self, node: str, actor: Any) -> Any:
        """Another actor in the place of one that does not answer; None where there is no such node any more."""
        self._ray.kill(actor, no_restart=True)
        with anyio.move_on_after(NAME_SECONDS):
            while node in await self._alive():
                try:
                    return self._make(node)
                except ValueError:  # the name is still that of the actor before
                    await anyio.sleep(RETRY_SECONDS)
        return None

    def _check(self, seen: "Mapping[str, Any] | UnreachableError") -> None:
        if isinstance(seen, UnreachableError):
            raise _unusable(seen)
        ours, name = self._settings.version, seen["name"]
        if seen["version"] != ours:
            reason = f"agentcell {seen['version']} is installed on node {name}, and {ours} here"
            raise ExecutorError(reason, f"install agentcell[ray]=={ours} on every node")
        if seen["missing"]:
            reason = f"the directory {seen['missing'][0]} is not there on node {name}"
            remedy = "put it on a file system that all nodes share, at the same path on each of them"
            raise ExecutorError(reason, remedy)


def _may_have_gone(seen: "Mapping[str, Any] | UnreachableError") -> bool:
    """Whether the node may have died without Ray having noticed: others can do without it."""
    return isinstance(seen, UnreachableError) and MISSING not in str(seen.cause)


def _unusable(failure: UnreachableError) -> ExecutorError:
    """What is wrong with a node that has no actor, or no keeper."""
    last = str(failure.cause).strip().rpartition("\n")[2]
    if MISSING in str(failure.cause):
        reason = f"agentcell is not installed on every node: {last}"
        return ExecutorError(reason, f"install agentcell[ray]=={__version__} on every node")
    return ExecutorError(f"a node cannot be used: {last}", "see what Ray has logged on it")


async def _look_at(contact: Contact, directories: Sequence[str], seen: dict[str, Any], node: str) -> None:
    try:
        seen[node] = await contact.look(directories)
    except UnreachableError as failure:
        seen[node] = failure


async def _gathered(works: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
    """What each of these gives; they are done at the same time."""
    found: list[T] = []

    async def do(work: Callable[[], Awaitable[T]]) -> None:
        found.append(await work())

    async with anyio.create_task_group() as tasks:
        for work in works:
            tasks.start_soon(do, work)
    return found
