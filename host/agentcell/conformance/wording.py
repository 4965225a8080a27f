"""What every line of a worker or a host is held against, whatever it says."""

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any, NoReturn, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from agentcell.conformance.check import Unmet, expect, told
from agentcell.conformance.faults import Fault, fault
from agentcell.conformance.program import Line
from agentcell.conformance.stage import Seen, ended, shown
from agentcell_protocol.errors import Category, SessionError, is_retryable
from agentcell_protocol.events import Event
from agentcell_protocol.exitcodes import exit_code
from agentcell_protocol.result import HOST_MEMBERS, SessionResult

RESULT: TypeAdapter[Any] = TypeAdapter(SessionResult)

EVENTS: Mapping[str, TypeAdapter[Any]] = {
    get_args(get_type_hints(event)["type"])[0]: TypeAdapter(event) for event in get_args(Event)
}
"""By their types; a later version may send others."""

CATEGORIES = frozenset(map(str, Category))

MEMBERS = tuple(name for name in SessionResult.model_fields if name not in HOST_MEMBERS)
"""The members that every result has, in their order."""


def each_line_has_its_end(*scenes: Seen) -> None:
    """The last byte of all that came is a line feed."""
    for seen in scenes:
        open_lines = [line for line in seen.lines if not line.raw.endswith(b"\n")]
        expect(not open_lines, "a line feed at the end of each line", open_lines and _told(seen, open_lines[0]))


def ends_are_line_feeds(*scenes: Seen) -> None:
    """No carriage return comes before a line feed."""
    for seen in scenes:
        odd = [line for line in seen.lines if line.raw.endswith(b"\r\n")]
        expect(not odd, "LF alone", odd and _told(seen, odd[0]))


def each_line_is_an_object(*scenes: Seen) -> None:
    """Strict JSON in UTF-8, one object a line, with a type."""
    for seen in scenes:
        for one in seen.lines:
            fault = _fault(one.raw)
            expect(not fault, "one JSON object with a `type`", f"{_told(seen, one)}: {fault}")


def results_are_ordered(*scenes: Seen) -> None:
    """All members that a result must have, in their order."""
    for seen in scenes:
        for result in seen.of_type("result"):
            known = [name for name in result if name in MEMBERS]
            missing = [name for name in MEMBERS if name not in result]
            expect(not missing, "all members of a result", f"in {seen.scene}: without {', '.join(missing)}")
            expect(known == list(MEMBERS), ", ".join(MEMBERS), f"in {seen.scene}: {', '.join(known)}")


def results_are_true_to_the_model(*scenes: Seen) -> None:
    """Each result is one by the schema that `agentcell schema result` prints."""
    for seen in scenes:
        for result in seen.of_type("result"):
            _expect_none(fault(RESULT, result), f"the result in {seen.scene}")


def events_are_true_to_the_model(*scenes: Seen) -> None:
    """Each event of a type that is known is one by the schema."""
    for seen in scenes:
        for message in seen.messages:
            if schema := EVENTS.get(str(message.get("type"))):
                _expect_none(fault(schema, message, strict=True), f"`{message['type']}` in {seen.scene}")


def expect_usage(result: Mapping[str, Any], due: Mapping[str, int]) -> None:
    """The tokens of a result are those that its model gave."""
    given = result.get("usage") or {}
    expect({name: given.get(name) for name in due} == due, f"usage {told(due)}", given)


def retries_are_promised_where_they_help(*scenes: Seen) -> None:
    """Whether an error is retryable follows from its category, or that of a timeout from its limit."""
    for seen in scenes:
        for message in seen.messages:
            error = error_of(message)
            if (category := error.get("category")) in CATEGORIES:
                due = is_retryable(Category(category), error.get("details") or {})
                given = error.get("retryable", False)
                expect(given is due, f"retryable {told(due)} for {category}", f"{told(given)} in {seen.scene}")


def exit_codes_agree(*scenes: Seen) -> None:
    """The exit code is the one that goes with the result."""
    for seen in scenes:
        if (due := exit_code_of(seen.result)) is not None:
            expect(seen.code == due, f"exit code {due}", f"{ended(seen.code)} in {seen.scene}")


def nothing_is_left(*scenes: Seen) -> None:
    """When the program has ended nothing of it runs on."""
    left = list(chain.from_iterable((f"{one} in {seen.scene}" for one in seen.left) for seen in scenes))
    expect(not left, "no process", "; ".join(left))


def exit_code_of(result: dict[str, Any]) -> int | None:
    """The exit code that goes with a result; None where it is none."""
    if not result:
        return None
    try:
        error = result.get("error")
        return exit_code(None if error is None else SessionError.model_validate(error))
    except ValidationError:
        return None


def error_of(message: dict[str, Any]) -> dict[str, Any]:
    """Its error; empty if there is none."""
    error = message.get("error")
    return error if isinstance(error, dict) else {}


def category_of(message: dict[str, Any]) -> str:
    """The category of its error, or what it has instead."""
    return str(error_of(message).get("category") or message.get("status") or "no result")


def expect_refusal(message: dict[str, Any], member: str | None, hint: str, came: str) -> None:
    """The error is a bad request that names the member, with a hint that has this word."""
    error = error_of(message)
    expect(error.get("category") == "bad_request", "an error of category bad_request", came)
    details = error.get("details") or {}
    expect("member" in details, "the name of the member, or null, in details.member", details)
    expect(details["member"] == member, f"details.member {json.dumps(member)}", json.dumps(details["member"]))
    expect(bool(details.get("reason")), "what is wrong in details.reason", details)
    told = error.get("hint") or ""
    expect(bool(told) and hint in told, f"a hint that says {hint!r}" if hint else "a hint", repr(told))


def _expect_none(found: Fault | None, where: str) -> None:
    if found is not None:
        raise Unmet(found.expected, f"{found.came}, for {where}")


def _fault(raw: bytes) -> str:
    """What is wrong with a line as a message; empty if nothing is."""
    try:
        message = json.loads(raw.decode(), parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as invalid:
        return str(invalid)
    if not isinstance(message, dict):
        return "no object"
    return "" if isinstance(message.get("type"), str) else "no type"


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(members) != len(dict(members)):
        raise ValueError("a member is there twice")
    return dict(members)


def _told(seen: Seen, line: Line) -> str:
    return f"{shown(line.raw)} in {seen.scene}"
