"""Attempts on the nodes of a Ray cluster. Ray itself is needed by other processes only: the bridge, and the nodes'."""

from agentcell.executors.ray.executor import RayExecutor

__all__ = ["RayExecutor"]
