"""What has been heard from one cell so far: enough to tell the truth about it whenever it ends."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from agentcell_protocol.codec import decode
from agentcell_protocol.errors import Category, WireError
from agentcell_protocol.framing import Overlong
from agentcell_protocol.result import Notice, SessionResult, Usage
from agentcell_protocol.text import Text

WARNINGS_KEPT = 100
"""A cell that warns without end must not fill the host's memory."""

SHOWN = 80
"""Characters of a line that is quoted in a warning."""


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
    usage: Usage = field(default_factory=Usage)
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
        if self.result is not None:
            self._note(f"{_kind(message)} came after the result")
            return None
        if message["type"] == "result":
            self._take_result(message)
            return None
        self._take_event(message)
        return message

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
        self.last_event = event["type"]
        try:
            self._learn(event)
        except (ValidationError, KeyError, TypeError) as invalid:
            self._note(f"{_kind(event)} is not as the protocol has it: {_explain(invalid)}")

    def _learn(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "session_started":
                self.session_id, self.model = str(event["session_id"]), event.get("model")
            case "text":
                self.text.add_block(str(event["text"]))
            case "text_delta":
                self.text.add_piece(str(event["text"]))
            case "tool_use":
                self.tool_calls += 1
            case "usage":
                self.usage = Usage.model_validate(event)
            case "warning" if len(self.warnings) < WARNINGS_KEPT:
                self.warnings.append(Notice.model_validate(event))
            case "outcome":
                self.outcome = SessionResult.model_validate(event["result"])

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


def _kind(message: dict[str, Any]) -> str:
    return f"a line of type {message['type'][:SHOWN]!r}"


def _explain(invalid: Exception) -> str:
    if isinstance(invalid, ValidationError):
        first = invalid.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(invalid).__name__} {invalid}"
