"""What became of each row until now: the journal and the results, folded. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from pydantic import ValidationError

from agentcell.attempts import Tried
from agentcell.batch.counts import Spending
from agentcell.batch.index import MOST_ATTEMPTS, Index
from agentcell.batch.results import STATUSES
from agentcell.batch.values import amount
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import Attempt


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt that was started and not seen to end. `at` is in Unix seconds."""

    number: int
    mode: str
    session_id: str | None
    marker: str
    boot_id: str
    at: float


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """What became of one row.

    `line` is where it stood, `past` are the attempts that ended since it was first run, or run again as if it had not
    been tried; the last one of all was number `last_attempt`. A row that is finished has a `status`, and neither its
    line nor its attempts here: its result has them. `retry_at` is in Unix seconds.
    """

    id: str
    digest: str | None
    line: int = 0
    past: tuple[Tried, ...] = ()
    last_attempt: int = 0
    retry_at: float | None = None
    is_finished: bool = False
    status: str | None = None
    category: str | None = None

    @property
    def is_reopened(self) -> bool:
        """Whether it is to run again as if it had not been tried, be it changed or not."""
        return self.digest is None and not self.is_finished

    @property
    def attempts(self) -> list[Attempt]:
        """The same as they are in a result."""
        return [tried.attempt for tried in self.past]


@dataclass(slots=True)
class _Item:
    """A row as the journal has it; messages stay as they are until somebody asks."""

    last_attempt: int = 0
    is_tried: bool = False
    digest: str | None = None
    line: int = 0
    ended: tuple[dict[str, Any], ...] = ()
    open: dict[str, Any] | None = None


class History:
    """The journal's lines, one after the other, on top of the results, which may change meanwhile.

    `opened`, `closed` and `paused` are the last lines of these kinds that still hold, or None. `spending` is that of
    all attempts that have ended, those at rows that were run again later among them. `left` are the markers of cells
    whose end nobody saw, and that nobody has swept on all machines since.

    Of a row that is finished, and no attempt at which is open, only what its entry in the index says is kept.
    """

    def __init__(self, finished: Index) -> None:
        self.finished = finished
        self.spending = Spending()
        self.opened: dict[str, Any] | None = None
        self.closed: dict[str, Any] | None = None
        self.paused: dict[str, Any] | None = None
        self.left: set[str] = set()
        self._items: dict[str, _Item] = {}

    def pending(self) -> Iterator[str]:
        """The rows that were tried and are not finished."""
        return (id_ for id_ in self._items if id_ not in self.finished)

    def of(self, id: str) -> ItemHistory | None:  # noqa: A002 - it is what it is called everywhere
        """What became of the row; None when it was never tried."""
        item = self._items.get(id)
        if (finished := self.finished.get(id)) is not None:
            return ItemHistory(
                id=id,
                digest=finished.digest,
                last_attempt=finished.last_attempt if item is None else item.last_attempt,
                is_finished=True,
                status=finished.status,
                category=finished.category,
            )
        if item is None:
            return None
        retry_at = item.ended[-1].get("retry_at") if item.ended and item.open is None else None
        return ItemHistory(
            id=id,
            digest=item.digest,
            line=item.line,
            past=tuple(map(_tried, item.ended)),
            last_attempt=item.last_attempt,
            retry_at=amount(retry_at),
        )

    def open_attempts(self) -> Iterator[tuple[str, OpenAttempt]]:
        """Those that were not seen to end, with the ids of their rows."""
        for id_, item in self._items.items():
            if (attempt := _open(item.open)) is not None:
                yield id_, attempt

    def apply(self, message: dict[str, Any]) -> bool:
        """Take in the journal's next line; false when it makes no sense. Events that are not known are passed over."""
        event = message.get("event")
        if not isinstance(event, str):
            return False
        match event:
            case "started":
                return self._started(message)
            case "ended":
                return self._ended(message)
            case "reopened":
                return self._reopened(message)
            case "opened":
                self.opened, self.closed, self.paused = message, None, None
            case "closed":
                self.closed = message
            case "paused":
                self.paused = message
            case "resumed":
                self.paused = None
            case "left":
                return self._left(message)
        return True

    def _started(self, message: dict[str, Any]) -> bool:
        id_, number = message.get("id"), message.get("attempt")
        if not isinstance(id_, str) or not _is_number(number) or not _is_started(message):
            return False
        item = self._item(id_, number)
        item.digest, item.open = message["digest"], message
        item.line = line if isinstance(line := message.get("line"), int) else 0
        self.spending.retries += item.is_tried
        item.is_tried = True
        return True

    def _ended(self, message: dict[str, Any]) -> bool:
        id_, number = message.get("id"), message.get("attempt")
        if not isinstance(id_, str) or not _is_number(number) or message.get("status") not in STATUSES:
            return False
        item = self._item(id_, number)
        item.is_tried = True
        self.spending.add(message.get("usage"), message.get("cost_usd"))
        if item.open is not None and item.open["attempt"] == number:
            item.open = None
        if item.open is None and self.finished.was_tried(id_, item.last_attempt):
            del self._items[id_]
        elif id_ not in self.finished:
            item.ended = (*item.ended, message)
        return True

    def _item(self, id_: str, number: int) -> _Item:
        """The row, at which this attempt was made."""
        item = self._items.get(id_)
        if item is None:
            last_attempt = self.finished.last_attempt(id_)
            item = self._items[id_] = _Item(last_attempt, is_tried=last_attempt > 0)
        if number > item.last_attempt:  # noqa: PLR1730 - this is quicker than max()
            item.last_attempt = number
        return item

    def _reopened(self, message: dict[str, Any]) -> bool:
        ids = message.get("ids")
        if not isinstance(ids, list):
            return False
        for id_ in ids:
            if isinstance(id_, str):
                item = self._items.get(id_) or _Item(self.finished.last_attempt(id_))
                if item.last_attempt:
                    self._items[id_] = _Item(item.last_attempt, open=item.open)
        return True

    def _left(self, message: dict[str, Any]) -> bool:
        markers = message.get("markers")
        if not isinstance(markers, list):
            return False
        self.left = {marker for marker in markers if isinstance(marker, str)}
        return True


def fold(messages: Iterable[dict[str, Any]], finished: Index) -> History:
    """The history that these lines of a journal tell."""
    history = History(finished)
    for message in messages:
        history.apply(message)
    return history


def _is_number(number: object) -> TypeGuard[int]:
    return type(number) is int and 0 < number <= MOST_ATTEMPTS


def _is_started(message: Mapping[str, Any]) -> bool:
    return (  # written out: this is most of what it takes to read a journal
        isinstance(message.get("digest"), str)
        and isinstance(message.get("marker"), str)
        and isinstance(message.get("boot_id"), str)
        and isinstance(message.get("mode"), str)
    )


def _open(message: Mapping[str, Any] | None) -> OpenAttempt | None:
    if message is None:
        return None
    return OpenAttempt(
        number=message["attempt"],
        mode=message["mode"],
        session_id=session_id if isinstance(session_id := message.get("session_id"), str) else None,
        marker=message["marker"],
        boot_id=message["boot_id"],
        at=amount(message.get("at")) or 0.0,
    )


def _tried(message: Mapping[str, Any]) -> Tried:
    number = message["attempt"]
    try:
        attempt = Attempt.model_validate({**message, "number": number})
    except ValidationError:
        error = session_error(Category.HOST_LOST, "the journal does not say how this attempt ended")
        attempt = Attempt(number=number, status="error", error=error)
    return Tried(
        attempt,
        tool_calls=calls if isinstance(calls := message.get("tool_calls"), int) else 0,
        has_transcript=message.get("has_transcript") is True,
        is_counted=message.get("counted") is not False,
    )
