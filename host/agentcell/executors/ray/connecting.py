"""Ray's cluster, joined or brought up, for as long as a bridge needs it."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentcell.errors import ExecutorError
from agentcell.executors.ray.absence import SEE_LOG, START
from agentcell.executors.ray.cluster import Cluster, Tell
from agentcell.executors.ray.relay import NAMESPACE
from agentcell.executors.ray.talk import RaySettings

LOOPBACK = "127.0.0.1"

VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0"}
"""Of Ray, where nobody says otherwise: it tells nobody what is run."""

OWN_VARIABLES = {**VARIABLES, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""For a cluster of this machine alone: without the latter Ray takes an address that others can reach, on Linux, too."""

OBJECT_STORE_BYTES = 256 * 1024 * 1024
"""Of a cluster of this machine alone: what passes is small, and the memory is the cells'."""

REACH_SECONDS = 10.0
"""For the head to accept a connection; Ray itself would try for minutes, and then end the process."""


@contextmanager
def connected(settings: RaySettings, tell: Tell) -> Iterator[Cluster]:
    """The cluster at the address, or one of this machine alone. Raises ExecutorError. Blocks."""
    if settings.address is not None:
        check_address(settings.address)
    set_up(OWN_VARIABLES if settings.address is None else VARIABLES)
    import ray

    _connect(ray, settings.address)
    try:
        yield Cluster(ray, settings, tell)
    finally:
        ray.shutdown()


def check_address(address: str) -> None:
    """Raises ExecutorError where nobody listens at HOST:PORT. Blocks."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except (OSError, ValueError) as problem:
        raise _no_cluster(address, problem) from problem


def set_up(variables: Mapping[str, str]) -> None:
    """Set what Ray reads when it is imported."""
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def _connect(ray: Any, address: str | None) -> None:
    try:
        ray.init(**_place(address), namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError, AssertionError) as failure:
        raise _no_cluster(address, failure) from failure


def _place(address: str | None) -> dict[str, Any]:
    if address is not None:
        return {"address": address}
    return {
        "address": "local",
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE_BYTES,
        "_node_ip_address": LOOPBACK,
    }


def _no_cluster(address: str | None, failure: Exception) -> ExecutorError:
    said = str(failure).strip().partition("\n")[0]
    if address is None:
        return ExecutorError(f"a Ray cluster cannot be brought up on this machine: {said}", SEE_LOG)
    return ExecutorError(f"there is no Ray cluster at {address} that can be used from here: {said}", START)
