"""What of a message does not follow its schema, in words for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentcell_protocol.refusals import shown

KINDS = {
    "missing": "to be there",
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than_equal": "{ge} or more",
}
"""What a member is to be, by pydantic's type of error, and formatted with its context."""

ERROR_WITH_STATUS = "an error exactly when the status is error"
"""The one rule of a result that is about two members."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What the schema asks for, and what is there instead."""

    expected: str
    came: str


def fault(schema: TypeAdapter[Any], message: Mapping[str, Any], *, strict: bool | None = None) -> Fault | None:
    """The first fault of a message; None if it has none."""
    try:
        schema.validate_python(message, strict=strict)
    except ValidationError as invalid:
        return _told(invalid, message)
    return None


def _told(invalid: ValidationError, message: Mapping[str, Any]) -> Fault:
    error = invalid.errors(include_url=False)[0]
    member = ".".join(map(str, error["loc"]))
    if not member:
        return Fault(ERROR_WITH_STATUS, f"status {shown(message.get('status'))}, error {shown(message.get('error'))}")
    kind = KINDS.get(error["type"], "what the schema says").format(**error.get("ctx", {}))
    return Fault(f"{member}: {kind}", "no such member" if error["type"] == "missing" else shown(error["input"]))
