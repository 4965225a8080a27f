"""The rows of a batch: one request a line, with limits beside its members, read one at a time."""

import os
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from pydantic import TypeAdapter, ValidationError

from agentcell.batch.identity import default_name, digest
from agentcell.batch.intake import Taken, merged, take_at, take_in
from agentcell.batch.rules import Rules, placed
from agentcell.limits import Limits
from agentcell_protocol.errors import RequestError
from agentcell_protocol.members import Name
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import NAMING, SessionResult, names_in, refused

NO_RULES = Rules()

ONE_EACH = ("id", "session_id", "resume", "result_file")
"""Members that no two rows may share, and so no default can give."""

_BUT_ID = ONE_EACH[1:]

IsKnown = Callable[[str, str], bool]
"""Gets the id and the digest of a row; says whether it need not be looked at any further."""


@dataclass(frozen=True, slots=True)
class Row:
    """A request of a batch. `number` is its line's, from 1; `offset` where that begins, in bytes; `checksum` of it."""

    number: int
    offset: int
    id: str
    digest: str
    request: SessionRequest
    limits: Limits
    checksum: int = field(default=0, compare=False)


class KnownRow(NamedTuple):
    """A row that is known, and was not looked at any further."""

    number: int
    offset: int
    id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that is no row. Its `id` is the row's own, if that can be one, or `line-` and its number.

    `digest` is None where the line is not even an object; `names` are what the row says of itself.
    """

    number: int
    offset: int
    id: str
    error: RequestError
    digest: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def as_result(self) -> SessionResult:
        """The same, as the result of a row that is not run."""
        return refused(self.error, {**self.names, "id": self.id})


def read_rows(source: BinaryIO, rules: Rules = NO_RULES) -> Iterator[Row | Problem]:
    """As `read_lines`, where no row is known."""
    for line in read_lines(source, lambda _id, _digest: False, rules):
        if not isinstance(line, KnownRow):
            yield line


def read_lines(source: BinaryIO, is_known: IsKnown, rules: Rules = NO_RULES) -> Iterator[Row | KnownRow | Problem]:
    """The rows of a file or stream from its beginning, each as soon as its line is there. Blocks.

    To check a request takes many times what it takes to know it again. Relative paths are those of the cwd.
    """
    seen: dict[str, int] = {}
    taken: dict[tuple[str, str], int] = {}
    for line in take_in(source):
        if isinstance(line.members, RequestError):
            yield _unlike(_nothing(line, line.members), seen)
            continue
        members = merged(line.members, rules.defaults)
        content = digest(members)
        found = _known(line, members, content, is_known) or _read(line, members, content, rules)
        found = _unlike(found, seen)
        yield found if members.keys().isdisjoint(_BUT_ID) else _alone(found, members, taken)


def row_at(source: BinaryIO, offset: int, number: int, checksum: int, rules: Rules = NO_RULES) -> Row | Problem | None:
    """The row whose line begins at `offset`, read again; None when the line is another now. Blocks."""
    line = take_at(source, offset, number)
    if line is None or line.checksum != checksum:
        return None
    if isinstance(line.members, RequestError):
        return _nothing(line, line.members)
    members = merged(line.members, rules.defaults)
    return _read(line, members, digest(members), rules)


def checked_defaults(members: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members that rows may leave out. Raises RequestError, which names the one that cannot be a default."""
    for name in ONE_EACH:
        if name in members:
            raise RequestError(name, "would be the same for all rows", "leave it out of the defaults")
    filled = {"session_name": "-", "agent_type": "-", "project_dir": os.sep, **members}
    Limits.from_mapping(filled.pop("limits", None))
    parse_request(filled)
    return MappingProxyType(dict(members))


def _nothing(line: Taken, error: RequestError) -> Problem:
    return Problem(line.number, line.offset, f"line-{line.number}", copy(error))


def _read(line: Taken, members: dict[str, Any], content: str, rules: Rules) -> Row | Problem:
    try:
        limits = Limits.from_mapping(members.get("limits"))
        request = {name: value for name, value in members.items() if name != "limits"}
        if request.get("session_name") is None:
            request["session_name"] = default_name(content)
        parsed = parse_request(request)
        rules.check(parsed.result_file)
        return Row(line.number, line.offset, parsed.identity, content, parsed, limits, line.checksum)
    except RequestError as refusal:
        id_ = _own_id(members) or f"line-{line.number}"
        told = copy(refusal)  # as it was raised it holds the frames that it came through, and with them the line
        return Problem(line.number, line.offset, id_, told, content, names_in(members))


def _known(line: Taken, members: Mapping[str, Any], content: str, is_known: IsKnown) -> KnownRow | None:
    id_ = members.get("id") or members.get("session_name") or default_name(content)
    if isinstance(id_, str) and is_known(id_, content):
        return KnownRow(line.number, line.offset, id_, content)
    return None


def _own_id(members: Mapping[str, Any]) -> str | None:
    """The id that the row gives itself, if it can be one."""
    given = members.get("id")
    try:
        return _NAME.validate_python(members.get("session_name") if given is None else given, strict=True)
    except ValidationError:
        return None


def _unlike(found: Row | KnownRow | Problem, seen: dict[str, int]) -> Row | KnownRow | Problem:
    """The same with an id that no line before has; a row whose id one has is a problem."""
    first = seen.setdefault(found.id, found.number)
    if first == found.number:
        return found
    id_ = f"line-{found.number}"
    while seen.setdefault(id_, found.number) != found.number:
        id_ += "-again"
    if isinstance(found, Problem):
        return replace(found, id=id_)
    return _second(found, id_, "id", found.id, first)


def _alone(
    found: Row | KnownRow | Problem, members: Mapping[str, Any], taken: dict[tuple[str, str], int]
) -> Row | KnownRow | Problem:
    """The same; a row that says what only one may say, and a line before has said, is a problem."""
    if isinstance(found, Problem):
        return found
    for name in _BUT_ID:
        if isinstance(value := members.get(name), str):
            key = name, placed(value) if name == "result_file" else value
            if (first := taken.setdefault(key, found.number)) != found.number:
                return _second(found, found.id, name, value, first)
    return found


def _second(found: Row | KnownRow, id_: str, member: str, value: str, first: int) -> Problem:
    """The problem of a row whose member has the value that it has in the first one."""
    if member == "id" and found.digest is not None and value == default_name(found.digest):
        reason = f"there is none, and the row is the same as line {first}"
        remedy = "give it an id of its own, or leave it out"
    else:
        reason = f"{value} is the {member} of line {first}, too"
        remedy = f"give each row {'an' if member == 'id' else 'a'} {member} of its own"
    names = {} if isinstance(found, KnownRow) else names_in(found.request.model_dump(include=set(NAMING)))
    return Problem(found.number, found.offset, id_, RequestError(member, reason, remedy), found.digest, names)


_NAME: TypeAdapter[str] = TypeAdapter(Name)
