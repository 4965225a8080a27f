"""One request from stdin: the object on its first line, without waiting for the stream to end."""

import errno
import os
import select
import time
from dataclasses import dataclass
from typing import Any

from agentcell_protocol.codec import decode
from agentcell_protocol.errors import RequestError, WireError
from agentcell_protocol.framing import LineFramer, Overlong
from agentcell_protocol.result import Notice

WAIT_SECONDS = 60.0
"""From the start to a whole line: long enough for a host to send 30 MiB, short enough for a person to notice."""

CHUNK_BYTES = 1024 * 1024
"""In one read; a pipe gives less."""

LATER_LINES = Notice(code="later_lines", message="stdin held more than one line; only the first is the request")

SEND_ONE_LINE = "send the request as one line of JSON on stdin"

SEND_ALL = "write the whole object and a line feed before you close stdin"

UNREADABLE = frozenset({errno.EBADF, errno.EIO, errno.EISDIR})
"""A stdin that was closed, or never was a stream, is an empty one."""


@dataclass(frozen=True, slots=True)
class Intake:
    """The first line's object, and what was odd about the way it came."""

    message: dict[str, Any]
    notices: tuple[Notice, ...] = ()


def read_message(fd: int | None = 0, *, wait_seconds: float = WAIT_SECONDS) -> Intake:
    """The object on the first line of `fd` (None: there is no stdin).

    Blank lines before it are skipped, a missing line end is forgiven. Raises RequestError when `fd` is a terminal,
    is closed or empty, gives no whole line within `wait_seconds`, or when its line is too long or no JSON object.
    Blocks.
    """
    if fd is None:
        return Intake(decode_request(None))
    if _is_terminal(fd):
        raise RequestError(None, "stdin is a terminal", SEND_ONE_LINE)
    framer = LineFramer()
    deadline = time.monotonic() + wait_seconds
    while _is_readable(fd, deadline):
        chunk = _read(fd)
        if lines := framer.push(chunk) if chunk else framer.finish():
            has_more = len(lines) > 1 or bool(framer.finish())
            return Intake(decode_request(lines[0], has_ended=not chunk), (LATER_LINES,) if has_more else ())
        if not chunk:
            return Intake(decode_request(None))
    raise RequestError(None, f"no whole line came within {wait_seconds:g} s", SEND_ONE_LINE)


def decode_request(line: bytes | Overlong | None, *, has_ended: bool = False) -> dict[str, Any]:
    """The object of a request line, for `parse_request`; None is a stdin that ended without a line.

    `has_ended` says that the stream did before the line's end came. Raises RequestError, whose remedy says how a line
    is to be sent.
    """
    if line is None:
        raise RequestError(None, "stdin ended without a line", SEND_ONE_LINE)
    if isinstance(line, Overlong):
        raise RequestError(None, str(line), "put large inputs into files and name them in the message")
    try:
        return decode(line)
    except WireError as invalid:
        if has_ended and invalid.is_cut:
            raise RequestError(None, "the line is cut: stdin ended in the middle of it", SEND_ALL) from None
        raise RequestError(None, str(invalid), _remedy(line, invalid)) from None


def _remedy(line: bytes, invalid: WireError) -> str:
    if invalid.is_cut and b"{" in line[:4]:
        return "write the whole object on one line, without line breaks"
    return "send one JSON object on one line"


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _is_readable(fd: int, deadline: float) -> bool:
    """Whether `fd` has bytes, or has ended, before the deadline."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def _read(fd: int) -> bytes:
    """The next bytes; empty at the end of the stream."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except OSError as error:
        if error.errno in UNREADABLE:
            return b""
        raise
