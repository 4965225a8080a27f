"""Lines of JSON, read one at a time: each the members of an object, or what is wrong with it, and where it stands."""

import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import orjson

from agentcell_protocol.errors import RequestError
from agentcell_protocol.framing import LINE_LIMIT, Overlong
from agentcell_protocol.intake import decode_request


class _Line(NamedTuple):
    number: int
    offset: int
    content: bytes | Overlong


class Taken(NamedTuple):
    """What a line holds: `number` is its own, from 1, `offset` where it begins, in bytes."""

    number: int
    offset: int
    content: bytes | Overlong
    members: dict[str, Any] | RequestError

    @property
    def checksum(self) -> int:
        """Of what it is."""
        return zlib.crc32(self.content) if isinstance(self.content, bytes) else 0


def take_in(source: BinaryIO) -> Iterator[Taken]:
    """What the lines of a file or stream hold, from its beginning, each as soon as it is there. Blocks.

    Lines that are blank, or belong to an indented object whose first line is wrong already, are passed over.
    """
    is_inside = False
    for line in _lines(source):
        members = _decoded(line.content)
        if isinstance(members, RequestError):
            if is_inside and _is_indented(line.content):
                continue
            is_inside = _begins_object(line.content)
        else:
            is_inside = False
        yield Taken(*line, members)


def take_at(source: BinaryIO, offset: int, number: int) -> Taken | None:
    """What the line with this number, which began at `offset`, holds by now; None when there is none. Blocks."""
    source.seek(0, os.SEEK_END)  # which lets go of what was read ahead: it may be written over by now
    source.seek(offset)
    line = next(_lines(source), None)
    if line is None or line.offset:
        return None
    return Taken(number, offset, line.content, _decoded(line.content))


def merged(members: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The members, and the defaults for those that are left out, of `limits` each by itself."""
    if not defaults:
        return members
    filled = {**defaults, **members}
    own, common = members.get("limits"), defaults.get("limits")
    if isinstance(own, dict) and isinstance(common, dict):
        filled["limits"] = {**common, **own}
    return filled


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
