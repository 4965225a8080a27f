"""The task: it has a node's keeper make one attempt, and hands back what that says. All it leaves is a connection."""

import time
from collections.abc import Iterator, Sequence

from agentcell.executors.connection import attempt_lines
from agentcell.executors.paths import missing
from agentcell_protocol.version import __version__

NAMESPACE = "agentcell"
"""Of the actors' names in Ray."""

ACTOR_SECONDS = 60.0
"""For a node's actor, and its keeper, to be there: a node that has just joined gets them when it is first met."""

LOOK_SECONDS = 0.1
"""Between two looks for an actor that is not there yet: it takes a second to come, and each look asks the head."""

_ADDRESSES: dict[str, str] = {}
"""What this process, which makes one attempt after the other, knows of keepers, by the names of their actors."""


def relay(line: bytes, actors: str, version: str, directories: Sequence[str]) -> Iterator[str | bytes]:
    """Make the attempt of this line: first the id of this node, then lines, one or more at a time.

    `actors` is what the names of the actors begin with, before the node's id. Raises OSError, and RuntimeError where
    another version of ours is installed or a directory is not there, before it has done anything.
    """
    import ray

    if version != __version__:
        raise RuntimeError(f"agentcell {__version__} is installed there, and {version} is needed")
    if absent := missing(directories):
        raise RuntimeError(f"the directory {absent[0]} is not there")
    node = ray.get_runtime_context().get_node_id()
    yield node
    try:
        yield from attempt_lines(_address(actors + node), line)
    except (ConnectionRefusedError, FileNotFoundError):  # nobody has the line: there is another keeper by now
        _ADDRESSES.clear()
        yield from attempt_lines(_address(actors + node), line)


def _address(name: str) -> str:
    if name not in _ADDRESSES:
        _ADDRESSES[name] = _ask(name)
    return _ADDRESSES[name]


def _ask(name: str) -> str:
    """Have the actor say where the keeper is; as a task that waits has no core meanwhile, it is asked only once."""
    import ray

    give_up_at = time.monotonic() + ACTOR_SECONDS
    while True:
        try:
            actor = ray.get_actor(name, NAMESPACE)
            return str(ray.get(actor.address.remote(), timeout=ACTOR_SECONDS))
        except (ValueError, ray.exceptions.RayActorError):
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(LOOK_SECONDS)
