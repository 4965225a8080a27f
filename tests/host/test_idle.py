"""Silence is idle only when nothing is to be expected."""

from math import inf
from typing import Any

import pytest

from agentcell.idle import Silence

STARTED = {"type": "session_started", "session_id": "s", "model": None}
CALL = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
DONE = {"type": "tool_result", "id": "t", "is_error": False, "bytes": 0}
CHECK = {"type": "check", "name": "coverage", "state": "started"}
ENDED = {"type": "session_ended", "session_id": "s", "status": "complete"}
TEXT = {"type": "text_delta", "text": ""}


@pytest.mark.parametrize(
    ("events", "ends_at"),
    [
        ([], inf),
        ([TEXT], inf),
        ([STARTED], 11),
        ([STARTED, TEXT], 12),
        ([STARTED, CALL], inf),
        ([STARTED, CALL, DONE], 13),
        ([STARTED, CALL, {**CALL, "id": "u"}, DONE], inf),
        ([STARTED, CALL, STARTED], 13),
        ([CHECK], inf),
        ([STARTED, ENDED], inf),
        ([STARTED, ENDED, CHECK], inf),
        ([STARTED, CALL, ENDED, STARTED], 14),
        ([STARTED, {"type": "api_retry", "delay_s": 30}], 42),
        ([STARTED, {"type": "api_retry", "delay_s": 30}, TEXT], 13),
        ([STARTED, {"type": "api_retry", "delay_s": "soon"}], 12),
        ([STARTED, {"type": "outcome", "result": {}}], inf),
        ([STARTED, {"type": "outcome", "result": {}}, TEXT], inf),
    ],
)
def test_silence_lasts_from_the_last_event_unless_something_is_expected(
    events: list[dict[str, Any]], ends_at: float
) -> None:
    silence = Silence(10)
    for now, event in enumerate(events, start=1):
        silence.hear(event)
        silence.resume(now)
    assert silence.ends_at == ends_at


def test_while_a_listener_takes_its_time_there_is_no_silence() -> None:
    silence = Silence(10)
    silence.hear(STARTED)
    silence.resume(1)
    silence.hear(TEXT)
    assert silence.ends_at == inf


def test_what_is_no_event_does_not_end_a_silence() -> None:
    silence = Silence(10)
    silence.hear(STARTED)
    for now in (1, 2):
        silence.resume(now)
    assert silence.ends_at == 11
