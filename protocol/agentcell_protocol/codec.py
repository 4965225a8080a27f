"""One message ↔ one line of strict JSON."""

from collections.abc import Mapping, Sequence
from math import isfinite
from secrets import randbits
from typing import Any

import orjson

from agentcell_protocol.errors import WireError

BOM = b"\xef\xbb\xbf"

MAX_DEPTH = 250
"""Levels of nesting a message may have; orjson writes 254."""

CUT = "…"
"""Stands where something was nested too deep to be written."""

SEAM_NUMBER = randbits(62)
SEAM = b",%d," % SEAM_NUMBER
"""Stands between lines that are read at once."""

MAX_INTEGER = 2**64 - 1
MIN_INTEGER = -(2**63)


def decode(line: bytes) -> dict[str, Any]:
    """The message of a line; of a member that is there twice the last one counts.

    Bytes that are not UTF-8 are read as U+FFFD. Raises WireError for what is not JSON, nested over 1,024
    levels deep, or not an object.
    """
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError:
        message = _decode_odd(line.removeprefix(BOM))
    if not isinstance(message, dict):
        raise WireError(f"the line is {kind(message)}, not an object")
    return message


def decode_all(lines: Sequence[bytes | Any]) -> list[Any] | None:
    """What each of some lines holds, read at once; None unless each is plain JSON, so that `decode` has to tell.

    They are read as one array. A line that is half of a value, or more than one, must not lend from its neighbours:
    between any two stands a number that nobody who writes lines can know, and that has to come out there again.
    """
    try:
        values = orjson.loads(b"[%b]" % SEAM.join(lines))
    except (TypeError, ValueError):
        return None
    seams = len(lines) - 1
    is_whole = len(values) == len(lines) + seams and values[1::2].count(SEAM_NUMBER) == seams
    return values[::2] if is_whole else None


def encode(message: Mapping[str, Any]) -> bytes:
    """The line of a message, with its LF. Never raises: see `encode_noting`."""
    return encode_noting(message)[0]


def encode_noting(message: Mapping[str, Any]) -> tuple[bytes, bool]:
    """The line of a message, and whether something was cut from it because it is nested over `MAX_DEPTH`.

    NaN and infinities become null, lone surrogates U+FFFD, integers beyond 64 bits floats, keys
    strings, what contains itself is cut where it does, and whatever JSON has no form for becomes its `str`.
    """
    try:
        return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE), False
    except (orjson.JSONEncodeError, RecursionError):
        mender = _Mender()
        mended = mender.mend(message)
        return orjson.dumps(mended, option=orjson.OPT_APPEND_NEWLINE), mender.has_cut


def _decode_odd(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as invalid:
        return _decode_replacing(line, invalid)


def _decode_replacing(line: bytes, invalid: orjson.JSONDecodeError) -> Any:
    if not _is_utf8(line):
        try:
            return orjson.loads(line.decode(errors="replace"))
        except orjson.JSONDecodeError as still_invalid:
            invalid = still_invalid
    is_cut = invalid.pos >= len(invalid.doc)
    raise WireError(f"the line is not valid JSON: {invalid}", is_cut=is_cut) from None


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def kind(value: Any) -> str:
    """What a decoded value is in JSON's words, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case _:
            return "an array"


class _Mender:
    """Copies a value into what the encoder can write."""

    def __init__(self) -> None:
        self.has_cut = False
        self._open: set[int] = set()

    def mend(self, value: Any, depth: int = 0) -> Any:
        if not isinstance(value, Mapping | list | tuple):
            return _mend_scalar(value)
        if depth >= MAX_DEPTH or id(value) in self._open:
            self.has_cut = True
            return CUT
        self._open.add(id(value))
        # loops, because a comprehension would cost a second frame at each of 250 levels
        mended: Any = {} if isinstance(value, Mapping) else []
        if isinstance(value, Mapping):
            for key, item in value.items():
                mended[_without_lone_surrogates(_as_text(key))] = self.mend(item, depth + 1)
        else:
            for item in value:
                mended.append(self.mend(item, depth + 1))
        self._open.discard(id(value))
        return mended


def _mend_scalar(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return _without_lone_surrogates(value)
        case int():
            return int(value) if MIN_INTEGER <= value <= MAX_INTEGER else _as_float(value)
        case float():
            return float(value) if isfinite(value) else None
        case _:
            return _without_lone_surrogates(_as_text(value))


def _without_lone_surrogates(text: str) -> str:
    """The text with lone surrogates replaced; pairs of them become the character they spell."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _as_float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _as_text(value: Any) -> str:
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a foreign __str__ may raise anything, and writing a line never raises
        return f"<{type(value).__name__}>"
