"""The script of an offline model: what it answers, turn by turn. The docstring of the package shows one."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
]
Moment = Literal["start", "middle"]

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""What the API calls its errors, by HTTP status; every other one is an `api_error`."""


class ScriptError(ValueError):
    """A script that cannot be played: `place` is where in it, `reason` what is wrong, `remedy` what to do."""

    def __init__(self, place: str, reason: str, remedy: str) -> None:
        self.place = place
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{place}: {reason}; {remedy}")


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _named(turns: list[Any]) -> list[Any]:
    if not turns:
        raise ValueError("has no turns")
    return turns


Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Texts = Annotated[list[str], BeforeValidator(_as_list)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class ToolCall(_Part):
    """A tool the model calls; paths in `input` may be relative to the project."""

    name: Annotated[str, Field(min_length=1)]
    input: dict[str, Any] = {}


class ApiError(_Part):
    """An error of the API. `type` follows from `status` unless it is given."""

    status: Annotated[int, Field(ge=400, le=599)]
    type: str | None = None
    message: str = "scripted error"
    headers: dict[str, str | int] = {}

    @property
    def name(self) -> str:
        return self.type or ERROR_TYPES.get(self.status, "api_error")


class TokenUsage(_Part):
    """What an answer says it cost, in tokens."""

    input_tokens: int = 10
    output_tokens: int = 5
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class Turn(_Part):
    """What the model does with one request (or with `times` requests in a row).

    An answer is made of `thinking`, `text` (each string a block, sent `repeat` times over) and `tools`; with
    none of them it is empty. It begins after `delay` seconds and streams each text in `chunks` pieces, with
    `pace` seconds after each event. `stall` and `drop` stop it, at the start or in the middle. In its place there
    can be an `error` of the API, or any `body` with status 200.
    """

    text: Texts = []
    repeat: Count = 1
    thinking: str | None = None
    tools: list[ToolCall] = []
    stop_reason: StopReason | None = None
    usage: TokenUsage = TokenUsage()
    chunks: Count | None = None
    pace: Seconds = 0.0
    delay: Seconds = 0.0
    stall: Moment | None = None
    drop: Moment | None = None
    error: ApiError | None = None
    body: str | None = None
    content_type: str = "application/json"
    times: Count | Literal["always"] = 1

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        instead = [name for name in ("error", "body", "stall", "drop") if getattr(self, name) is not None]
        if len(instead) > 1:
            raise ValueError(f"has both {instead[0]} and {instead[1]}")
        answer = self.model_fields_set & {"text", "thinking", "tools", "stop_reason"}
        if answer and instead and instead[0] in {"error", "body"}:
            raise ValueError(f"has both {instead[0]} and {min(answer)}")
        return self

    @property
    def reason(self) -> StopReason:
        """Why the answer stops, when it does."""
        return self.stop_reason or ("tool_use" if self.tools else "end_turn")


Turns = Annotated[list[Turn], AfterValidator(_named)]


class Conversation(_Part):
    """The turns of the sessions it fits: those whose prompt contains `match`, or the `session`-th that asks."""

    match: str | None = None
    session: Count | None = None
    turns: Turns

    @model_validator(mode="after")
    def _says_whose(self) -> Self:
        if (self.match is None) == (self.session is None):
            raise ValueError("says not, or twice, which sessions it is for")
        return self


class Script(_Part):
    """The conversations, the first that fits a session counts; `turns` is for the sessions that none fits."""

    sessions: list[Conversation] = []
    turns: list[Turn] = []


PARTS: Mapping[str, type[_Part]] = {
    "script": Script,
    "sessions": Conversation,
    "turns": Turn,
    "tools": ToolCall,
    "error": ApiError,
    "usage": TokenUsage,
}
"""What stands at a place, by the last name of the place."""

REASONS = {"extra_forbidden": "is not known here", "missing": "is missing"}
"""In place of pydantic's words, by the kind of its error."""

KINDS = {
    "model_type": "it should be a mapping",
    "dict_type": "it should be a mapping",
    "list_type": "it should be a list",
}
"""What to do about a value of another kind, in place of pydantic's words, by the kind of its error."""

REMEDIES = {
    "is missing": "add it",
    "has no turns": "give at least one turn",
    "says not": "give one of match (text in the prompt) and session (a number from 1)",
    "has both": "a turn is an answer, an error, a body, a stall or a drop: leave one out",
}
"""What to do, by how the reason begins."""


def load_script(source: "Script | Mapping[str, Any] | Path | str") -> Script:
    """The script in a dict, or in the YAML or JSON file (`.json`) at a path.

    Raises ScriptError, which names the place, the reason and the remedy.
    """
    if isinstance(source, Script):
        return source
    data = source if isinstance(source, Mapping) else _read(Path(source))
    try:
        return Script.model_validate(data)
    except ValidationError as invalid:
        raise _translate(invalid.errors()[0]) from None


def _read(path: Path) -> Any:
    try:
        text = path.read_text("utf-8")
        data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as unreadable:
        why = getattr(unreadable, "strerror", None) or unreadable
        raise ScriptError(str(path), f"cannot be read: {why}", "name a YAML or JSON file") from None
    except (yaml.YAMLError, json.JSONDecodeError) as invalid:
        raise ScriptError(str(path), f"is not valid: {invalid}", "correct it at that line") from None
    except RecursionError:
        raise ScriptError(str(path), "is nested too deep", "take levels of brackets or indentation out of it") from None
    if not isinstance(data, Mapping):
        raise ScriptError(str(path), "is not a mapping", "begin it with `turns:` or `sessions:`")
    return data


def _translate(error: ErrorDetails) -> ScriptError:
    """The error in our words; pydantic adds to a place which of two types it tried there."""
    names = [part for part in error["loc"] if part != "constrained-int"]
    place = "script" + "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in names)
    reason = REASONS.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return ScriptError(place, reason, _meant(names))
    for beginning, remedy in REMEDIES.items():
        if reason.startswith(beginning):
            return ScriptError(place, reason, remedy)
    remedy = KINDS.get(error["type"]) or "it " + reason.removeprefix("Input ")
    return ScriptError(place, f"{error['input']!r:.60} is not allowed here", remedy)


def _meant(names: list[int | str]) -> str:
    """What to do about the last of these names, which is no member of the part it stands in."""
    *above, name = ["script", *(name for name in names if isinstance(name, str))]
    members = PARTS[above[-1]].model_fields
    close = get_close_matches(name, members, n=1)
    return f"did you mean {close[0]}?" if close else f"give some of {', '.join(members)}, or leave it out"
