"""The kinds of values that a request's members have, each with its check and its JSON Schema."""

import os
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

MAX_NAME = 200
"""Characters in the longest session name or id."""

REFUSED = "agentcell"
"""The type of a validation error that brings its own reason and remedy."""

OWN_PREFIX = "AGENTCELL_"
"""Begins the names of the variables that a cell is made and found with."""

Phase = Literal["planning", "coding", "validation"]
PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
SettingSource = Literal["user", "project", "local"]


def _refuse(reason: str, remedy: str) -> PydanticCustomError:
    return PydanticCustomError(REFUSED, "{reason}; {remedy}", {"reason": reason, "remedy": remedy})


def _name(value: str) -> str:
    if not value or len(value) > MAX_NAME:
        raise _refuse(f"is {len(value)} characters long", f"give 1 to {MAX_NAME} characters")
    if not value.isprintable() or "/" in value or value in {".", ".."}:
        raise _refuse("cannot be used as a name", "give printable characters without '/', and not '.' or '..'")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise _refuse("is blank", "say what the agent is to do")
    return value


def _argument(value: str) -> str:
    if not value:
        raise _refuse("is empty", "give a value")
    if "\0" in value:
        raise _refuse("holds a NUL character", "leave it out of the value")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _refuse("holds half a character (a lone surrogate)", "give valid Unicode")
    return value


def _uuid(value: str) -> str:
    try:
        return str(UUID(value))
    except ValueError:
        raise _refuse("is not a UUID", "give one such as Python's uuid.uuid4(), or leave the member out") from None


def _variables(value: dict[str, str]) -> dict[str, str]:
    for name, content in value.items():
        if not name or "=" in name or "\0" in name + content:
            raise _refuse(f"cannot set {name[:40]!r}", "give names without '=', and no NUL characters")
        if name.startswith(OWN_PREFIX):  # what is left of a cell is found by its marker
            raise _refuse(f"cannot set {name[:40]!r}", f"leave out {OWN_PREFIX}…: these variables are the cell's own")
    return value


def _path(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


Name = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": "^[^/]+$"}),
]
"""Names a session or an item: fit for a log line, and for a file name once shortened."""

Text = Annotated[str, AfterValidator(_not_blank), WithJsonSchema({"type": "string", "pattern": "\\S"})]
"""Says something."""

Argument = Annotated[str, AfterValidator(_argument), WithJsonSchema({"type": "string", "minLength": 1})]
"""Can be handed to a program."""

Location = Annotated[Argument, BeforeValidator(_path)]
"""A path; in Python a `Path` will do."""

SessionId = Annotated[str, AfterValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
"""What the CLI takes as the id of a new session."""

Variables = Annotated[dict[str, str], AfterValidator(_variables)]
"""Environment variables by name."""

Count = Annotated[int, Field(ge=1)]
"""At least one."""
