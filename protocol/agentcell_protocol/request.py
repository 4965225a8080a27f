"""The request: what a session is to do. Policy travels in it; what may be spent on it (limits) travels beside it."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from agentcell_protocol.errors import RequestError
from agentcell_protocol.model import Frozen
from agentcell_protocol.version import PROTOCOL

MAX_NAME = 200
"""Characters in the longest session name or id."""

MAX_SCHEMA = 120_000
"""Bytes in the largest `output_schema`: it goes to the CLI as one argument, and Linux allows 128 KiB for one."""

Phase = Literal["planning", "coding", "validation"]
PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
SettingSource = Literal["user", "project", "local"]
EventDetail = Literal["none", "summary", "full"]


def _refuse(reason: str, remedy: str) -> PydanticCustomError:
    return PydanticCustomError("agentcell", "{reason}", {"reason": reason, "remedy": remedy})


def _name(value: str) -> str:
    if not value or len(value) > MAX_NAME:
        raise _refuse(f"is {len(value)} characters long", f"give 1 to {MAX_NAME} characters")
    if not value.isprintable() or "/" in value or value in {".", ".."}:
        raise _refuse("cannot be used as a name", "give printable characters without '/', not '.' or '..'")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise _refuse("is blank", "say what the agent is to do")
    return value


Name = Annotated[str, AfterValidator(_name)]
Text = Annotated[str, AfterValidator(_not_blank)]
Count = Annotated[int, Field(ge=1)]


class SessionRequest(Frozen):
    """One session, as the caller asks for it. Paths are absolute once `parse_request` has read them."""

    model_config = ConfigDict(extra="forbid")

    session_name: Name
    agent_type: Annotated[str, Field(min_length=1)]
    project_dir: Annotated[str, Field(min_length=1)]
    starting_message: Text | None = None
    protocol: int = PROTOCOL
    id: Name | None = None
    spec_dir: str | None = None
    phase: Phase | None = None
    system_prompt: str | None = None
    model: str | None = None
    fallback_model: str | None = None
    max_thinking_tokens: Annotated[int, Field(ge=0)] | None = None
    effort: Effort | None = None
    max_turns: Count | None = None
    max_budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    permission_mode: PermissionMode | None = None
    tools: list[str] | None = None
    allowed_tools: list[str] | None = None
    disallowed_tools: list[str] | None = None
    mcp_servers: dict[str, dict[str, Any]] | None = None
    add_dirs: list[str] | None = None
    setting_sources: list[SettingSource] | None = None
    env: dict[str, str] | None = None
    output_schema: dict[str, Any] | None = None
    session_id: str | None = None
    resume: str | None = None
    context: dict[str, Any] | None = None
    agents_dir: str | None = None
    cli_path: str | None = None
    result_file: str | None = None
    events: EventDetail = "none"
    lifeline: bool = False

    @property
    def identity(self) -> str:
        """The `id` of the result: the request's own, or its session name."""
        return self.id or self.session_name


def parse_request(data: object, *, base: Path | None = None) -> SessionRequest:
    """The request that `data`, a decoded JSON object, asks for, with its paths taken from `base` (the cwd).

    Raises RequestError, which names the member, the reason and the remedy.
    """
    if not isinstance(data, Mapping):
        raise RequestError(None, "it is not a JSON object", "send one object with the request's members")
    _refuse_unknown_members(data)
    try:
        request = SessionRequest.model_validate(data)
    except ValidationError as invalid:
        raise _translate(invalid.errors()[0]) from None
    request = _with_absolute_paths(request, base or Path.cwd())
    _check(request)
    return request


def _refuse_unknown_members(data: Mapping[Any, Any]) -> None:
    known = list(SessionRequest.model_fields)
    for member in data:
        if member not in known:
            close = get_close_matches(str(member), known, n=1)
            remedy = f"did you mean {close[0]}?" if close else f"leave it out; the members are {', '.join(known)}"
            raise RequestError(str(member), "is not a member of a request", remedy)


def _translate(error: ErrorDetails) -> RequestError:
    member = ".".join(str(part) for part in error["loc"])
    context = error.get("ctx", {})
    if error["type"] == "agentcell":
        return RequestError(member, context["reason"], context["remedy"])
    if error["type"] == "missing":
        return RequestError(member, "is missing", "every request has it")
    given = error["input"]
    shown = "null" if given is None else repr(given)[:60]
    return RequestError(member, f"{shown} is not allowed here", "it " + error["msg"].removeprefix("Input "))


def _with_absolute_paths(request: SessionRequest, base: Path) -> SessionRequest:
    paths = {
        member: str(base / Path(value).expanduser())
        for member in ("project_dir", "spec_dir", "agents_dir", "result_file")
        if (value := getattr(request, member)) is not None
    }
    return request.model_copy(
        update={
            **paths,
            "project_dir": str(Path(paths["project_dir"]).resolve()),
            "add_dirs": request.add_dirs and [str(base / Path(path).expanduser()) for path in request.add_dirs],
        }
    )


def _check(request: SessionRequest) -> None:
    """What can only be said of the request as a whole, or by looking at the file system."""
    if request.protocol != PROTOCOL:
        raise RequestError(
            "protocol",
            f"version {request.protocol} is not spoken here",
            f"send version {PROTOCOL}, or leave it out",
        )
    if not Path(request.project_dir).is_dir():
        raise RequestError(
            "project_dir",
            f"{request.project_dir} is not a directory",
            "name the directory the agent works in",
        )
    if request.session_id is not None and request.resume is not None:
        raise RequestError("session_id", "is given with resume", "leave one out: a resumed session keeps its id")
