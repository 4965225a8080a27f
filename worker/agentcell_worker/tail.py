"""The last lines that the CLI wrote to stderr, without the secrets in them."""

import os
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

STDERR = 2

TAIL_CHARACTERS = 4_000
"""Kept of what the CLI wrote to stderr: a stack trace and what led to it."""

LINE_CHARACTERS = 1_000
"""Kept of one such line."""

CUT = "…"


class Tail:
    """The last lines somebody wrote, masked and bounded. Each line is also passed on, masked, to `forward`."""

    def __init__(self, mask: Callable[[str], str], forward: Callable[[str], object]) -> None:
        self._mask = mask
        self._forward = forward
        self._lines: deque[str] = deque()
        self._size = 0
        self._has_cut = False

    def add(self, line: str) -> None:
        """Take one line, without its line end."""
        line = self._mask(line)
        self._forward(line)
        if len(line) > LINE_CHARACTERS:
            line = CUT + line[-LINE_CHARACTERS:]
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > TAIL_CHARACTERS and len(self._lines) > 1:
            self._size -= len(self._lines.popleft()) + 1
            self._has_cut = True

    def text(self) -> str:
        """The lines kept; a first line of `…` when there were more."""
        return "\n".join(_marked(self._lines) if self._has_cut else self._lines)


def _marked(lines: Iterable[str]) -> Iterable[str]:
    return [CUT, *lines]


def write_stderr(line: str) -> None:
    """Pass a line on to this process's stderr; a reader that is gone is ignored."""
    with suppress(OSError):
        os.write(STDERR, (line + "\n").encode("utf-8", "replace"))
