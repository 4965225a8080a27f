"""Shows a batch beside it: whatever holds the terminal up, or has taken it away, holds only the picture up."""

import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Condition, Thread
from typing import Protocol, Self

from agentcell.batch.tally import Snapshot
from agentcell.writing import write_all

CLOSE_SECONDS = 1.0
"""For the last picture: a terminal that is held gets none."""


class View(Protocol):
    """One way to show a batch. Its text is written as soon as it is there, at most every `seconds`."""

    @property
    def seconds(self) -> float:
        """Between two pictures."""

    def frame(self, snapshot: Snapshot) -> str:
        """What to write when the batch has come to this; empty for nothing."""

    def clear(self) -> str:
        """What to write before something else is written; the next picture is drawn below that."""

    def end(self) -> str:
        """What to write after the last one."""


class Display:
    """A view at work, for as long as the context lasts, in a thread that ends with the process at the latest.

    `write` gets the bytes, and may block; what it raises as OSError ends the view, and nothing else. What is said
    is shown without a view, too.
    """

    def __init__(self, view: View | None, write: Callable[[bytes], None], *, encoding: str = "utf-8") -> None:
        self._view = view
        self._write = write
        self._encoding = encoding
        self._changed = Condition()
        self._next: Snapshot | None = None
        self._last: Snapshot | None = None
        self._said: list[str] = []
        self._is_over = False
        self._thread = Thread(target=self._run, name="batch display", daemon=True)

    def __enter__(self) -> Self:
        with suppress(RuntimeError):  # the machine has no thread left: then nothing is shown
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_SECONDS)

    def show(self, snapshot: Snapshot) -> None:
        """Have it shown instead of what is not shown yet; never waits for that."""
        with self._changed:
            self._next = snapshot
            self._changed.notify()

    def say(self, line: str) -> None:
        """Have a line stand beside what is shown, and stay; never waits for that."""
        with self._changed:
            self._said.append(line)
            self._changed.notify()

    def _run(self) -> None:
        """The thread. A terminal must not stop the whole batch for what one thread of it writes from behind."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            while not self._draw():
                with self._changed:
                    self._changed.wait_for(lambda: self._is_over, 0.0 if self._view is None else self._view.seconds)
        except OSError:
            return

    def _draw(self) -> bool:
        """Draw the next picture, below what was said; whether it was the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._next is not None or self._said)
            said, self._said = self._said, []
            snapshot, self._next, is_over = self._next or self._last if said else self._next, None, self._is_over
        self._last = snapshot or self._last
        if text := self._text(said, snapshot, is_over=is_over):
            self._write(text.encode(self._encoding, "replace"))
        return is_over

    def _text(self, said: list[str], snapshot: Snapshot | None, *, is_over: bool) -> str:
        lines, view = "".join(f"{line}\n" for line in said), self._view
        if view is None:
            return lines
        text = view.clear() + lines if said else ""
        if snapshot is not None:
            text += view.frame(snapshot)
        return text + view.end() if is_over else text


def writer(descriptor: int) -> Callable[[bytes], None]:
    """Writes all of what it gets to a descriptor, past the buffers that the interpreter locks."""

    return partial(write_all, descriptor)
