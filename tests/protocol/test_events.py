"""Which events a reader gets."""

import pytest
from tests.golden.lines import messages

from agentcell_protocol.events import is_wanted

TYPES = sorted({event["type"] for event in messages("event")})


@pytest.mark.parametrize("event_type", TYPES)
def test_full_has_every_event_and_none_has_none(event_type: str) -> None:
    assert is_wanted(event_type, "full")
    assert not is_wanted(event_type, "none")


def test_a_summary_leaves_out_the_deltas_only() -> None:
    assert [event_type for event_type in TYPES if not is_wanted(event_type, "summary")] == ["text_delta"]
