"""The cluster as the bridge sees it: its nodes, what they have room for, and which of them can make attempts."""

import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio

from agentcell.errors import ExecutorError
from agentcell.executors.ray.actors import Actors
from agentcell.executors.ray.capacity import Capacity
from agentcell.executors.ray.contact import ALIVES_PER_LEASE, Contact, UnreachableError
from agentcell.executors.ray.fault import fault_heard, fault_seen, unreachable
from agentcell.executors.ray.relay import relay
from agentcell.executors.ray.talk import UNDER_WAY, RaySettings
from agentcell.memory import MEBIBYTE

LOOK_SECONDS = 5.0
"""Between two looks at which nodes there are; one that a session is placed on before is noticed by that."""

DESERTED_SECONDS = 15.0
"""Without any node for cells, until what waits for one is given back: one that starts anew may be there by then."""

NODE_ID = "ray.io/node-id"
"""The label that Ray gives each node."""

Tell = Callable[[ExecutorError], Awaitable[None]]

T = TypeVar("T")


def end_at_once() -> None:
    """End this process: its node has died, and another process can go on."""
    print("the node that the bridge was attached to has died", file=sys.stderr, flush=True)
    os._exit(1)


class Cluster:
    """To be made when Ray is connected; `ray` is its module. `tell` gets what is wrong with nodes that are left out."""

    def __init__(self, ray: Any, settings: RaySettings, tell: Tell, *, end: Callable[[], object] = end_at_once) -> None:
        self.capacity = Capacity(cell_cpus=settings.cell_cpus, cell_memory_mb=settings.cell_memory_mb)
        self._ray = ray
        self._settings = settings
        self._tell = tell
        self._end = end
        self._own = ray.get_runtime_context().get_node_id()
        self._actors = Actors(ray, settings)
        self._contacts: dict[str, Contact] = {}
        self._nodes: dict[str, Mapping[str, Any]] = {}
        self._left_out: dict[str, ExecutorError] = {}
        self._told: set[str] = set()
        self._meeting: set[str] = set()
        self._left = set(settings.left)
        self._unsettled: set[str] = set()
        self._settling = anyio.Lock()
        self._peopled_at = anyio.current_time()
        streaming = {"num_returns": "streaming", "_generator_backpressure_num_objects": UNDER_WAY}
        self._relay = ray.remote(max_retries=0, scheduling_strategy="SPREAD", **streaming)(relay)

    async def open(self) -> None:
        """Have a keeper on every node that can have one. Raises ExecutorError for a cluster that cannot be used."""
        await self._look()
        problems = await self._meet_all()
        await self._look()
        if problems and None not in problems:
            raise next(iter([*self._left_out.values(), *filter(None, problems)]))
        for contact in self._contacts.values():
            if not contact.is_ready:
                contact.begin_giving_up()  # it is tried again while it is among those that are there
        if self.capacity.max_sessions == 0:
            reason = f"no node has room for {self.capacity.cell}"
            raise ExecutorError(reason, "bring up a node that has, before the batch")
        await self._tell_left_out()

    async def tend(self, on_deserted: Callable[[str], object]) -> None:
        """Keep the keepers alive, notice which nodes join, and say why while there has been none for long, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_alive)
            while True:
                await anyio.sleep(LOOK_SECONDS)
                await self._look()
                for node, contact in self._contacts.items():
                    is_fine = contact.is_ready and node not in self._left_out
                    if not (is_fine or contact.is_given_up or node in self._meeting):
                        tasks.start_soon(self._meet, node)
                await self._tell_left_out()
                if anyio.current_time() - self._peopled_at > DESERTED_SECONDS:
                    on_deserted("; ".join([f"no node has room for {self.capacity.cell}", *self._faults]))

    def contact(self, node: str) -> Contact:
        """That of the node with this id."""
        if node not in self._contacts:
            make = partial(self._actors.make_anew, node)
            self._contacts[node] = Contact(self._actors.make(node), make, lease_seconds=self._settings.lease_seconds)
        return self._contacts[node]

    def submit(self, line: bytes, *, memory_mb: float, name: str) -> Any:
        """Have a node make the attempt of this line, as soon as one has room; what the task says."""
        options = {"name": name, "num_cpus": self._settings.cell_cpus, "memory": int(memory_mb * MEBIBYTE)}
        if self._left_out:
            options["label_selector"] = {NODE_ID: f"!in({','.join(sorted(self._left_out))})"}
        asked = line, self._actors.prefix, self._settings.version, self._settings.directories
        return self._relay.options(**options).remote(*asked)

    def cancel(self, task: Any, *, force: bool = False) -> None:
        """Take a task back; with `force` one that does not let itself be taken is killed."""
        self._ray.cancel(task, force=force)

    async def settle(self, markers: Sequence[str], node: str | None = None) -> int:
        """End what is left of these on the node, or on all; how many processes were. Nothing is left afterwards.

        On all means on those that are only seen later, too, once they are. Who does not know the node may have met one
        that cannot make attempts any more: all are looked at. What comes meanwhile is settled together.
        """
        if node is not None:
            return await self.contact(node).settle(markers)
        self._unsettled |= set(markers)
        async with self._settling:
            together, self._unsettled = sorted(self._unsettled), set()
            return await self._settle_everywhere(together) if together else 0

    async def _settle_everywhere(self, markers: Sequence[str]) -> int:
        self._left |= set(markers)
        await self._look()
        await self._meet_all()
        await self._tell_left_out()
        there = [contact for node, contact in self._contacts.items() if contact.is_ready or node not in self._left_out]
        return sum(await _gathered(partial(contact.settle, markers) for contact in there))

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
        self._nodes = alive = await self._actors.nodes()
        if self._own not in alive:  # Ray starts nothing any more for a process whose node has died, and may not say so
            self._end()
        self._left_out = {node: fault for node, fault in self._left_out.items() if node in alive}
        self._count()
        for node, contact in list(self._contacts.items()):
            if node not in alive:
                contact.begin_giving_up()
            if contact.is_over and node not in alive:
                self._contacts.pop(node, None)
            elif contact.is_over and node not in self._left_out:
                await contact.begin_again()
        for node in alive:
            self.contact(node)

    def _count(self) -> None:
        there = [node for node in self._nodes if node not in self._left_out]
        self.capacity.nodes = [self._nodes[node]["Resources"] for node in there]
        if self.capacity.has_cores:
            self._peopled_at = anyio.current_time()

    async def _meet_all(self) -> list[ExecutorError | None]:
        nodes = [node for node, contact in self._contacts.items() if not contact.is_given_up]
        return await _gathered(partial(self._meet, node) for node in nodes)

    async def _meet(self, node: str) -> ExecutorError | None:
        """Have a keeper on the node, and nothing of a former run; what is in the way, if something is."""
        self._meeting.add(node)
        try:
            fault = await self._fault(node, self.contact(node))
        except UnreachableError as failure:
            return unreachable(failure, self._name(node))
        finally:
            self._meeting.discard(node)
        if fault is not None:
            self._left_out[node] = fault
        else:
            self._left_out.pop(node, None)
        self._count()
        return fault

    async def _fault(self, node: str, contact: Contact) -> ExecutorError | None:
        """Why the node cannot make attempts, and None once it can. Raises UnreachableError where that is not known."""
        name, version = self._name(node), self._settings.version
        try:
            fault = fault_seen(await contact.look(self._settings.directories), name, version)
            if fault is None and not contact.is_ready:
                await contact.prepare(sorted(self._left))
        except UnreachableError as failure:
            fault = fault_heard(failure, name, version)
            if fault is None:
                raise
            contact.begin_giving_up()  # there is nobody to talk to
        return fault

    def _name(self, node: str) -> str:
        return str(self._nodes[node]["NodeManagerHostname"]) if node in self._nodes else node

    async def _tell_left_out(self) -> None:
        for node, fault in list(self._left_out.items()):
            if node not in self._told:
                self._told.add(node)
                await self._tell(fault)

    @property
    def _faults(self) -> list[str]:
        return sorted({fault.reason for fault in self._left_out.values()})


async def _gathered(works: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
    """What each of these gives; they are done at the same time."""
    found: list[T] = []

    async def do(work: Callable[[], Awaitable[T]]) -> None:
        found.append(await work())

    async with anyio.create_task_group() as tasks:
        for work in works:
            tasks.start_soon(do, work)
    return found
