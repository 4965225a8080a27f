"""A script says what the model answers; what is wrong with one is named, with its place and a remedy."""

from pathlib import Path
from typing import Any

import pytest

from agentcell.offline import Script, ScriptError, load_script
from agentcell.offline.script import ApiError, Turn

TURN: dict[str, Any] = {"text": "hi"}

A_MAPPING = "it should be a mapping"


def test_a_script_is_read_from_yaml_from_json_and_from_a_dict(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("turns:\n  - {text: hi, tools: [{name: Read, input: {file_path: a}}]}\n")
    (tmp_path / "a.json").write_text(
        '{"turns": [{"text": ["hi"], "tools": [{"name": "Read", "input": {"file_path": "a"}}]}]}'
    )
    data = {"turns": [{"text": "hi", "tools": [{"name": "Read", "input": {"file_path": "a"}}]}]}
    from_yaml, from_json = load_script(tmp_path / "a.yaml"), load_script(str(tmp_path / "a.json"))
    assert from_yaml == from_json == load_script(data) == load_script(load_script(data))
    assert from_yaml.turns[0].text == ["hi"]


def test_an_error_of_the_api_has_the_type_that_goes_with_its_status() -> None:
    statuses = (400, 401, 429, 500, 529)
    assert [ApiError(status=status).name for status in statuses] == [
        *("invalid_request_error", "authentication_error", "rate_limit_error", "api_error", "overloaded_error")
    ]
    assert ApiError(status=500, type="odd").name == "odd"


def test_an_answer_stops_for_its_tools_or_at_its_end_unless_it_says_otherwise() -> None:
    turns = load_script({"turns": [{}, {"tools": [{"name": "Read"}]}, {"stop_reason": "refusal"}]}).turns
    assert [turn.reason for turn in turns] == ["end_turn", "tool_use", "refusal"]


def test_a_script_without_anything_has_no_turns() -> None:
    assert load_script({}) == Script(sessions=[], turns=[])


@pytest.mark.parametrize(
    ("data", "place", "reason", "remedy"),
    [
        ({"turn": [TURN]}, "script.turn", "is not known here", "did you mean turns?"),
        (
            {"turns": [{"txt": "hi"}]},
            "script.turns[0].txt",
            "is not known here",
            "did you mean text?",
        ),
        (
            {"turns": [{"error": {"status": 401, "qqq": "hi"}}]},
            "script.turns[0].error.qqq",
            "is not known here",
            "give some of status, type, message, headers, or leave it out",
        ),
        (
            {"sessions": [{"match": "a", "status": 401, "turns": [TURN]}]},
            "script.sessions[0].status",
            "is not known here",
            "give some of match, session, turns, or leave it out",
        ),
        ({"turns": [TURN, {"tools": ["Read"]}]}, "script.turns[1].tools[0]", "'Read' is not allowed here", A_MAPPING),
        ({"turns": [{"error": 401}]}, "script.turns[0].error", "401 is not allowed here", A_MAPPING),
        (
            {"turns": [{"times": 0}]},
            "script.turns[0].times",
            "0 is not allowed here",
            "it should be greater than or equal to 1",
        ),
        ({"turns": [TURN, {"tools": [{}]}]}, "script.turns[1].tools[0].name", "is missing", "add it"),
        ({"turns": [{"text": 5}]}, "script.turns[0].text", "5 is not allowed here", "it should be a list"),
        (
            {"turns": [{"delay": -1}]},
            "script.turns[0].delay",
            "-1 is not allowed here",
            "it should be greater than or equal to 0",
        ),
        (
            {"turns": [{"error": {"status": 200}}]},
            "script.turns[0].error.status",
            "200 is not allowed here",
            "it should be greater than or equal to 400",
        ),
        (
            {"turns": [{"error": {"status": 529}, "text": "hi"}]},
            "script.turns[0]",
            "has both error and text",
            "a turn is an answer, an error, a body, a stall or a drop: leave one out",
        ),
        (
            {"turns": [{"stall": "start", "drop": "middle"}]},
            "script.turns[0]",
            "has both stall and drop",
            "a turn is an answer, an error, a body, a stall or a drop: leave one out",
        ),
        (
            {"sessions": [{"session": 1, "turns": []}]},
            "script.sessions[0].turns",
            "has no turns",
            "give at least one turn",
        ),
        (
            {"sessions": [{"turns": [TURN]}]},
            "script.sessions[0]",
            "says not, or twice, which sessions it is for",
            "give one of match (text in the prompt) and session (a number from 1)",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_a_remedy(
    data: dict[str, Any], place: str, reason: str, remedy: str
) -> None:
    with pytest.raises(ScriptError) as raised:
        load_script(data)
    error = raised.value
    assert (error.place, error.reason, error.remedy) == (place, reason, remedy)
    assert str(error) == f"{place}: {reason}; {remedy}"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("missing.yaml", None, "cannot be read: .*No such file"),
        ("latin.yaml", b"turns: [{text: \xe4}]", "cannot be read: .*codec can't decode"),
        ("broken.yaml", b"turns: [", "is not valid: (?s:.*)line 1"),
        ("deep.yaml", b"turns: " + b"[" * 9000, "is nested too deep"),
        ("deep.json", b'{"turns": ' + b"[" * 99_000, "is nested too deep"),
        ("broken.json", b'{"turns": [}', "is not valid: .*line 1 column 12"),
        ("list.yaml", b"- text: hi", "is not a mapping"),
        ("empty.yaml", b"", "is not a mapping"),
    ],
)
def test_a_file_that_is_no_script_is_named(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScriptError, match=reason) as raised:
        load_script(path)
    assert raised.value.place == str(path)


def test_a_turn_that_is_an_error_or_a_body_may_have_a_delay_and_times() -> None:
    turns = [Turn(error=ApiError(status=529), delay=1, times=3), Turn(body="{", delay=1, times="always")]
    assert [turn.times for turn in turns] == [3, "always"]
