"""One message ↔ one line of strict JSON."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import orjson

from agentcell_protocol.errors import WireError

BOM = b"\xef\xbb\xbf"

MAX_DEPTH = 250
"""Levels of nesting a message may have; orjson writes 254."""

CUT = "…"
"""Stands where something was nested too deep to be written."""

MAX_INTEGER = 2**64 - 1
MIN_INTEGER = -(2**63)


def decode(line: bytes) -> dict[str, Any]:
    """The message of a line; of a member that is there twice the last one counts.

    Bytes that are not UTF-8 are read as U+FFFD. Raises WireError for what is not JSON, nested over 1,024
    levels deep, or not an object.
    """
    line = line.removeprefix(BOM)
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as invalid:
        message = _decode_replacing(line, invalid)
    if not isinstance(message, dict):
        raise WireError(f"the line is a JSON {_kind(message)}, not an object")
    return message


def encode(message: Mapping[str, Any]) -> bytes:
    """The line of a message, with its LF. Never raises: see `encode_noting`."""
    return encode_noting(message)[0]


def encode_noting(message: Mapping[str, Any]) -> tuple[bytes, bool]:
    """The line of a message, and whether something nested over `MAX_DEPTH` was cut from it.

    NaN and infinities become null, lone surrogates U+FFFD, integers beyond 64 bits floats, and whatever
    JSON has no form for its `str`.
    """
    try:
        return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE), False
    except (orjson.JSONEncodeError, RecursionError):
        mender = _Mender()
        mended = mender.mend(message, 0)
        return orjson.dumps(mended, option=orjson.OPT_APPEND_NEWLINE), mender.has_cut


def _decode_replacing(line: bytes, invalid: orjson.JSONDecodeError) -> Any:
    try:
        line.decode()
    except UnicodeDecodeError:
        try:
            return orjson.loads(line.decode(errors="replace"))
        except orjson.JSONDecodeError as still_invalid:
            invalid = still_invalid
    raise WireError(f"the line is not valid JSON: {invalid}") from None


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "array"


class _Mender:
    """Copies a value into what the encoder can write."""

    def __init__(self) -> None:
        self.has_cut = False

    def mend(self, value: Any, depth: int) -> Any:
        match value:
            case None | bool():
                return value
            case str():
                return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            case int():
                return int(value) if MIN_INTEGER <= value <= MAX_INTEGER else _as_float(value)
            case float():
                return value if isfinite(value) else None
            case Mapping() | list() | tuple():
                return self._mend_container(value, depth)
            case _:
                return self.mend(_as_text(value), depth)

    def _mend_container(self, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            self.has_cut = True
            return CUT
        if isinstance(value, Mapping):
            return {self.mend(_as_text(key), 0): self.mend(item, depth + 1) for key, item in value.items()}
        return [self.mend(item, depth + 1) for item in value]


def _as_float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a foreign __str__ may raise anything, and writing a line never raises
        return f"<{type(value).__name__}>"
