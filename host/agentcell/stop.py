"""Cancelling a session from outside, and still getting its result."""

import anyio

HOST_LOST = "host_lost"
"""The reason when not a signal ended the session but the end of the program that wanted it."""

CANCEL_LINE, STDIN_ENDED, PARENT_DIED = "cancel", "stdin", "parent"
"""Reasons of those who serve many: they were told to, or there is nobody to tell them any more."""

MEMORY = "memory"
"""The reason of a machine that runs out of it, for the session that has to make room."""


class Stop:
    """Set by a signal handler or a command: the first call cancels the session, a second one kills it at once.

    `reason` is the name of a signal such as SIGTERM, or one of those above; None until the first call.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.requested = anyio.Event()
        self.forced = anyio.Event()

    def cancel(self, reason: str = "SIGTERM") -> None:
        """Ask for the end; the reason of the first call counts."""
        if self.reason is None:
            self.reason = reason
            self.requested.set()
        else:
            self.forced.set()
