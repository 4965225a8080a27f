"""The results of a batch: one line for each row that is finished."""

from bisect import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, get_args

from agentcell.batch.index import Entry, Index
from agentcell.batch.lines import Lines
from agentcell.batch.repair import BUFFER_BYTES, Repair
from agentcell_protocol.result import SessionResult, Status

STATUSES: tuple[Status, ...] = get_args(Status)


class Results:
    """The results in a file, at most one for each id."""

    def __init__(self, lines: Lines, index: Index) -> None:
        self._lines = lines
        self._index = index
        self._coming: set[str] = set()

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> "Iterator[Results]":
        """The results of the file, made if need be and repaired; of an id that is there twice the first counts."""
        index = Index()
        with Lines.open(path, lambda offset, message: note(index, offset, message)) as lines:
            yield cls(lines, index)

    @property
    def repair(self) -> Repair | None:
        """What was set aside to go on with the file."""
        return self._lines.repair

    @property
    def index(self) -> Index:
        """The rows that are finished, as they are at the moment."""
        return self._index

    async def add(
        self,
        id: str,  # noqa: A002 - it is what it is called everywhere
        digest: str | None,
        line: int,
        result: SessionResult,
    ) -> None:
        """Add the result of the row with this id, digest and line number; it is on the disk then.

        Raises ValueError when the id has one, and OSError; then nothing of it is there.
        """
        message = self._message(id, digest, line, result)
        self._coming.add(id)
        try:
            note(self._index, await self._lines.append(message), message)
        finally:
            self._coming.discard(id)

    def add_now(self, id: str, digest: str | None, line: int, result: SessionResult) -> None:  # noqa: A002
        """As `add`, outside an event loop. Blocks."""
        message = self._message(id, digest, line, result)
        [offset] = self._lines.write([message])
        note(self._index, offset, message)

    def drop(self, ids: Collection[str]) -> None:
        """Take these results out, while nobody adds one. Raises OSError; then all are there. Blocks.

        Nothing is parsed: of ten thousand results, a row that is run again can do without its own in some milliseconds.
        """
        gone = {entry.offset for id_ in ids if (entry := self._index.get(id_)) is not None}
        runs = _runs_without(gone, sorted(self._index.offsets()), self._lines.path.stat().st_size)
        self._lines.rewrite(_parts(self._lines.path, runs))
        starts, taken = [run.start for run in runs], list(accumulate(run.gap for run in runs))
        self._index.move(lambda at: None if at in gone else at - taken[bisect(starts, at) - 1])

    def _message(self, id: str, digest: str | None, line: int, result: SessionResult) -> dict[str, Any]:  # noqa: A002
        if id in self._index or id in self._coming:
            raise ValueError(f"{id} has a result: drop it first")
        return {**result.to_message(), "id": id, "digest": digest, "line": line}


def note(index: Index, offset: int, message: Mapping[str, Any]) -> bool:
    """Put the line of a result into the index; false when it is none, or a second one for its id."""
    id_, status, digest = message.get("id"), message.get("status"), message.get("digest")
    error = message.get("error")
    if not isinstance(id_, str) or not isinstance(status, str) or status not in STATUSES:
        return False
    category = error.get("category") if isinstance(error, dict) else None
    if not isinstance(category, str):
        category = None
    return index.add(id_, Entry(offset, status, category, digest if isinstance(digest, str) else None))


class _Run(NamedTuple):
    """Lines that are kept, in bytes; `gap` is what goes just before them."""

    start: int
    end: int
    gap: int


def _runs_without(gone: Collection[int], offsets: Sequence[int], size: int) -> list[_Run]:
    """The runs of a file with results at these offsets, in order, that are left without those at some of them."""
    runs, start, gap = list[_Run](), 0, 0
    for offset in sorted(gone):
        if offset > start:
            runs.append(_Run(start, offset, gap))
            gap = 0
        following = bisect(offsets, offset)
        start = offsets[following] if following < len(offsets) else size
        gap += start - offset
    return [*runs, _Run(start, size, gap)]


def _parts(path: Path, runs: list[_Run]) -> Iterator[bytes]:
    with path.open("rb") as file:
        for run in runs:
            file.seek(run.start)
            while (left := run.end - file.tell()) > 0:
                yield file.read(min(left, BUFFER_BYTES))
