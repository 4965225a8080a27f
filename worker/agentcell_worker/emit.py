"""The only writer of lines."""

import os
import select
from collections.abc import Mapping
from typing import Any

from agentcell_protocol.codec import encode_noting
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.events import Detail, is_wanted
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.result import Notice, SessionResult
from agentcell_protocol.result_file import put_result
from agentcell_protocol.summary import summarized
from agentcell_protocol.text import PARTIAL_CHARACTERS


class Emitter:
    """Writes events and the result to a descriptor. Writing never raises: a reader that is gone is ignored."""

    def __init__(self, fd: int, detail: Detail = "none") -> None:
        self._fd = fd
        self._detail: Detail = detail
        self._is_broken = False

    def event(self, event: Mapping[str, Any]) -> None:
        """Write an event, if the reader asked for its kind."""
        if self._is_broken or not is_wanted(event["type"], self._detail):
            return
        line, has_cut = encode_noting(event if self._detail == "full" else summarized(event))
        if len(line) > LINE_LIMIT:
            self._warn(
                "event_too_long", f"a {event['type']} event of {len(line)} bytes is over the limit of {LINE_LIMIT}"
            )
            return
        if has_cut:
            self._warn("nesting_cut", f"a {event['type']} event was nested too deep and has been cut")
        self._write(line)

    def result(self, result: SessionResult, *, file: str | None = None) -> SessionResult:
        """Write the result, first to `file` (by rename) and then to the stream; the result as it was written."""
        result, line = _fitting(result)
        if file is not None and (notice := put_result(line, file)) is not None:
            result, line = _fitting(_with_notice(result, notice))
        self._write(line)
        return result

    def _warn(self, code: str, message: str) -> None:
        self.event({"type": "warning", "code": code, "message": message})

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        while view and not self._is_broken:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                select.select([], [self._fd], [])
            except OSError:
                self._is_broken = True


def _fitting(result: SessionResult) -> tuple[SessionResult, bytes]:
    line, has_cut = encode_noting(result.to_message(hosted=False))
    if has_cut:
        result = _with_notice(
            result, Notice(code="nesting_cut", message="the result was nested too deep and has been cut")
        )
        line, _ = encode_noting(result.to_message(hosted=False))
    if len(line) > LINE_LIMIT:
        result = _bounded(result, len(line))
        line, _ = encode_noting(result.to_message(hosted=False))
    return result, line


def _bounded(result: SessionResult, size: int) -> SessionResult:
    said = result.response if result.error is None else result.error.partial_response or ""
    error = session_error(
        Category.PROTOCOL,
        f"the result is {size} bytes long, over the limit of {LINE_LIMIT} for a line",
        hint="have the agent write large answers to a file",
        partial_response=said[:PARTIAL_CHARACTERS],
        bytes=size,
        limit=LINE_LIMIT,
    )
    bare = result.model_copy(update={"flow": None, "structured_output": None, "permission_denials": []})
    return bare.as_error(error)


def _with_notice(result: SessionResult, notice: Notice) -> SessionResult:
    return result.model_copy(update={"warnings": [*result.warnings, notice]})
