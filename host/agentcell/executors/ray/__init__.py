"""Attempts on the nodes of a Ray cluster. Ray itself is needed by other processes only: the bridge, and the nodes'.

A task on a node needs little of this package, and would have all of it with `RayExecutor`: that is loaded when it is
first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentcell.executors.ray.executor import RayExecutor

__all__ = ["RayExecutor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agentcell.executors.ray.executor import RayExecutor

    return RayExecutor
