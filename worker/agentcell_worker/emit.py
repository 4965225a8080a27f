"""The only writer of lines."""

import os
import select
from collections.abc import Mapping
from typing import Any

from agentcell_protocol.codec import encode_noting
from agentcell_protocol.events import Detail, is_wanted
from agentcell_protocol.fitting import fitting
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.result import SessionResult
from agentcell_protocol.result_file import put_result
from agentcell_protocol.summary import summarized


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
        result, line = fitting(result, hosted=False)
        if file is not None and (notice := put_result(line, file)) is not None:
            result, line = fitting(result.noting(notice), hosted=False)
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
