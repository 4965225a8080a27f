"""The rows of a batch: one request a line, with limits beside its members, read one at a time."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import orjson
from pydantic import TypeAdapter, ValidationError

from agentcell.batch.identity import default_name, digest
from agentcell.limits import Limits
from agentcell_protocol.errors import RequestError
from agentcell_protocol.framing import LINE_LIMIT, Overlong
from agentcell_protocol.intake import decode_request
from agentcell_protocol.members import Name
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import NAMING, SessionResult, names_in, refused

NOTHING: Mapping[str, Any] = MappingProxyType({})

ONE_EACH = ("id", "session_id", "resume", "result_file")
"""Members that no two rows may share, and so no default can give."""

WRITING_TOOLS = frozenset({"Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"})
"""The CLI's own tools that change files; one of an MCP server may, too."""


@dataclass(frozen=True, slots=True)
class Row:
    """A request of a batch. `number` is its line's, from 1; `offset` where that begins, in bytes."""

    number: int
    offset: int
    id: str
    digest: str
    request: SessionRequest
    limits: Limits


@dataclass(frozen=True, slots=True)
class KnownRow:
    """A line that is the row `is_known` knows, and was not looked at any further."""

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


class _Line(NamedTuple):
    number: int
    offset: int
    content: bytes | Overlong


def read_rows(
    source: BinaryIO, *, defaults: Mapping[str, Any] = NOTHING, base: Path | None = None
) -> Iterator[Row | Problem]:
    """As `read_lines`, where no row is known."""
    for line in read_lines(source, lambda _id, _digest: False, defaults=defaults, base=base):
        if not isinstance(line, KnownRow):
            yield line


def read_lines(
    source: BinaryIO,
    is_known: Callable[[str, str], bool],
    *,
    defaults: Mapping[str, Any] = NOTHING,
    base: Path | None = None,
) -> Iterator[Row | KnownRow | Problem]:
    """The rows of a file or stream from its beginning, each as soon as its line is there. Blocks.

    `is_known` gets id and digest of each: to check a request takes many times what it takes to know it again.

    `defaults` (see `checked_defaults`) fill the members a row leaves out, `limits` member by member. Relative paths are
    taken from `base` (the cwd). Lines that are blank, or belong to an indented object whose first line is a problem
    already, are passed over.
    """
    seen: dict[str, int] = {}
    is_inside = False
    for line in _lines(source):
        found = _decoded(line.content)
        if isinstance(found, RequestError):
            if is_inside and _is_indented(line.content):
                continue
            is_inside = _begins_object(line.content)
            yield _unlike(Problem(line.number, line.offset, f"line-{line.number}", found), seen)
        else:
            is_inside = False
            members = _merged(found, defaults)
            content = digest(members)
            yield _unlike(_known(line, members, content, is_known) or _read(line, members, content, base), seen)


def row_at(
    source: BinaryIO, offset: int, number: int, *, defaults: Mapping[str, Any] = NOTHING, base: Path | None = None
) -> Row | Problem:
    """The row whose line begins at `offset`, read again; whether it has changed, its digest says. Blocks."""
    source.seek(offset)
    line = next(_lines(source), None)
    if line is None:
        error = RequestError(None, f"line {number} is gone", "leave the file alone while it is run")
        return Problem(number, offset, f"line-{number}", error)
    line = line._replace(number=number, offset=offset)
    found = _decoded(line.content)
    if isinstance(found, RequestError):
        return Problem(number, offset, f"line-{number}", found)
    members = _merged(found, defaults)
    return _read(line, members, digest(members), base)


def checked_defaults(members: Mapping[str, Any], *, base: Path | None = None) -> Mapping[str, Any]:
    """The members that rows may leave out. Raises RequestError, which names the one that cannot be a default."""
    for name in ONE_EACH:
        if name in members:
            raise RequestError(name, "would be the same for all rows", "leave it out of the defaults")
    filled = {"session_name": "-", "agent_type": "-", "project_dir": os.sep, **members}
    Limits.from_mapping(filled.pop("limits", None))
    parse_request(filled, base=base)
    return MappingProxyType(dict(members))


def may_write(row: Row) -> bool:
    """Whether the session may change files, as far as the request says."""
    if row.request.permission_mode == "plan":
        return False
    tools = row.request.tools
    return tools is None or any(tool in WRITING_TOOLS or tool.startswith("mcp__") for tool in tools)


def write_conflicts(rows: Iterable[Row | KnownRow | Problem]) -> dict[str, int]:
    """The project directories in which more than one row may write, and how many may."""
    writers = Counter(row.request.project_dir for row in rows if isinstance(row, Row) and may_write(row))
    return {project: count for project, count in writers.items() if count > 1}


def _lines(source: BinaryIO) -> Iterator[_Line]:
    """The lines that are not blank; of one that is too long only where it is."""
    number = offset = 0
    while chunk := source.readline(LINE_LIMIT + len(b"\r\n")):
        number += 1
        size = len(chunk)
        content = chunk.removesuffix(b"\n").removesuffix(b"\r")
        if len(content) > LINE_LIMIT:
            size += 0 if chunk.endswith(b"\n") else _pass_over(source)
            yield _Line(number, offset, Overlong(LINE_LIMIT))
        elif content and not content.isspace():
            yield _Line(number, offset, content)
        offset += size


def _pass_over(source: BinaryIO) -> int:
    """How many bytes were left of the line."""
    size = 0
    while chunk := source.readline(LINE_LIMIT):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return size


def _decoded(content: bytes | Overlong) -> dict[str, Any] | RequestError:
    try:
        if isinstance(content, bytes) and isinstance(message := orjson.loads(content), dict):
            return message
    except orjson.JSONDecodeError:
        pass
    return _decoded_or_told(content)


def _decoded_or_told(content: bytes | Overlong) -> dict[str, Any] | RequestError:
    """As `_decoded`, for what is no plain line: one that begins with a BOM, or one that is wrong."""
    try:
        if isinstance(content, bytes):
            content.decode()
        return decode_request(content)
    except UnicodeDecodeError as invalid:
        where = f"byte {invalid.start + 1} of the line is 0x{invalid.object[invalid.start]:02x}"
        return RequestError(None, f"it is not UTF-8: {where}", "save the file as UTF-8")
    except RequestError as refusal:
        return refusal


def _begins_object(content: bytes | Overlong) -> bool:
    return isinstance(content, bytes) and content.lstrip(b"\xef\xbb\xbf \t").startswith(b"{")


def _is_indented(content: bytes | Overlong) -> bool:
    return isinstance(content, bytes) and content.startswith((b" ", b"\t", b"}", b"]"))


def _merged(members: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**defaults, **members}
    own, common = members.get("limits"), defaults.get("limits")
    if isinstance(own, dict) and isinstance(common, dict):
        merged["limits"] = {**common, **own}
    return merged


def _read(line: _Line, members: dict[str, Any], content: str, base: Path | None) -> Row | Problem:
    try:
        limits = Limits.from_mapping(members.get("limits"))
        request = {name: value for name, value in members.items() if name != "limits"}
        if request.get("session_name") is None:
            request["session_name"] = default_name(content)
        parsed = parse_request(request, base=base)
        return Row(line.number, line.offset, parsed.identity, content, parsed, limits)
    except RequestError as refusal:
        id_ = _own_id(members) or f"line-{line.number}"
        return Problem(line.number, line.offset, id_, refusal, content, names_in(members))


def _known(
    line: _Line, members: Mapping[str, Any], content: str, is_known: Callable[[str, str], bool]
) -> KnownRow | None:
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
    error = RequestError("id", f"{found.id} is the id of line {first}, too", "give each row an id of its own")
    names = {} if isinstance(found, KnownRow) else names_in(found.request.model_dump(include=set(NAMING)))
    return Problem(found.number, found.offset, id_, error, found.digest, names)


_NAME: TypeAdapter[str] = TypeAdapter(Name)
