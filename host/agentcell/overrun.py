"""What is said of a session that took more than a limit allows."""

from typing import Any

from agentcell.causes import LIMIT_NAMES, Exceeded, Limited
from agentcell_protocol.errors import Category, SessionError, session_error

Overrun = Limited | Exceeded

UNITS = {"max_memory_mb": " MB", "max_cpu_seconds": " s", "max_output_bytes": " bytes"}
"""What the numbers of a limit count; the names of the others say it."""

MARKS_OF_OUR_HAND = frozenset({Category.CANCELLED, Category.CLI_FAILED, Category.NO_RESULT})
"""What a worker reports when the host has killed what is below it."""


def limit_name(cause: Overrun) -> str:
    """The limit's own name."""
    return LIMIT_NAMES[cause.limit] if isinstance(cause, Limited) else cause.limit


def limit_error(cause: Overrun, **known: Any) -> SessionError:
    """The error of a session that a limit ended; `known` is what else is known of it."""
    return _timed_out(cause, **known) if isinstance(cause, Limited) else _took_too_much(cause, **known)


def limit_text(cause: Overrun) -> str:
    """The limit and its value, for people."""
    value = f"{cause.seconds:g} s" if isinstance(cause, Limited) else f"{cause.allowed:g}{UNITS.get(cause.limit, '')}"
    return f"{limit_name(cause)} ({value})"


def is_our_doing(cause: Overrun, error: SessionError) -> bool:
    """Whether the error that a worker gave is only how it felt that the limit was enforced."""
    felt = MARKS_OF_OUR_HAND if isinstance(cause, Exceeded) else {Category.CANCELLED}
    return error.category in felt


def _timed_out(cause: Limited, **known: Any) -> SessionError:
    name = LIMIT_NAMES[cause.limit]
    what = {
        "startup": f"the session had not started after {cause.seconds:g} s",
        "idle": f"nothing was heard of the session for {cause.seconds:g} s, and no tool ran",
        "wall": f"the session had not ended after {cause.seconds:g} s",
    }[cause.limit]
    hint = f"give it more time with {name}" if cause.limit != "startup" else None
    return session_error(Category.TIMEOUT, f"{what} ({name})", hint=hint, **{**known, "limit": cause.limit})


def _took_too_much(cause: Exceeded, **known: Any) -> SessionError:
    reached: dict[str, Any] = {"limit": cause.limit, "allowed": cause.allowed, "reached": cause.reached}
    message = f"the session reached {cause.reached:g}{UNITS.get(cause.limit, '')}, over {limit_text(cause)}"
    category = Category.LIMIT_EXCEEDED
    if cause.process is not None:
        category = Category.MEMORY_LIMIT
        message += f"; the largest process was {cause.process} (pid {cause.pid})"
        reached |= {"pid": cause.pid, "process": cause.process}
    hint = f"allow it more with {cause.limit}, or have the agent do less at once"
    return session_error(category, message, hint=hint, **{**known, **reached})
