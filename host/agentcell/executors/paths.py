"""Paths that a session needs and that a node may not have, because it is not the machine they were named on."""

import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from errno import ENOENT
from pathlib import PurePath
from typing import Any

from agentcell_protocol.errors import Category, SessionError, session_error

SHARE = "put it on a file system that all nodes share, at the same path on each of them"
"""What to do about it."""


def missing(directories: Iterable[str]) -> list[str]:
    """Those of the directories that this node does not have. Blocks."""
    return [path for path in directories if not os.path.isdir(path)]  # noqa: PTH112 - pathlib raises for long names


def missing_place(order: Mapping[str, Any]) -> SessionError | None:
    """The error of an order (as `wire.packed` makes it) that names a directory this node does not have. Blocks."""
    for member, directory in _directories(order):
        if missing([directory]):
            node = platform.node()
            message = f"{member}: the directory {directory} is not there on node {node}"
            return session_error(Category.SPAWN_FAILED, message, hint=SHARE, errno=ENOENT, path=directory, node=node)
    return None


def _directories(order: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each with who names it; where a directory or a file may be made by the session, the one around it."""
    request = order["request"]
    for member in ("project_dir", "agents_dir"):
        if isinstance(path := request.get(member), str):
            yield member, path
    for holder, member in ((request, "spec_dir"), (request, "result_file"), (order, "stderr_file"), (order, "keep")):
        if isinstance(path := holder.get(member), str):
            yield member, str(PurePath(path).parent)
