"""What is wrong with a node on which no attempt of ours can be made."""

from collections.abc import Mapping
from typing import Any

from agentcell.errors import ExecutorError
from agentcell.executors.paths import SHARE
from agentcell.executors.ray.contact import UnreachableError


def fault_seen(seen: Mapping[str, Any], name: str, version: str) -> ExecutorError | None:
    """By what the actor of the node of this name has seen; None when there is nothing wrong."""
    if seen["version"] != version:
        reason = f"agentcell {seen['version']} is installed on node {name}, and {version} here"
        return ExecutorError(reason, _install(version))
    if seen["missing"]:
        return ExecutorError(f"the directory {seen['missing'][0]} is not there on node {name}", SHARE)
    return None


def fault_heard(failure: UnreachableError, name: str, version: str) -> ExecutorError | None:
    """By why there is no actor; None when that says nothing of what is installed."""
    if not failure.is_for_good:
        return None
    return ExecutorError(f"agentcell is not installed on node {name}: {last_line(failure)}", _install(version))


def unreachable(failure: UnreachableError, name: str) -> ExecutorError:
    """Of a node that may only be slow, or about to leave."""
    return ExecutorError(f"node {name} cannot be used: {last_line(failure)}", "see what Ray has logged on it")


def last_line(failure: UnreachableError) -> str:
    """The last of what Ray says, which is what was raised there."""
    return str(failure.cause).strip().rpartition("\n")[2] or type(failure.cause).__name__


def _install(version: str) -> str:
    return f"install agentcell[ray]=={version} on every node"
