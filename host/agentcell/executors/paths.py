"""Paths that a session needs and that a node may not have, because it is not the machine they were named on."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

SHARE = "put it on a file system that all nodes share, at the same path on each of them"
"""What to do about it."""


def missing(directories: Iterable[str]) -> list[str]:
    """Those of the directories that this node does not have. Blocks."""
    return [path for path in directories if not os.path.isdir(path)]  # noqa: PTH112 - pathlib raises for long names


def directories(order: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Those that an order (as `wire.packed` makes it) needs, each with who names it.

    Where a directory or a file may be made by the session it is the one around it.
    """
    request = order["request"]
    for member in ("project_dir", "agents_dir"):
        if isinstance(path := request.get(member), str):
            yield member, path
    for holder, member in ((request, "spec_dir"), (request, "result_file"), (order, "stderr_file"), (order, "keep")):
        if isinstance(path := holder.get(member), str):
            yield member, str(PurePath(path).parent)
