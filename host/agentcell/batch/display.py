"""Shows a batch beside it: whatever holds the terminal up, or has taken it away, holds only the picture up."""

import os
import signal
from collections.abc import Callable
from threading import Condition, Thread
from typing import Protocol, Self

from agentcell.batch.tally import Snapshot

CLOSE_SECONDS = 1.0
"""For the last picture: a terminal that is held gets none."""


class View(Protocol):
    """One way to show a batch. Its text is written as soon as it is there, at most every `seconds`."""

    @property
    def seconds(self) -> float:
        """Between two pictures."""

    def frame(self, snapshot: Snapshot) -> str:
        """What to write when the batch has come to this; empty for nothing."""

    def end(self) -> str:
        """What to write after the last one."""


class Display:
    """A view at work, for as long as the context lasts, in a thread that ends with the process at the latest.

    `write` gets the bytes, and may block; what it raises as OSError ends the view, and nothing else.
    """

    def __init__(self, view: View | None, write: Callable[[bytes], None], *, encoding: str = "utf-8") -> None:
        self._view = view
        self._write = write
        self._encoding = encoding
        self._changed = Condition()
        self._next: Snapshot | None = None
        self._is_over = False
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        if self._view is not None:
            self._thread = Thread(target=self._run, args=(self._view,), name="batch display", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def show(self, snapshot: Snapshot) -> None:
        """Have it shown instead of what is not shown yet; never waits for that."""
        with self._changed:
            self._next = snapshot
            self._changed.notify()

    def _run(self, view: View) -> None:
        """The thread. A terminal must not stop the whole batch for what one thread of it writes from behind."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            while not self._draw(view):
                with self._changed:
                    self._changed.wait_for(lambda: self._is_over, view.seconds)
        except OSError:
            return

    def _draw(self, view: View) -> bool:
        """Draw the next picture; whether it was the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._next is not None)
            snapshot, self._next, is_over = self._next, None, self._is_over
        text = view.frame(snapshot) if snapshot is not None else ""
        text += view.end() if is_over else ""
        if text:
            self._write(text.encode(self._encoding, "replace"))
        return is_over


def writer(descriptor: int) -> Callable[[bytes], None]:
    """Writes all of what it gets to a descriptor, past the buffers that the interpreter locks."""

    def write(data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]

    return write
