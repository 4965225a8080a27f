"""A time of the clock, as people say it."""

from datetime import datetime

import pytest

from agentcell.commands.moment import moment

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("45m", 2700), ("8h", 28800), ("1h30m", 5400), ("0.5d", 43200)]
)
def test_a_span_is_from_now(text: str, seconds: float) -> None:
    assert moment(text, NOW) == NOW + seconds


def test_a_date_is_local_unless_it_says_otherwise() -> None:
    assert moment("2030-01-31T07:00", NOW) == datetime(2030, 1, 31, 7).astimezone().timestamp()
    assert moment("2030-01-31T07:00+00:00", NOW) == 1896073200


@pytest.mark.parametrize("text", ["", "soon", "8 h", "-1h", "h"])
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; give one such as 90s"):
        moment(text, NOW)
