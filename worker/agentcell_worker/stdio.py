"""The worker's standard streams: the protocol on private descriptors, everybody else's elsewhere."""

import os
import select
import time
from dataclasses import dataclass, field

from agentcell_protocol.codec import decode
from agentcell_protocol.errors import RequestError, WireError
from agentcell_protocol.framing import LINE_LIMIT, LineFramer, Overlong

REQUEST_SECONDS = 60.0
"""How long a request may take to arrive: long enough for a person's slow pipe, short enough for a forgotten one."""

CHUNK_BYTES = 1024 * 1024
"""Read at once; what is larger arrives in several reads."""

INPUT, OUTPUT, ERROR = 0, 1, 2

ONE_LINE = "write the whole object on one line and end it with a line feed"


@dataclass(frozen=True)
class Wire:
    """The protocol's own descriptors, which no child inherits. `reads` is None when there was no stdin."""

    reads: int | None
    writes: int


@dataclass
class Received:
    """What came of a request: the decoded object, and whether lines after it were there to be ignored."""

    data: dict[str, object]
    has_more: bool = field(default=False)


def claim() -> Wire:
    """Take stdin and stdout for the protocol; from then on fd 0 is /dev/null and fd 1 is stderr."""
    has_input = _is_open(INPUT)
    for fd in (INPUT, OUTPUT, ERROR):  # a closed one would be given to the next file that is opened
        if not _is_open(fd):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    wire = Wire(reads=os.dup(INPUT) if has_input else None, writes=os.dup(OUTPUT))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, INPUT)
    os.close(null)
    os.dup2(ERROR, OUTPUT)
    return wire


def read_request(reads: int | None, *, seconds: float = REQUEST_SECONDS) -> Received:
    """The first line of the stream, decoded; the end of the stream is not waited for.

    Raises RequestError when no line comes, or when it is not one JSON object.
    """
    if reads is None:
        raise RequestError(None, "standard input is closed", "write one JSON line to it")
    if os.isatty(reads):
        raise RequestError(None, "standard input is a terminal", "pipe one JSON line into the worker")
    lines = _first_lines(reads, time.monotonic() + seconds)
    if not lines:
        raise RequestError(None, "standard input ended without a line", "write one JSON line to it")
    return Received(_decode_request(lines[0]), has_more=len(lines) > 1)


def _first_lines(reads: int, deadline: float) -> list[bytes | Overlong]:
    framer = LineFramer()
    while True:
        readable, _, _ = select.select([reads], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise RequestError(None, "no line came within the time allowed", ONE_LINE)
        chunk = os.read(reads, CHUNK_BYTES)
        lines = framer.push(chunk) if chunk else framer.finish()
        if lines or not chunk:
            return lines


def _decode_request(line: bytes | Overlong) -> dict[str, object]:
    if isinstance(line, Overlong):
        raise RequestError(None, str(line), f"keep the request under {LINE_LIMIT} bytes; name large things by file")
    try:
        return decode(line)
    except WireError as invalid:
        remedy = ONE_LINE if invalid.is_cut else "send one JSON object"
        raise RequestError(None, str(invalid), remedy) from None


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
