"""A time of the clock, as people say it."""

import re
from datetime import datetime

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

_PART = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>[smhd]?)")


def moment(text: str, now: float) -> float:
    """The Unix seconds of `8h`, `1h30m` (from now) or `2030-01-31T07:00` (local time). Raises ValueError."""
    parts = list(_PART.finditer(text))
    if parts and "".join(part[0] for part in parts) == text:
        return now + sum(float(part["number"]) * UNITS[part["unit"]] for part in parts)
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        raise ValueError(f"{text!r} is no time; give one such as 90s, 45m, 8h or 2030-01-31T07:00") from None
