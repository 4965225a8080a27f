"""The result of an attempt that was lost sight of: what its file says, or what was heard of it."""

import time
from dataclasses import dataclass
from pathlib import Path

from agentcell.attempt import Ending, as_attempt, decide
from agentcell.causes import Stopped
from agentcell.orders import Order
from agentcell.record import Record
from agentcell.result_file import read_result_file
from agentcell.spawn import UNSEEN
from agentcell.transcripts import find, is_session_id, kept_root
from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.result import SessionResult, failed

HINT = "run it again, or resume it where its conversation was kept; the nodes' machines say why they went"

OF_THE_LOSS = frozenset({Category.CANCELLED, Category.HOST_LOST})
"""What a cell says that was ended with its keeper, or by it: where nobody here has stopped it, it was lost."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What tells a file from the one that was there before."""

    inode: int
    changed_ns: int
    size: int


def signature(file: str | None) -> Signature | None:
    """That of a result file as it is now; None if there is none. Blocks."""
    if file is None:
        return None
    try:
        seen = Path(file).stat()
    except OSError:
        return None
    return Signature(seen.st_ino, seen.st_mtime_ns, seen.st_size)


def lost(order: Order, record: Record, reason: str, *, before: Signature | None, began: float) -> SessionResult:
    """What is known of an attempt that ended unseen, `reason` being why; `before` is from when it began. Blocks."""
    seconds = round(time.monotonic() - began, 3)
    result = _found(order, before) or _heard(order, record, seconds) or _unknown(order, record, reason, seconds)
    if (error := result.error) is not None and order.stop.reason is None and error.category in OF_THE_LOSS:
        said = _error(reason, record, partial_response=error.partial_response)
        result = result.as_error(said).model_copy(update={"attempts": []})
    session_id = result.session_id or record.session_id or order.request.session_id or order.request.resume
    told = {
        "session_id": session_id,
        "model": result.model or record.model,
        "tool_calls": result.tool_calls or record.tool_calls,
        "transcript": result.transcript or _transcript(order, session_id),
    }
    result = result.model_copy(update=told)
    return result if result.attempts else result.model_copy(update={"attempts": [as_attempt(result, 1)]})


def _found(order: Order, before: Signature | None) -> SessionResult | None:
    """The result in the order's file, if it was put there since and is of this session."""
    request = order.request
    file = request.result_file
    if file is None or signature(file) in (None, before) or (result := read_result_file(Path(file))) is None:
        return None
    is_of_it = result.session_name == request.session_name and result.id in (request.identity, None)
    return result if is_of_it else None


def _heard(order: Order, record: Record, seconds: float) -> SessionResult | None:
    stop = order.stop.reason
    if record.outcome is None and stop is None:
        return None
    cause = None if stop is None else Stopped(stop)
    return decide(order.request, Ending(record, status=UNSEEN, cause=cause, execution_time=seconds))


def _unknown(order: Order, record: Record, reason: str, seconds: float) -> SessionResult:
    return failed(
        _error(reason, record),
        session_name=order.request.session_name,
        id=order.request.identity,
        agent_type=order.request.agent_type,
        usage=record.usage,
        warnings=record.warnings,
        execution_time=seconds,
        working_time=seconds,
    )


def _error(reason: str, record: Record, *, partial_response: str | None = None) -> SessionError:
    message, text = f"the session was lost: {reason}", partial_response or str(record.text) or None
    return session_error(Category.HOST_LOST, message, hint=HINT, partial_response=text, last_event=record.last_event)


def _transcript(order: Order, session_id: str | None) -> str | None:
    if order.keep is False or session_id is None or not is_session_id(session_id):
        return None
    root = kept_root(order.environment) if order.keep is True else Path(order.keep)
    try:
        found = find(root / session_id, session_id)
    except OSError:
        return None
    return None if found is None else str(found)
