"""What is said of an attempt that was lost sight of."""

from pathlib import Path
from typing import Any

import pytest
from tests.faults.harness import Room

from agentcell.executors.ray.loss import lost, signature
from agentcell.orders import Order
from agentcell.record import Record
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import SessionResult

STARTED: dict[str, Any] = {
    "type": "session_started",
    "session_id": "11111111-1111-4111-8111-111111111111",
    "model": "m",
}
TOLD: list[dict[str, Any]] = [
    STARTED,
    {"type": "text", "text": "halfway"},
    {"type": "tool_use", "id": "t", "name": "Bash", "input": {}},
]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def of(order: Order, *events: dict[str, Any], before: Any = None) -> SessionResult:
    """The result of an order of which so much was heard."""
    record = Record(order.request.session_name, order.request.identity)
    for event in events:
        record.learn(event)
    return lost(order, record, "the node has died", before=before, began=0.0)


def answered(**members: Any) -> dict[str, Any]:
    result = SessionResult(status="complete", response="done", session_name="a", id="a").model_copy(update=members)
    return result.to_message(hosted=False)


def order(room: Room, **members: Any) -> Order:
    return Order(room.request(**members), environment=room.environment)


def test_it_is_host_lost_with_what_was_heard(room: Room) -> None:
    result = of(order(room), *TOLD)
    assert result.error is not None
    assert (result.error.category, result.error.message) == (
        Category.HOST_LOST,
        "the session was lost: the node has died",
    )
    assert (result.error.retryable, result.error.partial_response) == (True, "halfway")
    assert (result.session_id, result.model, result.tool_calls) == (STARTED["session_id"], "m", 1)
    assert [one.error for one in result.attempts] == [result.error]


def test_its_conversation_is_found_where_it_is_kept(room: Room) -> None:
    session_id = STARTED["session_id"]
    kept = room.path / "kept" / str(session_id) / "project" / f"{session_id}.jsonl"
    kept.parent.mkdir(parents=True)
    kept.touch()
    asked = Order(room.request(), environment=room.environment, keep=room.path / "kept")
    assert of(asked, STARTED).transcript == str(kept)


def test_the_outcome_that_was_heard_is_believed(room: Room) -> None:
    result = of(order(room), *TOLD, {"type": "outcome", "result": answered()})
    assert (result.status, result.response) == ("complete", "done")
    assert [warning.code for warning in result.warnings] == ["odd_exit"]


def test_a_result_that_was_put_into_its_file_meanwhile_is_believed(room: Room) -> None:
    file = room.path / "result.json"
    asked = order(room, result_file=str(file))
    before = signature(str(file))
    file.write_bytes(encode(answered()))
    result = of(asked, *TOLD, before=before)
    assert (result.status, result.response, len(result.attempts)) == ("complete", "done", 1)


@pytest.mark.parametrize("is_in_file", [True, False])
@pytest.mark.parametrize("category", [Category.CANCELLED, Category.HOST_LOST])
def test_one_that_ended_with_its_keeper_and_was_not_stopped_is_lost(
    room: Room, category: Category, is_in_file: bool
) -> None:
    file = room.path / "result.json"
    asked = order(room, result_file=str(file))
    said = SessionResult.model_validate(answered()).as_error(session_error(category, "it was ended by SIGTERM"))
    message = said.to_message(hosted=False)
    if is_in_file:
        file.write_bytes(encode(message))
    result = of(asked, *TOLD, *([] if is_in_file else [{"type": "outcome", "result": message}]))
    assert result.error is not None
    assert (result.error.category, result.error.retryable) == (Category.HOST_LOST, True)
    assert (result.error.message, result.error.partial_response) == ("the session was lost: the node has died", "done")
    assert [one.error for one in result.attempts] == [result.error]


def test_a_result_of_another_time_or_another_session_is_not_believed(room: Room) -> None:
    file = room.path / "result.json"
    asked = order(room, result_file=str(file))
    file.write_bytes(encode(answered()))
    assert of(asked, before=signature(str(file))).status == "error"
    file.write_bytes(encode(answered(id="another")))
    assert of(asked).status == "error"


def test_one_that_was_stopped_is_cancelled(room: Room) -> None:
    asked = order(room)
    asked.stop.cancel("SIGINT")
    error = of(asked, *TOLD).error
    assert error is not None
    assert (error.category, error.details["signal"], error.partial_response) == (
        Category.CANCELLED,
        "SIGINT",
        "halfway",
    )
