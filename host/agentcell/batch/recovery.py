"""What a host that died has left in its run directory: attempts nobody saw the end of, results nobody took."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from agentcell.attempts import Mode, Tried, combined
from agentcell.batch import journal
from agentcell.batch.boot import boot_id
from agentcell.batch.history import ItemHistory, OpenAttempt
from agentcell.batch.machine import is_the_machines
from agentcell.batch.repair import read_whole
from agentcell.executors.local import sweep_marked
from agentcell.result_file import put_into, read_result_file
from agentcell.transcripts import find
from agentcell_protocol.codec import decode
from agentcell_protocol.errors import Category, SessionError, WireError, session_error
from agentcell_protocol.result import SessionResult, failed

if TYPE_CHECKING:
    from agentcell.batch.directory import RunDirectory

REQUEST, RESULT, EVENTS = "request.json", "result.json", "events.jsonl"
"""Of an attempt, in its folder."""

NOT_ITS_FAULT = frozenset(
    {Category.AUTHENTICATION, Category.BILLING, Category.RATE_LIMIT, Category.CANCELLED, Category.HOST_LOST}
)
"""With these a session that was left alone has ended for reasons that are not its row's."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The processes that were ended, and the ids of rows whose result was found, and of those that run again."""

    swept: int = 0
    picked_up: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line for people; empty when nothing was left."""
        taken, cut = len(self.picked_up), len(self.lost)
        parts = [
            self.swept and f"ended {_so_many(self.swept, 'process', 'processes')} that it had left running",
            taken and f"took {_so_many(taken, 'result', 'results')} that came while it was dying",
            cut and f"{_so_many(cut, 'attempt was', 'attempts were')} cut and will be made again",
        ]
        told = ", ".join(part for part in parts if part)
        return told and f"a former run has died: {told}"


def recover(run: "RunDirectory") -> Recovery:
    """Leave no attempt open: what still runs is ended, what was answered is taken, all else runs again. Blocks.

    That a row runs again because its host died costs it no retry. What may be left on other machines is noted, until
    somebody has swept it there. Raises OSError.
    """
    left = list(run.history.open_attempts())
    swept = sweep_marked([attempt.marker for _, attempt in left if attempt.boot_id == boot_id()])
    if left:
        run.record(
            journal.left(time.time(), markers=run.history.left | {attempt.marker for _, attempt in left}),
            *(journal.ended(time.time(), id=id_, tried=_tried(run, id_, attempt)) for id_, attempt in left),
        )
    picked_up = [id_ for id_ in list(run.history.pending()) if _pick_up(run, id_)]
    lost = tuple(id_ for id_, _ in left if id_ not in run.results.index)
    return Recovery(swept, tuple(picked_up), lost)


def read_result(folder: Path, id: str) -> SessionResult | None:  # noqa: A002 - it is what it is called everywhere
    """The result in the folder of an attempt, if there is one and it is of the row with this id. Blocks."""
    result = read_result_file(folder / RESULT)
    return result if result is not None and (result.id or result.session_name) == id else None


def is_final(tried: Tried) -> bool:
    """Whether nothing would be different another time, whoever asks."""
    error = tried.attempt.error
    return tried.is_counted and (error is None or not error.retryable)


def _tried(run: "RunDirectory", id_: str, attempt: OpenAttempt) -> Tried:
    """How the attempt ended, as far as its folder tells."""
    folder = run.folder(id_, attempt.number)
    result = read_result(folder, id_) or failed(_host_lost(), session_id=attempt.session_id)
    session_id = result.session_id or attempt.session_id
    kept = session_id and find(run.keep_root(id_) / session_id, session_id)
    result = result.model_copy(
        update={
            "session_id": session_id,
            "transcript": result.transcript or (kept and str(kept)),
            "tool_calls": result.tool_calls or _tool_calls(folder),
        }
    )
    mode: Mode = "resumed" if attempt.mode in get_args(Mode)[1:] else "fresh"
    is_not_its_fault = is_the_machines(result.error) or (result.error and result.error.category in NOT_ITS_FAULT)
    return Tried.of(result, attempt.number, mode, is_counted=not is_not_its_fault)


def _pick_up(run: "RunDirectory", id_: str) -> bool:
    """Make the last attempt's result the row's, if it is there and final; whether it was."""
    item = run.history.of(id_)
    if item is None or not item.past or not is_final(item.past[-1]):
        return False
    if (result := last_result(run, item)) is None:
        return False
    if (file := _wanted_file(run.folder(id_, item.past[-1].attempt.number))) is not None:
        result = put_into(file, result)
    run.results.add_now(id_, item.digest, item.line, result)
    return True


def _wanted_file(folder: Path) -> str | None:
    """Where the row wants its result to be put, as its request says."""
    try:
        file = decode((folder / REQUEST).read_bytes()).get("result_file")
    except (OSError, WireError):
        return None
    return file if isinstance(file, str) else None


def last_result(run: "RunDirectory", item: ItemHistory) -> SessionResult | None:
    """The result of all attempts at the row, as its host would have made it; None if the last one's is lost. Blocks."""
    result = read_result(run.folder(item.id, item.past[-1].attempt.number), item.id)
    if result is None:
        return None
    session_id = item.past[-1].attempt.session_id
    kept = session_id and find(run.keep_root(item.id) / session_id, session_id)
    told = result.model_copy(update={"session_id": session_id, "transcript": result.transcript or (kept and str(kept))})
    return combined(told, item.attempts)


def _tool_calls(folder: Path) -> int:
    return sum(event.get("type") == "tool_use" for _, event in read_whole(folder / EVENTS))


def _host_lost() -> SessionError:
    return session_error(Category.HOST_LOST, "the program that ran this batch died before the session had ended")


def _so_many(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"
