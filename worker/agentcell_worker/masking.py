"""Secrets kept out of what a worker says."""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

STDERR = 2

MASK = "[masked]"

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION", re.IGNORECASE)
"""Names of environment variables whose values are secrets."""

SECRET_SHAPE = re.compile(r"sk-ant-[A-Za-z0-9_\-]+")
"""What is a secret wherever it stands."""

SHORTEST = 6
"""Characters in the shortest value that is masked; a shorter one would blank out ordinary words."""

TAIL_CHARACTERS = 4_000
"""Kept of what the CLI wrote to stderr: a stack trace and what led to it."""

LINE_CHARACTERS = 1_000
"""Kept of one such line."""

CUT = "…"


class Mask:
    """Replaces the secrets of some environments in a text."""

    def __init__(self, *environments: Mapping[str, str]) -> None:
        values = {
            value
            for environment in environments
            for name, value in environment.items()
            if SECRET_NAME.search(name) and len(value) >= SHORTEST
        }
        self._values = sorted(values, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without its secrets."""
        for value in self._values:
            text = text.replace(value, MASK)
        return SECRET_SHAPE.sub(MASK, text)


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
