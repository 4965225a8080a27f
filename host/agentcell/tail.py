"""The end of a stream, in bounded memory."""

from collections.abc import Callable

KEPT_BYTES = 64 * 1024
"""Of the end of the stream, whatever its length."""

SHOWN_CHARACTERS = 8 * 1024
"""Of what was kept, in a result."""


class Tail:
    """Keeps the last `kept` bytes of what is added."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._data = bytearray()
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Take more of the stream."""
        self._total += len(chunk)
        self._data += chunk
        if len(self._data) > 2 * self._kept:
            del self._data[: -self._kept]

    def text(self, mask: Callable[[str], str] = str, shown: int = SHOWN_CHARACTERS) -> str | None:
        """The last `shown` characters, masked; a first line says what is missing before them. None without any."""
        text = mask(self._data[-self._kept :].decode(errors="replace"))
        if not text.strip():
            return None
        if self._total <= self._kept and len(text) <= shown:
            return text
        return f"[cut: the last {min(shown, len(text))} characters of {self._total} bytes]\n{text[-shown:]}"
