"""The golden lines are what the code reads and writes, to the byte."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter
from tests.golden.lines import messages, read

from agentcell_protocol.codec import decode, encode
from agentcell_protocol.errors import Category, RequestError
from agentcell_protocol.events import Event
from agentcell_protocol.framing import LineFramer
from agentcell_protocol.intake import decode_request
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult, failed
from agentcell_protocol.schema import KINDS, Kind, committed

SENT = [(kind, line) for kind in KINDS for line in read(kind)]


@pytest.mark.parametrize(("kind", "line"), SENT)
def test_a_golden_line_decodes_and_encodes_to_itself(kind: Kind, line: bytes) -> None:
    assert encode(decode(line)) == line + b"\n"


@pytest.mark.parametrize(("kind", "line"), SENT)
def test_a_golden_line_fits_its_schema(kind: Kind, line: bytes) -> None:
    schema = json.loads(committed(kind))
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(line))


@pytest.mark.parametrize("line", read("request"))
def test_a_golden_request_is_accepted(line: bytes, tmp_path: Path) -> None:
    request = parse_request(decode_request(line), base=tmp_path)
    assert request.project_dir == str(tmp_path)
    assert parse_request(request) == request


def test_the_golden_requests_use_every_member() -> None:
    used = set().union(*messages("request"))
    assert used == set(SessionRequest.model_fields)


@pytest.mark.parametrize("line", read("event"))
def test_a_golden_event_is_an_event(line: bytes) -> None:
    event: dict[str, Any] = decode(line)
    assert TypeAdapter(Event).validate_python(event, extra="forbid") == event


def test_every_event_type_has_a_golden_line() -> None:
    types = [get_args(event.__annotations__["type"])[0] for event in get_args(Event)]
    assert sorted({event["type"] for event in messages("event")}) == sorted(types)


@pytest.mark.parametrize("line", read("result"))
def test_a_golden_result_is_read_and_written_again(line: bytes) -> None:
    message = decode(line)
    result = SessionResult.model_validate(message)
    assert encode(result.to_message(hosted="attempts" in message)) == line + b"\n"


@pytest.mark.parametrize("line", read("result"))
def test_a_result_begins_with_status_response_and_session_name(line: bytes) -> None:
    assert list(json.loads(line))[:4] == ["status", "response", "session_name", "type"]


def test_the_golden_results_show_every_status_and_every_member() -> None:
    results = messages("result")
    assert {result["status"] for result in results} == {"complete", "continue", "error"}
    assert set().union(*results) == set(SessionResult.model_fields)


@pytest.mark.parametrize("refused", messages("refused"), ids=lambda refused: refused["line"][:60])
def test_a_malformed_line_is_refused_by_member_reason_and_remedy(refused: dict[str, Any], tmp_path: Path) -> None:
    framer = LineFramer()
    line, *_ = [*framer.push(refused["line"].encode() + b"\n"), None]
    with pytest.raises(RequestError) as raised:
        parse_request(decode_request(line), base=tmp_path)
    error = raised.value
    assert {
        "line": refused["line"],
        "member": error.member,
        "reason": error.reason.replace(str(tmp_path), "{cwd}"),
        "remedy": error.remedy,
    } == refused


@pytest.mark.parametrize("refused", messages("refused"), ids=lambda refused: refused["line"][:60])
def test_what_a_malformed_line_is_told_reads_as_one_sentence(refused: dict[str, Any]) -> None:
    error = RequestError(refused["member"], refused["reason"], refused["remedy"])
    result = failed(error.as_session_error())
    assert result.error is not None
    assert result.error.category is Category.BAD_REQUEST
    assert result.response == f"{refused['member'] or 'the request'}: {refused['reason']}; {refused['remedy']}"
    assert "\n" not in result.response
    assert "Input" not in result.response
