"""Attempts under way end together, and one of them alone where memory is scarce."""

from pathlib import Path
from typing import Any

import pytest

from agentcell.batch import flights as module
from agentcell.batch.flights import EventLog, Flight, Flights
from agentcell.batch.items import Item
from agentcell.batch.rows import Row
from agentcell.limits import Limits
from agentcell_protocol.codec import encode
from agentcell_protocol.masking import Mask
from agentcell_protocol.request import SessionRequest


def flight(name: str, began: float = 1.0) -> Flight:
    request = SessionRequest(session_name=name, agent_type="coder", project_dir="/", starting_message="hi")
    return Flight.of(Item(Row(1, 0, name, "1:0123456789abcdef", request, Limits())), began)


def state(one: Flight) -> tuple[str | None, str | None, bool]:
    return one.cut, one.stop.reason, one.stop.forced.is_set()


def test_what_has_ended_makes_no_room_for_others() -> None:
    flights, old, young = Flights(), flight("a"), flight("b", began=2.0)
    flights.add(old)
    flights.add(young)
    flights.remove(young)
    flights.make_room()
    assert (state(old), state(young)) == (("memory", "SIGTERM", False), (None, None, False))


def test_what_comes_once_all_are_ended_or_killed_is_so_too() -> None:
    flights, first, second, third = Flights(), flight("a"), flight("b"), flight("c")
    flights.add(first)
    flights.end_all("interrupted", "SIGINT")
    flights.add(second)
    assert state(first) == state(second) == ("interrupted", "SIGINT", False)
    flights.kill_all()
    flights.add(third)
    assert state(first) == state(second) == state(third) == ("interrupted", "SIGINT", True)


def test_why_a_cell_was_cut_first_is_why_it_was_cut() -> None:
    flights, one = Flights(), flight("a")
    flights.add(one)
    flights.make_room()
    flights.end_all("aborted", "SIGINT")
    assert state(one) == ("memory", "SIGTERM", False)


def test_the_youngest_makes_room_and_no_other_until_it_has_ended() -> None:
    flights, old, young, younger = Flights(), flight("old", 1.0), flight("young", 2.0), flight("younger", 3.0)
    flights.make_room()
    flights.add(young)
    flights.add(old)
    flights.make_room()
    flights.add(younger)
    flights.make_room()
    assert (young.cut, old.cut, younger.cut) == ("memory", None, None)
    flights.remove(young)
    flights.make_room()
    assert (old.cut, younger.cut) == (None, "memory")


def test_a_session_that_says_too_much_is_heard_and_no_longer_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event: dict[str, Any] = {"type": "text", "text": "again"}
    monkeypatch.setattr(module, "MAX_EVENT_BYTES", 2 * len(encode(event)) + 1)
    heard: list[dict[str, Any]] = []
    log = EventLog(tmp_path, Mask({}), heard.append)
    for _ in range(4):
        log.add(event)
    assert heard == [event] * 4
    assert (tmp_path / "events.jsonl").read_bytes() == encode(event) * 2
