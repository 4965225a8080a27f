"""What is inside a cell gives up before the host does, and what the host is to name outlasts it."""

from agentcell.limits import Limits
from agentcell.timers import inner_timers


def test_the_sdk_is_more_patient_than_the_startup_limit() -> None:
    assert inner_timers(Limits(startup_seconds=300, drain_seconds=2.5)) == {
        "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT": "330000",
        "AGENTCELL_DRAIN_SECONDS": "2.5",
    }


def test_the_wait_for_background_work_ends_before_it_is_idle() -> None:
    assert inner_timers(Limits(idle_seconds=5))["AGENTCELL_DRAIN_SECONDS"] == "4.0"
    assert inner_timers(Limits(idle_seconds=60))["AGENTCELL_DRAIN_SECONDS"] == "10.0"
