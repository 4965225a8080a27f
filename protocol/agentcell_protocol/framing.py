"""Bytes in any chunking → lines.

A line ends at LF and nowhere else; one CR before it is dropped, blank lines are not lines.
"""

from dataclasses import dataclass

LINE_LIMIT = 32 * 1024 * 1024
"""Bytes in the longest line either side accepts: room for an answer of 20 million characters."""


@dataclass(frozen=True, slots=True)
class Overlong:
    """Stands where a line over the limit would have stood; its bytes are dropped, the next line is whole."""

    limit: int

    def __str__(self) -> str:
        return f"a line is longer than the limit of {self.limit} bytes"


class LineFramer:
    """Joins chunks into lines, holding at most one unfinished line of at most `limit` bytes."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pending: list[bytes] = []
        self._size = 0
        self._is_dropping = False

    @property
    def has_begun(self) -> bool:
        """Whether there is a part of a line, which may become one."""
        return bool(self._pending)

    def push(self, chunk: bytes) -> list[bytes | Overlong]:
        """The lines that `chunk` completes, in order, without their line ends."""
        fragments = chunk.split(b"\n")
        lines: list[bytes | Overlong] = []
        self._append(fragments[0], lines)
        if len(fragments) == 1:
            return lines
        self._end_line(lines)
        whole = fragments[1:-1]
        if b"\r" in chunk or len(chunk) > self._limit:
            for fragment in whole:
                self._append(fragment, lines)
                self._end_line(lines)
        else:  # most chunks: nothing but LF can be at a line's end, and no line be too long
            lines += [line for line in whole if line and not line.isspace()]
        self._append(fragments[-1], lines)
        return lines

    def finish(self) -> list[bytes | Overlong]:
        """The last line, if the stream ended without a line end."""
        lines: list[bytes | Overlong] = []
        self._end_line(lines)
        return lines

    def _append(self, fragment: bytes, lines: list[bytes | Overlong]) -> None:
        if not fragment or self._is_dropping:
            return
        self._size += len(fragment)
        if self._size > self._limit:
            lines.append(Overlong(self._limit))
            self._clear()
            self._is_dropping = True
        else:
            self._pending.append(fragment)

    def _end_line(self, lines: list[bytes | Overlong]) -> None:
        line = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
        self._clear()
        self._is_dropping = False
        if line.endswith(b"\r"):
            line = line[:-1]
        if line and not line.isspace():
            lines.append(line)

    def _clear(self) -> None:
        self._pending.clear()
        self._size = 0
