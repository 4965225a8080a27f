"""What may be spent on a session. Limits travel beside the request."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from difflib import get_close_matches
from math import isfinite
from typing import Any

from agentcell_protocol.cell import DRAIN_SECONDS
from agentcell_protocol.errors import RequestError
from agentcell_protocol.refusals import MAX_SHOWN

MEANS_TIME = frozenset({"seconds", "max_seconds", "time", "max_time", "time_limit", "timeout", "timeout_seconds"})
"""Names for the time that a session may take: what is nearest to them in letters is another limit."""

MAY_BE_ZERO = frozenset({"drain_seconds"})
"""Zero is a meaning of its own here: nothing is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a session may take; None is no limit. Raises ValueError, which names the limit.

    `startup_seconds` ends when the session has started, `idle_seconds` is silence while no tool runs,
    `max_execution_seconds` the whole of it, `drain_seconds` the wait for background work. All others count what the
    worker, the CLI and everything below them take together: memory is resident, in units of 1,048,576 bytes, CPU
    seconds are of user and system, output is what comes through the worker's stdout and stderr. `max_cpu_percent`,
    of all cores over ten seconds, only warns.
    """

    startup_seconds: float = 120.0
    idle_seconds: float | None = None
    max_execution_seconds: float = 3600.0
    drain_seconds: float = DRAIN_SECONDS
    max_memory_mb: float | None = None
    max_cpu_percent: float | None = 80.0
    max_cpu_seconds: float | None = None
    max_file_descriptors: int | None = None
    max_threads: int | None = None
    max_processes: int | None = None
    max_output_bytes: int | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            if (reason := _refusal(limit, getattr(self, limit.name))) is not None:
                raise ValueError(f"{limit.name} {reason}")

    @classmethod
    def from_mapping(cls, members: object) -> "Limits":
        """The limits of a decoded `limits` member. Raises RequestError, which names the limit."""
        if members is None:
            return cls()
        if not isinstance(members, Mapping):
            raise RequestError("limits", "it is not a JSON object", "send an object of limits, or leave it out")
        for name in members:
            _check_name(str(name)[:MAX_SHOWN])
        for limit in fields(cls):
            if limit.name in members and (reason := _refusal(limit, members[limit.name])) is not None:
                raise RequestError(f"limits.{limit.name}", reason, "give another value, or leave it out")
        return cls(**members)


def _refusal(limit: Field[Any], value: Any) -> str | None:
    """Why the value is none for the limit, if it is not."""
    if value is None and "None" in str(limit.type):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return "must be a number"
    if "int" in str(limit.type) and not isinstance(value, int):
        return "must be a whole number"
    if limit.name in MAY_BE_ZERO:
        return "must not be negative" if value < 0 else None
    return "must be positive" if value <= 0 else None


def _check_name(name: str) -> None:
    known = [field.name for field in fields(Limits)]
    if name in known:
        return
    close = ["max_execution_seconds"] if name in MEANS_TIME else get_close_matches(name, known, n=1)
    remedy = f"did you mean {close[0]}?" if close else f"leave it out; the limits are {', '.join(known)}"
    raise RequestError(f"limits.{name}", "is not a limit", remedy)
