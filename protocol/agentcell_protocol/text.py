"""What a session has said so far, in bounded memory: the partial response of one that ends without its result."""

from collections import deque
from dataclasses import dataclass, field

TEXT_KEPT = 1024 * 1024
"""Characters of the newest text that are kept: a line has six bytes for one at most, and the text twice."""

PARTIAL_CHARACTERS = 100_000
"""Characters that a worker puts into an error."""


@dataclass(slots=True)
class Text:
    """The newest of what the model has said: whole blocks and the pieces of the block that is on its way.

    As a `str` the blocks are parted by blank lines.
    """

    blocks: deque[str] = field(default_factory=deque)
    pieces: deque[str] = field(default_factory=deque)
    size: int = 0

    def add_block(self, text: str) -> None:
        """Take a whole block; the pieces that streamed before are part of it."""
        if self.pieces:
            self.size -= sum(map(len, self.pieces))
            self.pieces.clear()
        if text:
            self.blocks.append(text)
            self.size += len(text)
            if self.size > TEXT_KEPT:
                self._forget()

    def add_piece(self, text: str) -> None:
        """Take a piece of the block that streams."""
        if text:
            self.pieces.append(text)
            self.size += len(text)
            if self.size > TEXT_KEPT:
                self._forget()

    def _forget(self) -> None:
        """The oldest, until no more than is kept is left, or one that is longer."""
        while self.size > TEXT_KEPT and len(self.blocks) + len(self.pieces) > 1:
            self.size -= len((self.blocks or self.pieces).popleft())

    def __str__(self) -> str:
        streaming = "".join(self.pieces)
        return "\n\n".join([*self.blocks, streaming] if streaming else self.blocks)[-TEXT_KEPT:]
