"""What is wrong with a message, as a `RequestError`: the member, the reason and the remedy."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from agentcell_protocol.codec import encode, kind
from agentcell_protocol.errors import RequestError
from agentcell_protocol.members import REFUSED

MAX_SHOWN = 60
"""Characters of a refused value that its error shows."""

REMEDIES = {
    "string_type": "give a string",
    "int_type": "give a whole number",
    "float_type": "give a number",
    "bool_type": "give true or false",
    "list_type": "give an array",
    "dict_type": "give an object",
    "literal_error": "give {expected}",
    "greater_than": "give more than {gt:g}",
    "greater_than_equal": "give {ge} or more",
}
"""By pydantic's type of error, and formatted with its context."""


def refuse_unknown_members(
    data: Mapping[Any, Any], known: Iterable[str], *, thing: str, elsewhere: Mapping[str, str]
) -> None:
    """Raise RequestError for the first member that a `thing` does not have.

    `elsewhere` has remedies for names whose spelling does not lead to the right member.
    """
    names = list(known)
    for member in data:
        if member not in names:
            name = str(member)[:MAX_SHOWN]
            raise RequestError(name, f"is not a member of a {thing}", elsewhere.get(name) or suggestion(name, names))


def suggestion(name: str, known: list[str]) -> str:
    """The known name that is probably meant, or all that there are."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"leave it out; the members are {', '.join(known)}"


def translated(invalid: ValidationError, *, thing: str) -> RequestError:
    """The first of what pydantic found wrong with a `thing`."""
    error = invalid.errors(include_url=False)[0]
    member = ".".join(str(part) for part in error["loc"])
    context = error.get("ctx", {})
    if error["type"] == REFUSED:
        return RequestError(member, context["reason"], context["remedy"])
    if error["type"] == "missing":
        return RequestError(member, "is missing", f"add it: every {thing} has one")
    remedy = REMEDIES.get(error["type"], "give what docs/protocol.md says").format(**context)
    return RequestError(member, f"{shown(error['input'])} is not allowed here", remedy)


def shown(value: object) -> str:
    """A refused value as JSON, shortened; what holds others by its kind only."""
    if not isinstance(value, str | int | float):
        return kind(value)
    text = encode({"": value}).decode()[4:-2]
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
