"""What has been heard from one cell so far: enough to tell the truth about it whenever it ends."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from pydantic import ValidationError

from agentcell_protocol.codec import decode, decode_all
from agentcell_protocol.errors import Category, WireError
from agentcell_protocol.framing import Overlong
from agentcell_protocol.result import Notice, SessionResult, Usage
from agentcell_protocol.text import Text

WARNINGS_KEPT = 100
"""A cell that warns without end must not fill the host's memory."""

SHOWN = 80
"""Characters of a line that is quoted in a warning."""

AT_ONCE = 64
"""Lines that are decoded together: enough to be quick, few enough to stay in the processor's caches."""

COUNTS = tuple(Usage.model_fields)
_counts = itemgetter(*COUNTS)


@dataclass(slots=True)
class Record:
    """Hears a cell's lines, one after the other.

    The first result that names this session counts; what is no message, or comes after the result, is counted
    in `problems` and described by the first of its kind.
    """

    session_name: str
    identity: str
    result: SessionResult | None = None
    outcome: SessionResult | None = None
    text: Text = field(default_factory=Text)
    session_id: str | None = None
    model: str | None = None
    counts: tuple[int, ...] = ()
    tool_calls: int = 0
    last_event: str | None = None
    warnings: list[Notice] = field(default_factory=list)
    problems: int = 0
    first_problem: str | None = None
    has_broken_off: bool = False

    def hear_rest(self, line: bytes | Overlong) -> dict[str, Any] | None:
        """Take what came last and without a line end; it is no problem that half a message is none."""
        problems, first_problem = self.problems, self.first_problem
        event = self.hear(line)
        if self.problems > problems and isinstance(line, bytes):
            self.problems, self.first_problem, self.has_broken_off = problems, first_problem, True
        return event

    def hear_all(self, lines: Sequence[bytes | Overlong]) -> Iterator[dict[str, Any]]:
        """Take lines as the events in them are asked for; the first, which may be very long, by itself."""
        yield from filter(None, map(self.hear, lines[:1]))
        for start in range(1, len(lines), AT_ONCE):
            part = lines[start : start + AT_ONCE]
            messages = decode_all(part)
            if messages is None:
                yield from filter(None, map(self.hear, part))
            else:
                yield from self._hear_plain(part, messages)

    def _hear_plain(self, lines: Sequence[bytes | Overlong], messages: list[Any]) -> Iterator[dict[str, Any]]:
        known = LESSONS if self.result is None else {}
        for line, message in zip(lines, messages, strict=True):
            try:
                kind = message["type"]
                if (learn := known[kind]) is not None:
                    learn(self, message)
            except ODD:
                if (heard := self.hear(line)) is not None:
                    yield heard
                known = LESSONS if self.result is None else {}
            else:
                self.last_event = kind
                yield message

    @property
    def usage(self) -> Usage:
        """The running totals."""
        return Usage(**dict(zip(COUNTS, self.counts, strict=False)))

    @property
    def has_started(self) -> bool:
        """Whether the session has started, or has ended before it could."""
        return self.session_id is not None or self.has_outcome

    @property
    def has_outcome(self) -> bool:
        """Whether it is known how the session ended; only clean-up is left."""
        return self.outcome is not None or self.result is not None

    def hear(self, line: bytes | Overlong) -> dict[str, Any] | None:
        """Take a line; the event it holds, or None for a result and for what is no message."""
        try:
            message = _message(line)
        except WireError as problem:
            self._note(str(problem))
            return None
        kind = message["type"]
        if self.result is not None:
            self._note(f"{_kind(message)} came after the result")
            return None
        if kind == "result":
            self._take_result(message)
            return None
        self.last_event = kind
        self._take_event(message)
        return _message(line) if kind == "outcome" else message  # a listener may change what it gets, not what is kept

    def learn(self, event: dict[str, Any]) -> None:
        """Take an event that somebody else has heard."""
        self.last_event = event["type"]
        self._take_event(event)

    def _take_result(self, message: dict[str, Any]) -> None:
        try:
            result = SessionResult.model_validate(message)
        except ValidationError as invalid:
            self._note(f"a result line is not a result: {_explain(invalid)}")
            return
        if self._is_ours(result):
            self.result = result
        else:
            self._note(f"a result line names another session ({str(result.session_name)[:SHOWN]!r})")

    def _is_ours(self, result: SessionResult) -> bool:
        is_refusal = result.error is not None and result.error.category is Category.BAD_REQUEST
        known = {None} if is_refusal else set()
        return result.session_name in {self.session_name, *known} and result.id in {self.identity, None}

    def _take_event(self, event: dict[str, Any]) -> None:
        try:
            if event["type"] == "outcome":
                self.outcome = SessionResult.model_validate(event["result"])
            elif (learn := LESSONS.get(event["type"])) is not None:
                learn(self, event)
        except ODD as invalid:
            self._note(f"{_kind(event)} is not as the protocol has it: {_explain(invalid)}")

    def _note(self, problem: str) -> None:
        self.problems += 1
        self.first_problem = self.first_problem or problem


def _message(line: bytes | Overlong) -> dict[str, Any]:
    if isinstance(line, Overlong):
        raise WireError(str(line))
    try:
        message = decode(line)
    except WireError as problem:
        raise WireError(f"{problem}: {line[:SHOWN].decode(errors='replace')!r}") from None
    if not isinstance(message.get("type"), str):
        raise WireError(f"a line has no type: {line[:SHOWN].decode(errors='replace')!r}")
    return message


def _start(record: Record, event: dict[str, Any]) -> None:
    record.session_id = str(event["session_id"])
    model = event.get("model")
    record.model = None if model is None else str(model)


def _add_text(record: Record, event: dict[str, Any]) -> None:
    record.text.add_block(str(event["text"]))


def _add_piece(record: Record, event: dict[str, Any]) -> None:
    record.text.add_piece(str(event["text"]))


def _count_call(record: Record, _event: dict[str, Any]) -> None:
    record.tool_calls += 1


def _take_counts(record: Record, event: dict[str, Any]) -> None:
    try:
        one, two, three, four = counts = _counts(event)
        is_plain = type(one) is type(two) is type(three) is type(four) is int
    except KeyError:
        is_plain = False
    record.counts = counts if is_plain else _counts(Usage.model_validate(event).model_dump())


def _keep_warning(record: Record, event: dict[str, Any]) -> None:
    if len(record.warnings) < WARNINGS_KEPT:
        record.warnings.append(Notice.model_validate(event))


LESSONS: dict[str, Callable[[Record, dict[str, Any]], None] | None] = {
    "hello": None,
    "session_started": _start,
    "text": _add_text,
    "text_delta": _add_piece,
    "tool_use": _count_call,
    "tool_result": None,
    "api_retry": None,
    "rate_limit": None,
    "permission_denied": None,
    "usage": _take_counts,
    "warning": _keep_warning,
    "check": None,
    "session_ended": None,
}
"""What is learned from an event of a type, which raises where it is odd; all types but those that hold a result."""

ODD = (ValidationError, KeyError, TypeError)
"""What is raised where a message is not as the protocol has it."""


def _kind(message: dict[str, Any]) -> str:
    return f"a line of type {message['type'][:SHOWN]!r}"


def _explain(invalid: Exception) -> str:
    if isinstance(invalid, ValidationError):
        first = invalid.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(invalid).__name__} {invalid}"
