"""What holds for all rows of a batch: the members that they may leave out, and the places that are the batch's own."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agentcell_protocol.errors import RequestError


@dataclass(frozen=True, slots=True)
class Rules:
    """`defaults` (see `rows.checked_defaults`) fill the members that a row leaves out; `own` see `owned`."""

    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    own: tuple[str, ...] = ()

    def check(self, result_file: str | None) -> None:
        """Raise RequestError when the result of a row would be put over what the batch keeps, or over its rows."""
        if result_file is None or not self.own:
            return
        ways = {placed(result_file), os.path.realpath(result_file)}
        for place in self.own:
            if any(Path(way).is_relative_to(place) for way in ways):
                raise RequestError(
                    "result_file", f"{result_file} belongs to the batch itself", f"name a place outside of {place}"
                )


def owned(places: Iterable[str | Path]) -> tuple[str, ...]:
    """These directories and files as places where no row may have its result put; they need not exist."""
    return tuple(map(os.path.realpath, places))


def placed(path: str) -> str:
    """Where a file is put under this name by rename, whichever way its folder is named; `path` where none can be."""
    file = Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises for an unknown user
    try:
        return os.path.join(os.path.realpath(file.parent), file.name)  # noqa: PTH118 - the folder is a string
    except ValueError:
        return path
