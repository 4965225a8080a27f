"""Caps of a whole batch: what is running when one is reached ends in its own time, and nothing follows. Pure."""

import re
from dataclasses import dataclass

_FAILURES = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<share>%?)")


@dataclass(frozen=True, slots=True)
class MaxFailures:
    """So many failed rows, or such a share of all rows in percent."""

    number: float
    is_share: bool = False

    def __str__(self) -> str:
        return f"{self.number:g}{'%' if self.is_share else ''}"


@dataclass(frozen=True, slots=True)
class Caps:
    """None is no cap. Cost in US dollars, the deadline in Unix seconds."""

    max_cost_usd: float | None = None
    max_failures: MaxFailures | None = None
    deadline: float | None = None


def parse_max_failures(text: str) -> MaxFailures:
    """`20` or `5%`. Raises ValueError, which says what it should be."""
    found = _FAILURES.fullmatch(text.strip())
    cap = None if found is None else MaxFailures(float(found["number"]), is_share=bool(found["share"]))
    is_sound = cap is not None and cap.number > 0 and (cap.number <= 100 if cap.is_share else cap.number.is_integer())
    if cap is None or not is_sound:
        raise ValueError(f"{text!r} is no number of rows; give one such as 20, or a share of all rows such as 5%")
    return cap


def reached(caps: Caps, *, cost_usd: float, failed: int, total: int | None, now: float) -> str | None:
    """The sentence about the first cap that is reached, if one is.

    `cost_usd` is what is known to have been spent, `total` the number of all rows, None while it is not known.
    """
    if caps.max_cost_usd is not None and cost_usd >= caps.max_cost_usd:
        return f"the cap --max-cost-usd {caps.max_cost_usd:g} is reached: ${cost_usd:.4f} are spent"
    if caps.max_failures is not None and failed >= _allowed(caps.max_failures, total):
        return f"the cap --max-failures {caps.max_failures} is reached: {failed} rows have failed"
    if caps.deadline is not None and now >= caps.deadline:
        return "the --deadline is reached"
    return None


def _allowed(cap: MaxFailures, total: int | None) -> float:
    if not cap.is_share:
        return cap.number
    return float("inf") if total is None else max(1.0, total * cap.number / 100)
