"""What a whole batch may cost, how many of its rows may fail, and until when it may begin new ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcell.batch.caps import Caps, MaxFailures, parse_max_failures, reached

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "cap"),
    [
        ("1", MaxFailures(1)),
        (" 20 ", MaxFailures(20)),
        ("5%", MaxFailures(5, is_share=True)),
        ("0.5%", MaxFailures(0.5, is_share=True)),
        ("100%", MaxFailures(100, is_share=True)),
    ],
)
def test_a_cap_on_failures_is_a_number_or_a_share(text: str, cap: MaxFailures) -> None:
    assert parse_max_failures(text) == cap
    assert str(cap) == text.strip()


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "0%", "101%", "many", "5 %", "%", "1e3", "٣"])
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is no number of rows; give one such as 20"):
        parse_max_failures(text)


@pytest.mark.parametrize(
    ("caps", "sentence"),
    [
        (Caps(), None),
        (Caps(max_cost_usd=2.0, max_failures=MaxFailures(4), deadline=NOW + 1), None),
        (Caps(max_cost_usd=1.5), "the cap --max-cost-usd 1.5 is reached: $1.5000 are spent"),
        (Caps(max_failures=MaxFailures(3)), "the cap --max-failures 3 is reached: 3 rows have failed"),
        (
            Caps(max_failures=MaxFailures(30, is_share=True)),
            "the cap --max-failures 30% is reached: 3 rows have failed",
        ),
        (Caps(max_failures=MaxFailures(31, is_share=True)), None),
        (Caps(deadline=NOW), "the --deadline is reached"),
    ],
)
def test_the_first_cap_that_is_reached_is_named(caps: Caps, sentence: str | None) -> None:
    assert reached(caps, cost_usd=1.5, failed=3, total=10, now=NOW) == sentence


def test_no_share_of_rows_nobody_has_counted_is_reached() -> None:
    caps = Caps(max_failures=MaxFailures(1, is_share=True))
    assert reached(caps, cost_usd=0, failed=50, total=None, now=NOW) is None


@given(st.integers(1, 10_000), st.floats(0.01, 100))
def test_a_share_lets_no_failure_through_before_one_row_has_failed(total: int, percent: float) -> None:
    caps = Caps(max_failures=MaxFailures(percent, is_share=True))
    assert reached(caps, cost_usd=0, failed=0, total=total, now=NOW) is None
    assert reached(caps, cost_usd=0, failed=total, total=total, now=NOW) is not None
