"""What is heard from a cell is kept in bounded memory, and nothing it says breaks the host."""

from typing import Any

import pytest

from agentcell.record import WARNINGS_KEPT, Record
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.framing import Overlong
from agentcell_protocol.result import SessionResult, failed

RESULT = SessionResult(status="complete", response="done", session_name="a", id="1")

ODD_LINES: list[bytes | Overlong] = [
    b'{"type":"tool_use","id":"t","name":"Bash","input":{}}',
    b'{"type":"usage","input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":3,"cache_read_input_tokens":4}',
    b'{"type":"usage","input_tokens":5}',
    b'{"type":"usage","input_tokens":true}',
    b'{"type":"text","text":1}',
    b'{"type":"text_delta"}',
    b'{"type":"news"}',
    b'{"type":["text"]}',
    b'{"type":"warning","code":"c","message":"m"}',
    b'{"type":"session_started","session_id":"s","model":5}',
    b'{"type":"session_started"}',
    b'{"type":"outcome","result":{}}',
    b'{"type":"outcome","result":{"status":"complete","response":"","session_name":"a"}}',
    b'{"type":"text","text":"x","text":"y"}',
    b'{"type":"text","text":NaN}',
    b'{"type":"text","text":"a"}\x00',
    b'\xef\xbb\xbf{"type":"check"}',
    b'{"type":"text","text":"\xff"}',
    b"[1]",
    b"stray",
    Overlong(10),
]


def record() -> Record:
    return Record("a", "1")


def heard(*messages: dict[str, Any]) -> Record:
    new = record()
    for message in messages:
        new.hear(encode(message))
    return new


def test_an_event_is_passed_on_and_a_result_is_not() -> None:
    new = record()
    event = {"type": "hello", "pid": 1}
    assert new.hear(encode(event)) == event
    assert new.hear(encode(RESULT.to_message(hosted=False))) is None
    assert new.result == RESULT


def test_an_event_of_an_unknown_type_is_passed_on() -> None:
    assert record().hear(b'{"type": "news", "x": 1}') == {"type": "news", "x": 1}


@pytest.mark.parametrize(
    "line",
    [b"text", b"[]", b"{}", b'{"type": 1}', b'{"type": "result"}', b"\xff", Overlong(10), b"[" * 2000],
)
def test_what_is_no_message_is_counted_and_described(line: bytes | Overlong) -> None:
    new = record()
    assert new.hear(line) is None
    assert (new.problems, new.result) == (1, None)
    assert new.first_problem


@pytest.mark.parametrize(
    "event",
    [
        {"type": "session_started"},
        {"type": "text"},
        {"type": "usage", "input_tokens": "many"},
        {"type": "warning", "code": 1},
        {"type": "outcome", "result": {"status": "splendid"}},
        {"type": "outcome", "result": None},
    ],
)
def test_an_event_with_wrong_members_is_named_and_passed_on(event: dict[str, Any]) -> None:
    new = record()
    assert new.hear(encode(event)) == event
    assert new.problems == 1
    assert event["type"] in str(new.first_problem)


@pytest.mark.parametrize(("name", "identity"), [("b", "1"), ("a", "2"), (None, "1")])
def test_the_result_of_another_session_is_not_taken(name: str | None, identity: str) -> None:
    other = RESULT.model_copy(update={"session_name": name, "id": identity})
    new = heard(other.to_message(hosted=False))
    assert (new.result, new.problems) == (None, 1)


def test_a_refusal_may_not_know_whose_it_is() -> None:
    refusal = failed(session_error(Category.BAD_REQUEST, "what?"))
    assert heard(refusal.to_message(hosted=False)).result == refusal


def test_the_first_result_counts_and_nothing_after_it() -> None:
    forged = RESULT.model_copy(update={"response": "forged"})
    new = heard(*(result.to_message(hosted=False) for result in (RESULT, forged)), {"type": "text", "text": "more"})
    assert (new.result, new.problems, str(new.text)) == (RESULT, 2, "")


def test_text_is_joined_from_blocks_and_the_pieces_of_the_last() -> None:
    texts = [("text_delta", "on"), ("text_delta", "e"), ("text", "one"), ("text", "two"), ("text_delta", "thr")]
    assert str(heard(*({"type": kind, "text": text} for kind, text in texts)).text) == "one\n\ntwo\n\nthr"


def test_of_endless_warnings_the_first_are_kept() -> None:
    warning = {"type": "warning", "code": "c", "message": "m"}
    assert len(heard(*[warning] * (WARNINGS_KEPT + 50)).warnings) == WARNINGS_KEPT


@pytest.mark.parametrize("spare", [0, 200])
def test_many_lines_at_once_are_heard_as_one_by_one(spare: int) -> None:
    plain = [encode({"type": "text", "text": str(number)}) for number in range(spare)]
    lines = [
        *plain,
        *ODD_LINES,
        *plain,
        b'{"type":"check"}',
        encode(RESULT.to_message(hosted=False)),
        *plain,
        *ODD_LINES,
    ]
    one_by_one, at_once = record(), record()
    events = [event for line in lines if (event := one_by_one.hear(line)) is not None]
    assert list(at_once.hear_all(lines)) == events
    assert at_once == one_by_one


def test_a_model_that_is_no_text_is_none_that_breaks_the_result() -> None:
    assert heard({"type": "session_started", "session_id": "s", "model": 5}).model == "5"


def test_what_is_done_to_an_event_changes_nothing_that_is_kept() -> None:
    new, outcome = record(), RESULT.model_copy(update={"flow": {"files": [["a"]]}, "structured_output": [1]})
    line = encode({"type": "outcome", "result": outcome.to_message(hosted=False)})
    for event in new.hear_all([line, line]):
        event["result"]["flow"]["files"][0].append("b")
        event["result"]["structured_output"].clear()
    assert new.outcome == outcome


def test_lines_that_only_their_neighbours_make_whole_are_no_messages() -> None:
    text = '{"type":"text","text":"a"}'
    lines = [f'{{"type":"text","text":"b","more":[{text}', f"{text}]}}", f"{text},{text},{text}", text]
    new = record()
    assert list(new.hear_all([b"", *map(str.encode, lines)])) == [{"type": "text", "text": "a"}]
    assert new.problems == 4


def test_half_a_message_at_the_end_is_no_problem_but_is_known() -> None:
    new = record()
    assert new.hear_rest(b'{"type": "re') is None
    assert (new.problems, new.has_broken_off) == (0, True)


def test_a_whole_message_at_the_end_needs_no_line_end() -> None:
    new = record()
    new.hear_rest(encode(RESULT.to_message(hosted=False)).rstrip())
    assert (new.result, new.has_broken_off) == (RESULT, False)


def test_a_piece_of_what_is_not_text_adds_nothing() -> None:
    new = heard(*[{"type": "text_delta", "text": ""}] * 3)
    assert (list(new.text.pieces), new.problems) == ([], 0)


def test_tool_calls_are_counted() -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    assert heard(call, {"type": "tool_result", "id": "t"}, call).tool_calls == 2
