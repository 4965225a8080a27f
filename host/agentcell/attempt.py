"""From a cell's end to its result: a decision table, pure.

heard     ended by            →  the result
result    itself                 as the worker gave it; an exit code that does not fit it: a warning
result    a limit                `cancelled`: the limit's timeout; anything else: kept, a warning
result    a stop                 `cancelled`: with the reason of the stop; anything else: kept
result    lingering after it     kept, a warning
outcome   itself, lingering      kept, a warning that names the odd end
outcome   a limit, a stop        as with a result
neither   a limit                timeout
neither   a stop                 cancelled, or host_lost
neither   a signal               crashed
neither   an exit code           protocol when its lines were no messages, otherwise crashed
"""

from collections.abc import Callable
from dataclasses import dataclass
from signal import Signals
from typing import Any, Literal

from agentcell.record import Record
from agentcell.spawn import UNSEEN, Status
from agentcell.stop import HOST_LOST
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.exitcodes import exit_code
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Attempt, Notice, SessionResult, failed

LIMIT_NAMES = {"startup": "startup_seconds", "idle": "idle_seconds", "wall": "max_execution_seconds"}
"""The value of `details.limit` → the limit's own name."""


@dataclass(frozen=True, slots=True)
class Limited:
    """The host enforced a limit, given in seconds."""

    limit: Literal["startup", "idle", "wall"]
    seconds: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody cancelled the session: the name of a signal, or `HOST_LOST`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lingered:
    """The worker was ended because it lived on for `seconds` after its result or its outcome."""

    after: Literal["result", "outcome"]
    seconds: float


Cause = Limited | Stopped | Lingered
"""Why the host ended a cell; None where the cell ended by itself."""


@dataclass(frozen=True, slots=True)
class Ending:
    """All that was seen of a cell.

    `status` is an exit code or minus a signal's number, None if it could not be ended, `UNSEEN` if nobody was told.
    `execution_time` is in seconds, `swept` counts the strays the host ended, `mask` takes secrets out of a text.
    """

    record: Record
    status: Status | None
    cause: Cause | None = None
    stderr_tail: str | None = None
    execution_time: float = 0.0
    swept: int = 0
    start: Literal["fork", "cold"] = "cold"
    mask: Callable[[str], str] = str


def decide(request: SessionRequest, ending: Ending) -> SessionResult:
    """The result of the session that ended so."""
    heard = ending.record.result or ending.record.outcome
    result = _from_nothing(request, ending) if heard is None else _from_heard(heard, ending)
    result = result.model_copy(
        update={
            "session_id": result.session_id or ending.record.session_id,
            "model": result.model or ending.record.model,
            "warnings": [*result.warnings, *_warnings(ending)],
            "swept_processes": result.swept_processes + ending.swept,
            "violated_limits": _violated(ending.cause),
            "exit_code": _exit_code(ending.status),
            "signal": _signal(ending.status),
            "stderr_tail": ending.stderr_tail,
            "start": ending.start,
        }
    )
    return result.model_copy(update={"attempts": [as_attempt(result, 1)]})


def as_attempt(result: SessionResult, number: int) -> Attempt:
    """The result of one cell as an entry of `attempts`."""
    shared = set(Attempt.model_fields) & set(SessionResult.model_fields)
    return Attempt(number=number, **{name: getattr(result, name) for name in shared})


def not_started(request: SessionRequest, error: SessionError) -> SessionResult:
    """The result of a session whose cell never ran."""
    result = failed(error, **_identity(request))
    return result.model_copy(update={"attempts": [as_attempt(result, 1)]})


def spawn_failed(request: SessionRequest, problem: OSError) -> SessionResult:
    """The result of a session whose worker could not be started."""
    message = f"the worker could not be started: {problem.strerror or problem}"
    if problem.filename:
        message += f" ({problem.filename})"
    hint = "check that the interpreter exists, and the limits on processes, memory and open files"
    return not_started(request, session_error(Category.SPAWN_FAILED, message, hint=hint, errno=problem.errno))


def cancelled(reason: str, **known: Any) -> SessionError:
    """The error of a session that was cancelled for a reason: the name of a signal, or `HOST_LOST`."""
    if reason == HOST_LOST:
        message = "the program that started the session is gone"
        return session_error(Category.HOST_LOST, message, **known)
    return session_error(Category.CANCELLED, f"the session was cancelled by {reason}", **{**known, "signal": reason})


def _from_heard(heard: SessionResult, ending: Ending) -> SessionResult:
    """The worker said how the session ended: believe it, but for a `cancelled` that was our own doing."""
    if heard.error is None or heard.error.category is not Category.CANCELLED:
        return heard
    match ending.cause:
        case Limited() as limited:
            error = _timed_out(limited, partial_response=heard.error.partial_response)
        case Stopped(reason):
            error = cancelled(reason, partial_response=heard.error.partial_response, hint=heard.error.hint)
        case _:
            return heard
    details = {**heard.error.details, **error.details}
    return heard.as_error(error.model_copy(update={"details": details}))


def _from_nothing(request: SessionRequest, ending: Ending) -> SessionResult:
    record = ending.record
    known: dict[str, Any] = {"partial_response": str(record.text) or None, **_details(ending)}
    match ending.cause:
        case Limited() as limited:
            error = _timed_out(limited, **known)
        case Stopped(reason):
            error = cancelled(reason, **known)
        case _:
            error = _died(ending, known)
    return failed(
        error,
        **_identity(request),
        session_id=record.session_id,
        model=record.model,
        usage=record.usage,
        warnings=record.warnings,
        execution_time=ending.execution_time,
        working_time=ending.execution_time,
    )


def _identity(request: SessionRequest) -> dict[str, Any]:
    return {"session_name": request.session_name, "id": request.identity, "agent_type": request.agent_type}


def _died(ending: Ending, known: dict[str, Any]) -> SessionError:
    """It ended by itself and without a word."""
    has_spoken_nonsense = ending.record.problems > 0 and _signal(ending.status) is None
    if has_spoken_nonsense:
        message = f"the worker gave no result that can be read: {_first_problem(ending)}"
        return session_error(Category.PROTOCOL, message, **known)
    where = "in the middle of a line" if ending.record.has_broken_off else "without a result"
    message = f"the worker {_end(ending.status)} {where}"
    if ending.record.last_event is not None:
        message += f"; its last event was {ending.record.last_event}"
    hint = "the kernel may have ended it for lack of memory" if ending.status == -Signals.SIGKILL else None
    return session_error(Category.CRASHED, message, hint=hint, **known)


def _timed_out(cause: Limited, **known: Any) -> SessionError:
    name = LIMIT_NAMES[cause.limit]
    what = "the session had not started" if cause.limit == "startup" else "the session had not ended"
    message = f"{what} after {cause.seconds:g} s ({name})"
    hint = f"give it more time with {name}" if cause.limit != "startup" else None
    return session_error(Category.TIMEOUT, message, hint=hint, **{**known, "limit": cause.limit})


def _details(ending: Ending) -> dict[str, Any]:
    seen = {
        "signal": _signal(ending.status),
        "exit_code": _exit_code(ending.status),
        "last_event": ending.record.last_event,
    }
    return {name: value for name, value in seen.items() if value is not None}


def _warnings(ending: Ending) -> list[Notice]:
    candidates = (_odd_end(ending), _odd_lines(ending), _not_gone(ending))
    return [notice for notice in candidates if notice is not None]


def _odd_end(ending: Ending) -> Notice | None:
    heard = ending.record.result or ending.record.outcome
    if heard is None:
        return None
    has_said_cancelled = heard.error is not None and heard.error.category is Category.CANCELLED
    match ending.cause:
        case Limited(limit, seconds) if not has_said_cancelled:
            text = f"{LIMIT_NAMES[limit]} ({seconds:g} s) was reached when the session had ended, during clean-up"
            return Notice(code="limit_in_cleanup", message=text)
        case Lingered(after, seconds):
            text = f"the worker still ran {seconds:g} s after its {after} and was ended"
            return Notice(code="worker_lingered", message=text)
        case None if ending.record.result is None:
            return Notice(code="odd_exit", message=f"the worker {_end(ending.status)} during clean-up")
        case None if ending.status not in {exit_code(heard.error), UNSEEN}:
            return Notice(code="odd_exit", message=f"the worker gave its result and then {_end(ending.status)}")
    return None


def _odd_lines(ending: Ending) -> Notice | None:
    count = ending.record.problems
    if count == 0:
        return None
    text = f"{count} line{'s' if count > 1 else ''} on the worker's stdout could not be used: {_first_problem(ending)}"
    return Notice(code="protocol", message=text)


def _not_gone(ending: Ending) -> Notice | None:
    if ending.status is not None:
        return None
    return Notice(code="not_gone", message="the worker could not be ended; it may still run")


def _first_problem(ending: Ending) -> str:
    return ending.mask(ending.record.first_problem or "")


def _violated(cause: Cause | None) -> list[str]:
    return [LIMIT_NAMES[cause.limit]] if isinstance(cause, Limited) else []


def _exit_code(status: Status | None) -> int | None:
    return status if isinstance(status, int) and status >= 0 else None


def _signal(status: Status | None) -> str | None:
    if not isinstance(status, int) or status >= 0:
        return None
    try:
        return Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _end(status: Status | None) -> str:
    if status is None:
        return "could not be ended"
    if status == UNSEEN:
        return "ended unseen, its fork server was lost,"
    name = _signal(status)
    return f"exited with {status}" if name is None else f"was killed by {name}"
