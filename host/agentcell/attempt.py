"""From a cell's end to its result: a decision table, pure.

heard     ended by            →  the result
result    itself                 as the worker gave it; an exit code that does not fit it: a warning
result    a limit                `cancelled`, a CLI that was killed: the limit's error; anything else: kept, a warning
result    a stop                 `cancelled`: with the reason of the stop; anything else: kept
result    lingering after it     kept, a warning
outcome   itself, lingering      kept, a warning that names the odd end
outcome   a limit, a stop        as with a result
neither   a limit                timeout, memory_limit or limit_exceeded
neither   a stop                 cancelled, or host_lost
neither   a signal               crashed
neither   nobody saw what        crashed
neither   an exit code           protocol when its lines were no messages, otherwise crashed
"""

from collections.abc import Callable
from dataclasses import dataclass
from signal import Signals
from typing import Any

from agentcell.causes import Cause, Exceeded, Limited, Lingered, Stopped
from agentcell.overrun import is_our_doing, limit_error, limit_name, limit_text
from agentcell.record import Record
from agentcell.spawn import UNSEEN, Status
from agentcell.stop import CANCEL_LINE, HOST_LOST, MEMORY, PARENT_DIED, STDIN_ENDED
from agentcell_protocol.cell import Start
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.exitcodes import exit_code, signal_name
from agentcell_protocol.fitting import fitting
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Attempt, Notice, SessionResult, failed
from agentcell_protocol.text import PARTIAL_CHARACTERS

WORDS = {
    CANCEL_LINE: ("the session was cancelled, as was asked", None),
    STDIN_ENDED: (
        "the session was cancelled: stdin has ended",
        'keep stdin open until the results are there, or send {"type":"shutdown"} before it ends',
    ),
    PARENT_DIED: (
        "the session was cancelled: the program that started agentcell serve is gone",
        "let the program that starts it live until the results are there",
    ),
    MEMORY: (
        "the session was cancelled to make room: its machine was running out of memory",
        "run fewer sessions at a time, or give them the limit max_memory_mb",
    ),
}
"""What is said of a reason that is no signal, and what to do about it."""

HOLD_STDIN = "with lifeline, stdin must stay open for as long as the session runs; leave lifeline out where it cannot"
"""What to do about a caller who only seems to be gone."""


@dataclass(frozen=True, slots=True)
class Ending:
    """All that was seen of a cell.

    `status` is an exit code or minus a signal's number, None if it could not be ended, `UNSEEN` if nobody was told.
    `execution_time` is in seconds, `swept` counts the strays the host ended, `mask` takes secrets out of a text.
    `violated` names the limits that were passed and that end no session, `notices` say more of them.
    """

    record: Record
    status: Status | None
    cause: Cause | None = None
    stderr_tail: str | None = None
    execution_time: float = 0.0
    swept: int = 0
    start: Start = "cold"
    mask: Callable[[str], str] = str
    peak_memory_mb: float | None = None
    notices: tuple[Notice, ...] = ()
    violated: tuple[str, ...] = ()


def decide(request: SessionRequest, ending: Ending) -> SessionResult:
    """The result of the session that ended so."""
    heard = ending.record.result or ending.record.outcome
    result = _from_nothing(request, ending) if heard is None else _from_heard(heard, ending)
    result = result.model_copy(
        update={
            "session_id": result.session_id or ending.record.session_id or request.session_id or request.resume,
            "model": result.model or ending.record.model,
            "warnings": [*result.warnings, *_warnings(ending)],
            "swept_processes": result.swept_processes + ending.swept,
            "violated_limits": [*ending.violated, *_violated(ending.cause)],
            "exit_code": _exit_code(ending.status),
            "signal": _signal(ending.status),
            "peak_memory_mb": ending.peak_memory_mb,
            "stderr_tail": ending.stderr_tail,
            "start": ending.start,
        }
    )
    return result.model_copy(update={"attempts": [as_attempt(result, 1)]})


def as_attempt(result: SessionResult, number: int) -> Attempt:
    """The result of one cell as an entry of `attempts`."""
    shared = set(Attempt.model_fields) & set(SessionResult.model_fields)
    members = {name: getattr(result, name) for name in shared}
    return Attempt(number=number, **{**members, "error": _shortened(result.error)})


def _shortened(error: SessionError | None) -> SessionError | None:
    """The error, with no more of a partial response than many attempts have room for on one line."""
    if error is None or len(error.partial_response or "") <= PARTIAL_CHARACTERS:
        return error
    return error.model_copy(update={"partial_response": str(error.partial_response)[-PARTIAL_CHARACTERS:]})


def fit(result: SessionResult) -> SessionResult:
    """The result of one cell, which has room on a line."""
    fits, _ = fitting(result, hosted=True)
    return result if fits is result else fits.model_copy(update={"attempts": [as_attempt(fits, 1)]})


def not_started(request: SessionRequest, error: SessionError) -> SessionResult:
    """The result of a session whose cell never ran, and so cost nothing."""
    result = failed(error, **_identity(request), session_id=request.session_id or request.resume, cost_usd=0.0)
    return result.model_copy(update={"attempts": [as_attempt(result, 1)]})


def spawn_failed(request: SessionRequest, problem: OSError) -> SessionResult:
    """The result of a session whose worker could not be started."""
    message = f"the worker could not be started: {problem.strerror or problem}"
    if problem.filename:
        message += f" ({problem.filename})"
    hint = "check that the interpreter exists, and the limits on processes, memory and open files"
    return not_started(request, session_error(Category.SPAWN_FAILED, message, hint=hint, errno=problem.errno))


def listener_failed(result: SessionResult, failure: BaseException) -> SessionResult:
    """The result of a session whose `on_event` raised, which has ended it."""
    error = session_error(
        Category.INTERNAL,
        f"on_event raised {type(failure).__name__}: {failure}",
        hint="this is a mistake in the program that runs the session, not in the session",
        partial_response=None if result.error is None else result.error.partial_response,
        callback="on_event",
    )
    result = result.as_error(error)
    return result.model_copy(update={"attempts": [as_attempt(result, 1)]})


def cancelled(reason: str, **known: Any) -> SessionError:
    """The error of a session that was cancelled for a reason of a `Stop`."""
    if reason == HOST_LOST:
        message = "the program that started the session is gone"
        return session_error(Category.HOST_LOST, message, **{**known, "hint": HOLD_STDIN})
    if reason in WORDS:
        message, hint = WORDS[reason]
        told = {"hint": hint or known.get("hint"), "signal": None, "by": reason}
        return session_error(Category.CANCELLED, message, **{**known, **told})
    return session_error(Category.CANCELLED, f"the session was cancelled by {reason}", **{**known, "signal": reason})


def _from_heard(heard: SessionResult, ending: Ending) -> SessionResult:
    """The worker said how the session ended: believe it, but for an error that was our own doing."""
    if heard.error is None:
        return heard
    match ending.cause:
        case (Limited() | Exceeded()) as overrun if is_our_doing(overrun, heard.error):
            error = _overrun(overrun, ending, partial_response=heard.error.partial_response)
        case Stopped(reason) if heard.error.category is Category.CANCELLED:
            error = cancelled(reason, partial_response=heard.error.partial_response, hint=heard.error.hint)
        case _:
            return heard
    details = {**heard.error.details, **error.details}
    return heard.as_error(error.model_copy(update={"details": details}))


def _from_nothing(request: SessionRequest, ending: Ending) -> SessionResult:
    record = ending.record
    known: dict[str, Any] = {"partial_response": str(record.text) or None, **_details(ending)}
    match ending.cause:
        case (Limited() | Exceeded()) as overrun:
            error = _overrun(overrun, ending, **known)
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
        tool_calls=record.tool_calls,
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


def _overrun(cause: Limited | Exceeded, ending: Ending, **known: Any) -> SessionError:
    peak = {"peak_memory_mb": ending.peak_memory_mb} if isinstance(cause, Exceeded) else {}
    return limit_error(cause, **known, **peak)


def _details(ending: Ending) -> dict[str, Any]:
    seen = {
        "signal": _signal(ending.status),
        "exit_code": _exit_code(ending.status),
        "last_event": ending.record.last_event,
        "killed_by_host": ending.cause is not None,
    }
    return {name: value for name, value in seen.items() if value is not None}


def _warnings(ending: Ending) -> list[Notice]:
    candidates = (*ending.notices, _odd_end(ending), _odd_lines(ending), _not_gone(ending))
    return [notice for notice in candidates if notice is not None]


def _odd_end(ending: Ending) -> Notice | None:
    heard = ending.record.result or ending.record.outcome
    if heard is None:
        return None
    match ending.cause:
        case (Limited() | Exceeded()) as overrun if heard.error is None or not is_our_doing(overrun, heard.error):
            text = f"{limit_text(overrun)} was reached when the session had ended, during clean-up"
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
    return [limit_name(cause)] if isinstance(cause, Limited | Exceeded) else []


def _exit_code(status: Status | None) -> int | None:
    return status if isinstance(status, int) and status >= 0 else None


def _signal(status: Status | None) -> str | None:
    return signal_name(-status) if isinstance(status, int) and status < 0 else None


def _end(status: Status | None) -> str:
    if status is None:
        return "could not be ended"
    if status == UNSEEN:
        return "ended, and nobody was told how,"
    name = _signal(status)
    return f"exited with {status}" if name is None else f"was killed by {name}"
