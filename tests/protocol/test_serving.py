"""The lines of `agentcell serve`: what is taken, what is refused, and what the schema says of both."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter
from tests.golden.lines import messages

from agentcell_protocol.errors import RequestError
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.schema import committed
from agentcell_protocol.serving import (
    CAPABILITIES,
    CancelLine,
    Output,
    RunLine,
    ShutdownLine,
    of_run,
    parse_line,
    refusal,
    thinned,
)

INPUT = Draft202012Validator(json.loads(committed("serve-input")))
OUTPUT = Draft202012Validator(json.loads(committed("serve-output")))

REQUEST = {"session_name": "a", "agent_type": "coder", "project_dir": ".", "starting_message": "hi"}

RUN = {"type": "run", "id": "r1"}


@pytest.mark.parametrize("message", messages("serve-input"), ids=lambda message: str(message["type"]))
def test_a_golden_line_is_taken(message: dict[str, Any], tmp_path: Path) -> None:
    line = parse_line(message, base=tmp_path)
    assert line.type == message["type"]
    assert parse_line(line.model_dump(exclude_defaults=True) | {"type": line.type}, base=tmp_path) == line


def test_the_golden_lines_show_every_type_and_every_member() -> None:
    lines = messages("serve-input")
    assert {line["type"] for line in lines} == set(CAPABILITIES)
    assert set().union(*lines) == {*RunLine.model_fields, *CancelLine.model_fields, *ShutdownLine.model_fields}


@pytest.mark.parametrize("message", messages("serve-output"), ids=lambda message: str(message["type"]))
def test_a_golden_line_that_is_written_fits_its_model(message: dict[str, Any]) -> None:
    TypeAdapter(Output).validate_python(message)


def test_the_golden_lines_that_are_written_show_every_event_of_a_run() -> None:
    written = messages("serve-output")
    events = [of_run(event, "r1") for event in messages("event")]
    assert [event for event in events if event["type"] != "outcome" and event not in written] == []
    assert {line["type"] for line in written} >= {event["type"] for event in events}


def test_the_request_of_a_run_has_the_id_of_its_line(tmp_path: Path) -> None:
    line = parse_line({**RUN, "request": {**REQUEST, "session_name": "b"}}, base=tmp_path)
    assert isinstance(line, RunLine)
    assert line.request == SessionRequest.model_validate(
        {**REQUEST, "session_name": "b", "id": "r1", "project_dir": str(tmp_path)}
    )
    assert (line.id, line.limits) == ("r1", None)


@pytest.mark.parametrize(
    ("message", "member", "remedy"),
    [
        ({}, "type", 'say what the line is, such as {"type":"run","id":"r1","request":{…}}'),
        (REQUEST, "type", 'say what the line is, such as {"type":"run","id":"r1","request":{…}}'),
        ({"type": "Run"}, "type", "did you mean run?"),
        ({"type": None}, "type", "give run, cancel or shutdown"),
        ({"type": "x" * 2_000_000}, "type", "give run, cancel or shutdown"),
        ({"type": "cancel", "id": ""}, "id", "give 1 to 200 characters"),
        ({"type": "cancel", "id": "a", "ids": []}, "ids", "did you mean id?"),
        ({"type": "run", "request": REQUEST}, "id", "add it: every run line has one"),
        ({**RUN, "request": None}, "request", "send one JSON object with the request's members"),
        ({**RUN, "request": REQUEST, "limits": 7}, "limits", "give an object"),
        ({**RUN, "request": {**REQUEST, "id": 7}}, "request.id", "give a string"),
        ({**RUN, "request": {**REQUEST, "id": "r2"}}, "request.id", "leave it out, or give the line's"),
        ({**RUN, "request": {**REQUEST, "message": "hi"}}, "request.message", "did you mean starting_message?"),
    ],
)  # fmt: skip
def test_what_is_no_line_is_refused_by_member_and_remedy(
    message: dict[str, Any], member: str, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError) as refused:
        parse_line(message, base=tmp_path)
    assert (refused.value.member, refused.value.remedy) == (member, remedy)
    assert not INPUT.is_valid(message) or member == "request.id"
    OUTPUT.validate(refusal(refused.value, message))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"type": "run", "id": "r1"}, {"id": "r1", "line": "run"}),
        ({"type": "cancel", "id": 7}, {"line": "cancel"}),
        ({"type": "stop", "id": ["r1"]}, {}),
        ({"type": ["run"], "id": "r1"}, {"id": "r1"}),
        ({"type": "cancel", "id": "r" * 201}, {"line": "cancel"}),
        ({}, {}),
    ],
)
def test_of_a_refused_line_the_id_and_the_type_come_back_if_they_are_any(message: Any, said: dict[str, str]) -> None:
    told = refusal(RequestError("id", "no", "yes"), message)
    OUTPUT.validate(told)
    del told["error"]
    assert told == {"type": "refused", **said}


def test_an_event_of_a_run_has_its_id_second_and_its_own_elsewhere() -> None:
    event = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
    told = {"type": "tool_use", "id": "r1", "tool_use_id": "toolu_1", "name": "Read", "input": {}}
    assert list(of_run(event, "r1").items()) == list(told.items())


@pytest.mark.parametrize(
    "line", [{"type": "tool_use", "id": "r1"}, {"type": "text", "text": "hi"}, {"type": "result"}, {"id": "r1"}]
)
def test_what_is_no_line_that_is_written_does_not_fit_the_schema(line: dict[str, Any]) -> None:
    assert not OUTPUT.is_valid(line)
    OUTPUT.validate(thinned("r1", 1))
