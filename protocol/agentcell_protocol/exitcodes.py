"""Exit codes of the worker, of `agentcell-worker` and of `agentcell run`; they never disagree with the result."""

from signal import Signals

from agentcell_protocol.errors import Category, SessionError

OK = 0
ERROR = 1
BAD_REQUEST = 2
PAUSED = 75
"""A batch that paused for the account (EX_TEMPFAIL of sysexits.h)."""
TIMEOUT = 124
"""As coreutils' timeout(1)."""
SIGNALLED = 128
"""Added to the number of the signal that cancelled the session, as shells do."""

CANCEL_SIGNALS = {"SIGHUP": 1, "SIGINT": 2, "SIGTERM": 15}
"""What cancels a session, and the signal's number everywhere."""


def signal_name(number: int) -> str:
    """A signal's name, such as SIGKILL; real-time signals have none but their number."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def exit_code(error: SessionError | None) -> int:
    """The exit code of a process whose result carries `error` (None: complete or continue)."""
    if error is None:
        return OK
    match error.category:
        case Category.BAD_REQUEST:
            return BAD_REQUEST
        case Category.TIMEOUT:
            return TIMEOUT
        case Category.CANCELLED:
            return SIGNALLED + CANCEL_SIGNALS.get(str(error.details.get("signal")), CANCEL_SIGNALS["SIGTERM"])
        case _:
            return ERROR
