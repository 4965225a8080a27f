"""The request: what a session is to do. Policy travels in it; what may be spent on it (limits) travels beside it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from pydantic import ConfigDict, Field, ValidationError

from agentcell_protocol.codec import encode, kind
from agentcell_protocol.errors import RequestError
from agentcell_protocol.events import Detail
from agentcell_protocol.members import (
    Argument,
    Count,
    Effort,
    Location,
    Name,
    PermissionMode,
    Phase,
    SessionId,
    SettingSource,
    Text,
    Variables,
)
from agentcell_protocol.model import Frozen
from agentcell_protocol.refusals import refuse_unknown_members, shown, translated
from agentcell_protocol.result_file import is_occupied
from agentcell_protocol.version import PROTOCOL

MAX_SCHEMA = 120_000
"""Bytes in the largest `output_schema`: it goes to the CLI as one argument, and Linux allows 128 KiB for one."""

LIMITS = "limits travel beside a request: give them to agentcell-worker, or as the limits argument"

ELSEWHERE = {
    "limits": LIMITS,
    "timeout": f"did you mean the limit max_execution_seconds? {LIMITS}",
    "max_execution_seconds": LIMITS,
    "prompt": "did you mean starting_message?",
    "message": "did you mean starting_message?",
    "cwd": "did you mean project_dir?",
}
"""What people write whose spelling does not lead to the right member, and where it belongs."""


class SessionRequest(Frozen):
    """One session, as the caller asks for it. Relative paths are taken from the caller's working directory."""

    model_config = ConfigDict(extra="forbid")

    session_name: Name = Field(description="Names the session in its result and in messages.")
    agent_type: Argument = Field(description="Which kind of agent: its tools, its defaults, its flow.")
    project_dir: Location = Field(description="The directory the agent works in; it must exist.")
    starting_message: Text | None = Field(
        default=None, description="What the agent is to do. Left out for agent types that write it from `context`."
    )
    protocol: int = Field(
        default=PROTOCOL, description="The version of the wire.", json_schema_extra={"const": PROTOCOL}
    )
    id: Name | None = Field(default=None, description="Comes back in the result; `session_name` when left out.")
    spec_dir: Location | None = Field(
        default=None, description="Where implementation_plan.json is, which decides between `complete` and `continue`."
    )
    phase: Phase | None = Field(default=None, description="The build phase; the agent type's own when left out.")
    system_prompt: str | None = Field(default=None, description="The role prompt: it leads the starting message.")
    model: Argument | None = Field(default=None, description="The model; the CLI's default when left out.")
    fallback_model: Argument | None = Field(default=None, description="The model to use when the first is overloaded.")
    max_thinking_tokens: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Tokens for thinking; 0 turns it off, the agent type's own when left out."
    )
    effort: Effort | None = Field(default=None, description="How hard the model thinks.")
    max_turns: Count | None = Field(default=None, description="Turns after which the session ends with `max_turns`.")
    max_budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Cost in US dollars at which the session ends with `max_budget`."
    )
    permission_mode: PermissionMode | None = Field(default=None, description="The agent type's own when left out.")
    tools: list[Argument] | None = Field(default=None, description="Which tools exist; the agent type's when left out.")
    allowed_tools: list[Argument] | None = Field(default=None, description="Which tools need no permission.")
    disallowed_tools: list[Argument] | None = Field(default=None, description="Which tools are refused.")
    mcp_servers: dict[str, dict[str, Any]] | None = Field(default=None, repr=False, description="MCP servers by name.")
    add_dirs: list[Location] | None = Field(default=None, description="Further directories that the tools may use.")
    setting_sources: list[SettingSource] | None = Field(
        default=None, description="Whose settings, hooks and memory files act; nobody's when left out."
    )
    env: Variables | None = Field(
        default=None, repr=False, description="Environment variables for the agent's process."
    )
    output_schema: dict[str, Any] | None = Field(
        default=None, description="JSON Schema of the `structured_output` asked for."
    )
    session_id: SessionId | None = Field(default=None, description="The id the new session is to have.")
    resume: Argument | None = Field(default=None, description="The id of the session to go on with.")
    context: dict[str, Any] | None = Field(default=None, description="The agent type's own parameters by name.")
    agents_dir: Location | None = Field(default=None, description="Where further agent types are defined.")
    cli_path: Location | None = Field(default=None, description="The CLI to run instead of the bundled one.")
    result_file: Location | None = Field(default=None, description="The result is put here too, before it is written.")
    events: Detail = Field(default="none", description="Which events come before the result.")
    lifeline: bool = Field(
        default=False, description="Stdin stays open for the session; its end means that the caller is gone."
    )

    @property
    def identity(self) -> str:
        """The `id` of the result: the request's own, or its session name."""
        return self.id or self.session_name


def parse_request(data: object, *, base: Path | None = None) -> SessionRequest:
    """The request that `data` asks for, with its paths taken from `base` (the cwd).

    `data` is a decoded JSON object or a SessionRequest. Raises RequestError, which names the member, the
    reason and the remedy.
    """
    if isinstance(data, SessionRequest):
        data = data.model_dump(exclude_none=True)
    if not isinstance(data, Mapping):
        raise RequestError(None, f"it is {kind(data)}", "send one JSON object with the request's members")
    _check_version(data.get("protocol", PROTOCOL))
    refuse_unknown_members(data, SessionRequest.model_fields, thing="request", elsewhere=ELSEWHERE)
    try:
        request = SessionRequest.model_validate(dict(data))
    except ValidationError as invalid:
        raise translated(invalid, thing="request") from None
    request = _with_absolute_paths(request, base)
    _check(request)
    return request


def with_session_id(request: SessionRequest) -> SessionRequest:
    """The request with the id its session will have, so that every result can name it."""
    if request.session_id or request.resume:
        return request
    return request.model_copy(update={"session_id": str(uuid4())})


def _check_version(version: object) -> None:
    if version != PROTOCOL or isinstance(version, bool):
        reason = f"version {shown(version)} is not spoken here"
        raise RequestError("protocol", reason, f"send {PROTOCOL}, or leave it out")


def _with_absolute_paths(request: SessionRequest, base: Path | None) -> SessionRequest:
    paths: dict[str, Any] = {
        member: _absolute(base, value)
        for member in ("project_dir", "spec_dir", "agents_dir", "result_file")
        if (value := getattr(request, member)) is not None
    }
    paths["project_dir"] = os.path.realpath(paths["project_dir"])
    if request.add_dirs is not None:
        paths["add_dirs"] = [_absolute(base, path) for path in request.add_dirs]
    if request.cli_path is not None and "/" in request.cli_path:  # a bare name is looked up in PATH
        paths["cli_path"] = _absolute(base, request.cli_path)
    return request.model_copy(update=paths)


def _absolute(base: Path | None, path: str) -> str:
    location = Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises for an unknown user
    return str(location if location.is_absolute() else (base or _working_directory()) / location)


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        reason = "has a relative path, and the working directory has been removed"
        raise RequestError(None, reason, "give absolute paths, or start in a directory that exists") from None


def _check(request: SessionRequest) -> None:
    """What can only be said of the request as a whole, or by looking at the file system."""
    if not os.path.isdir(request.project_dir):  # noqa: PTH112 - pathlib raises for an overlong name
        raise RequestError(
            "project_dir", f"{request.project_dir} is not a directory", "name the directory the agent works in"
        )
    if request.result_file is not None and is_occupied(request.result_file):
        is_directory = os.path.isdir(request.result_file)  # noqa: PTH112 - as above
        reason = f"{request.result_file} is {'a directory' if is_directory else 'no ordinary file'}"
        raise RequestError("result_file", reason, "name a file, which need not exist")
    if request.session_id is not None and request.resume is not None:
        raise RequestError("session_id", "is given with resume", "leave one out: a resumed session keeps its id")
    if request.output_schema is not None and (size := len(encode(request.output_schema))) > MAX_SCHEMA:
        raise RequestError("output_schema", f"is {size} bytes long", f"keep it under {MAX_SCHEMA} bytes")
