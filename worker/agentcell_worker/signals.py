"""The signals that cancel a session, from the first moment of a worker to its result."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyio import CancelScope

CANCEL_SIGNALS = ("SIGHUP", "SIGINT", "SIGTERM")
"""Also the keys of `exitcodes.CANCEL_SIGNALS`, which is not imported here: this module comes before all others."""


class Stopped(BaseException):
    """A cancelling signal came while no session ran; not an Exception, so that nothing on its way swallows it."""


class Cancellation:
    """Remembers the first cancelling signal, and acts on it as is right at that moment.

    At first it is only remembered. After `interrupt` it raises `Stopped` wherever the worker is, within
    `cancelling` it cancels the session, and after `settle` it is ignored: what there is to say is being said.
    """

    def __init__(self) -> None:
        self.signal: str | None = None
        self._act: Callable[[], object] | None = None

    def install(self) -> None:
        """Handle the signals from now on, whichever of them the thread that started this process had blocked."""
        for name in CANCEL_SIGNALS:
            signal.signal(signal.Signals[name], self._on_signal)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take the CLI's exit code away
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def interrupt(self) -> None:
        """Raise `Stopped` for a signal that came or comes."""
        self._act = _raise_stopped
        self.check()

    def check(self) -> None:
        """Raise `Stopped` if a signal came whose exception was lost, as in a callback of the interpreter."""
        if self.signal is not None:
            raise Stopped

    def settle(self) -> None:
        """Ignore the signals from now on."""
        self._act = None

    @contextmanager
    def cancelling(self, scope: "CancelScope") -> Iterator[None]:
        """Within, on asyncio, a signal cancels `scope`; afterwards the signals are settled."""
        loop = asyncio.get_running_loop()
        self._act = partial(loop.call_soon_threadsafe, scope.cancel)
        if self.signal is not None:
            scope.cancel()
        try:
            yield
        finally:
            self.settle()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            return
        self.signal = signal.Signals(number).name
        if self._act is not None:
            self._act()


def _raise_stopped() -> None:
    raise Stopped
