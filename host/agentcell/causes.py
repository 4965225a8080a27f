"""Why the host ended a cell."""

from dataclasses import dataclass
from typing import Literal

LIMIT_NAMES = {"startup": "startup_seconds", "idle": "idle_seconds", "wall": "max_execution_seconds"}
"""The value of `details.limit` of a timeout → the limit's own name."""


@dataclass(frozen=True, slots=True)
class Limited:
    """The session took too long; in seconds."""

    limit: Literal["startup", "idle", "wall"]
    seconds: float


@dataclass(frozen=True, slots=True)
class Exceeded:
    """The cell took more than the limit of that name allows; for memory, by whose doing: the largest process."""

    limit: str
    allowed: float
    reached: float
    pid: int | None = None
    process: str | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody cancelled the session: the name of a signal, or `HOST_LOST`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lingered:
    """The worker was ended because it lived on for `seconds` after its result or its outcome."""

    after: Literal["result", "outcome"]
    seconds: float


Cause = Limited | Exceeded | Stopped | Lingered
"""Why the host ended a cell; None where the cell ended by itself."""
