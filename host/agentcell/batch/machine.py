"""The machine that all rows share, where it has nothing left to start another cell with. Pure: the clock comes in.

What a row met there is not its fault: it goes back, and that costs none of its retries.
"""

from dataclasses import dataclass, replace
from errno import EAGAIN, EDQUOT, EHOSTUNREACH, EMFILE, ENFILE, ENOMEM, ENOSPC

from agentcell.stop import MEMORY
from agentcell_protocol.errors import Category, SessionError

EXHAUSTED = (EAGAIN, EDQUOT, EHOSTUNREACH, EMFILE, ENFILE, ENOMEM, ENOSPC)
"""Why a cell cannot be started where processes, descriptors, memory, the disk, or the machines, have run out."""

FIRST_PAUSE_SECONDS = 1.0
"""Until another cell is tried, and between two that are while it is short; doubled while none can be started."""

LONGEST_PAUSE_SECONDS = 30.0
"""Between two tries, while sessions run that may give something back."""

MOST_TRIES = 4
"""Without a session of ours that could give something back: then somebody has to be told."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """So many `tries` in a row to start a cell have failed, the last at `seen_at`: none before `until` (Unix seconds).

    `sentence` says what is short, and `remedy`, if it is not the usual one, what to do about it.
    """

    tries: int = 0
    seen_at: float = 0.0
    until: float = 0.0
    sentence: str = ""
    remedy: str = ""


def is_the_machines(error: SessionError | None) -> bool:
    """Whether the session's cell could not be started because the machine had run out of something."""
    return error is not None and error.category is Category.SPAWN_FAILED and error.details.get("errno") in EXHAUSTED


def had_to_make_room(error: SessionError | None) -> bool:
    """Whether the machine that the session was on has ended it because it ran out of memory."""
    return error is not None and error.details.get("by") == MEMORY


def after_start(shortage: Shortage, now: float) -> Shortage:
    """A cell is about to be tried: while something is short, one at a time."""
    return replace(shortage, until=now + FIRST_PAUSE_SECONDS) if shortage.tries else shortage


def after_session(shortage: Shortage, error: SessionError | None, *, started: float, now: float) -> Shortage:
    """A session that `started` then has ended `now`, and gave back what it had unless its cell could not be started."""
    if error is None or not is_the_machines(error):
        return Shortage()
    if started < shortage.seen_at:
        return shortage
    seconds = min(FIRST_PAUSE_SECONDS * 2.0**shortage.tries, LONGEST_PAUSE_SECONDS)
    remedy = error.hint or "" if error.details.get("errno") == EHOSTUNREACH else ""
    return Shortage(shortage.tries + 1, now, now + seconds, error.message, remedy)
