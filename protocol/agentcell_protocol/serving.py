"""The lines of `agentcell serve`: many runs through one pipe, each known by its id."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_type_hints

from pydantic import ConfigDict, Field, ValidationError, WithJsonSchema, create_model

from agentcell_protocol.errors import RequestError, SessionError
from agentcell_protocol.events import Event
from agentcell_protocol.members import Name
from agentcell_protocol.model import Frozen
from agentcell_protocol.refusals import MAX_SHOWN, refuse_unknown_members, shown, translated
from agentcell_protocol.request import LIMITS, SessionRequest, parse_request
from agentcell_protocol.result import Notice, SessionResult, names_in

CAPABILITIES = ("run", "cancel", "shutdown")
"""The types of lines that are taken."""

RUN = '{"type":"run","id":"r1","request":{…}}'
"""What people look for who sent something else."""

BESIDE = "limits travel beside the request, as a member of the line"

IN_REQUEST = f"put it into the request: {RUN}"

TOOL_ID = "tool_use_id"
"""An event's own `id`, where `id` is that of the run."""

LineLimits = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": {"type": ["number", "null"]}})
]


class RunLine(Frozen):
    """Asks for a session; `limits` are checked by the host, who keeps them."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["run"]
    id: Name = Field(description="Not that of a run that has no result yet. The request's own may be left out.")
    request: SessionRequest = Field(description="What the session is to do.")
    limits: LineLimits | None = Field(default=None, description="What may be spent on it, by the limit's name.")


class CancelLine(Frozen):
    """Ends a run; it still has its result. The second one for a run kills what is left of it."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["cancel"]
    id: Name = Field(description="That of a run that has no result yet.")


class ShutdownLine(Frozen):
    """Asks for the end, once all runs have their results; no more are begun."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["shutdown"]


Line = RunLine | CancelLine | ShutdownLine

_LINES: dict[object, type[RunLine] | type[CancelLine] | type[ShutdownLine]] = {
    "run": RunLine,
    "cancel": CancelLine,
    "shutdown": ShutdownLine,
}

_ELSEWHERE = dict.fromkeys(("message", "prompt", *SessionRequest.model_fields), IN_REQUEST)


class ServeHello(Frozen):
    """The first line. `sdk` and `cli` are what sessions will have, null where it is not found."""

    type: Literal["hello"]
    protocol: int
    pid: int
    agentcell: str
    sdk: str | None
    cli: str | None
    max_sessions: int
    capabilities: list[str]


class Refused(Frozen):
    """A line that nothing comes of: its `id`, and its type as `line`, as far as they can be read. A `bad_request`."""

    type: Literal["refused"]
    id: str | None = None
    line: Literal["run", "cancel", "shutdown"] | None = None
    error: SessionError


class ServeWarning(Notice):
    """Something odd that changes nothing; `id` is there when it is about a run."""

    type: Literal["warning"]
    id: str | None = None


class Thinned(Frozen):
    """So many events of the run were not written, because nobody read."""

    type: Literal["thinned"]
    id: str
    dropped: Annotated[int, Field(ge=1)]


class RunResult(SessionResult):
    """The only result of a run, and its last line."""

    id: str


def parse_line(message: Mapping[str, Any], *, base: Path | None = None) -> Line:
    """The line that a decoded object is; the request of a run has the line's id, and its paths taken from `base`.

    Raises RequestError, whose member is `request.…` for what is wrong with a request.
    """
    model = _LINES.get(kind) if isinstance(kind := message.get("type"), str) else None
    if model is None:
        raise _no_type(message)
    thing = f"{kind} line"
    refuse_unknown_members(message, model.model_fields, thing=thing, elsewhere=_ELSEWHERE if kind == "run" else {})
    parts = dict(message)
    if kind == "run" and "request" in parts:
        parts["request"] = _request(parts["request"], base)
    try:
        line = model.model_validate(parts)
    except ValidationError as invalid:
        raise translated(invalid, thing=thing) from None
    return _named(line) if isinstance(line, RunLine) else line


def of_run(event: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """The event as one of the run: with the run's id, and its own, if it has one, as `tool_use_id`."""
    rest = {TOOL_ID if name == "id" else name: value for name, value in event.items() if name != "type"}
    return {"type": event["type"], "id": run_id, **rest}


def refusal(error: RequestError, message: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a line that nothing comes of, with what can be read of it: an `id` that could be one, its type.

    An error without a member is one of the line, and says so itself.
    """
    named = {"id": names["id"]} if "id" in (names := names_in(message)) else {}
    if message.get("type") in CAPABILITIES:
        named["line"] = message["type"]
    told = error.as_session_error().model_dump()
    if error.member is None:
        told["message"] = f"{error.reason}; {error.remedy}"
    return {"type": "refused", **named, "error": told}


def thinned(run_id: str, dropped: int) -> dict[str, Any]:
    """What stands in place of so many events of a run."""
    return {"type": "thinned", "id": run_id, "dropped": dropped}


def _no_type(message: Mapping[str, Any]) -> RequestError:
    if "type" not in message:
        return RequestError("type", "is missing", f"say what the line is, such as {RUN}")
    given = message["type"]
    close = get_close_matches(given[:MAX_SHOWN], CAPABILITIES, n=1) if isinstance(given, str) else []
    remedy = f"did you mean {close[0]}?" if close else f"give {', '.join(CAPABILITIES[:-1])} or {CAPABILITIES[-1]}"
    return RequestError("type", f"{shown(given)} is not a type of line", remedy)


def _request(data: object, base: Path | None) -> SessionRequest:
    try:
        return parse_request(data, base=base)
    except RequestError as mistake:
        member = "request" if mistake.member is None else f"request.{mistake.member}"
        raise RequestError(member, mistake.reason, mistake.remedy.replace(LIMITS, BESIDE)) from None


def _named(line: RunLine) -> RunLine:
    own = line.request.id
    if own is not None and own != line.id:
        raise RequestError("request.id", f"{shown(own)} is not the id of the line", "leave it out, or give the line's")
    return line.model_copy(update={"request": line.request.model_copy(update={"id": line.id})})


def _event_of_run(event: Any) -> Any:
    """A model of the event as `of_run` makes it."""
    members: dict[str, Any] = of_run(get_type_hints(event, include_extras=True), "")
    members["id"] = str
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in members.items()}
    return create_model(f"{event.__name__}OfRun", __base__=Frozen, __doc__=event.__doc__, **fields)


Output: Any = Union[(ServeHello, Refused, ServeWarning, Thinned, RunResult, *map(_event_of_run, get_args(Event)))]
"""Every line that is written: of serve itself, and the events and the result of each run."""
