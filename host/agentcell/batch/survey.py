"""What a file of rows holds, and what would be done with each: read once before anything starts."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from agentcell.batch.history import History, ItemHistory
from agentcell.batch.items import TO_BE_RUN, Plan, plan
from agentcell.batch.rows import NO_RULES, KnownRow, Problem, Row, read_lines
from agentcell.batch.rules import Rules
from agentcell.batch.writers import Writers
from agentcell_protocol.errors import Category

NAMELESS = re.compile(r"line-[0-9]+(?:-again)*")
"""The id of a line that is no row and says no id of its own."""

OnRow = Callable[[Row | KnownRow | Problem, Plan | None, ItemHistory | None], object]
"""Gets each line, what is done with it (None: it is no row), and what became of it until now."""


@dataclass(slots=True)
class Survey:
    """The lines of a file. Of rows that are to be run or refused only `places` are kept: offset, number and
    checksum, in turn.

    `finished` counts the results that stay, by status and category, but for those of `problems`; `again` are the ids of
    those that are to be dropped; `refused` are changed rows; `writers` are the rows that are to be run and may write.
    `total` is how many lines there are, `gone` how many results stay of rows that the file does not have, and
    `retriable` how many rows failed that could be run again.
    """

    places: "array[int]" = field(default_factory=lambda: array("Q"))
    plans: Counter[Plan] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    refused: list[Row | KnownRow] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    finished: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    writers: Writers = field(default_factory=Writers)
    total: int = 0
    gone: int = 0
    retriable: int = 0

    @property
    def to_run(self) -> int:
        """How many rows are to be run."""
        return sum(self.plans[what] for what in TO_BE_RUN)


def survey(
    file: BinaryIO,
    history: History | None,
    rules: Rules = NO_RULES,
    *,
    retry_failed: bool = False,
    rerun_changed: bool = False,
    on_row: OnRow | None = None,
) -> Survey:
    """Read the file, and decide about each of its lines. Blocks."""
    found = Survey()
    nameless: set[str] = set()
    standing = 0  # results of the lines
    has_failures = history is not None and any(status == "error" for status, _ in history.finished.kinds)
    for line in read_lines(file, _finished_in(history, retry_failed=retry_failed), rules):
        found.total += 1
        if isinstance(line, KnownRow) and history is not None and on_row is None:
            found.plans["finished"] += 1  # most lines of a batch that goes on, so it is done without more
            found.retriable += has_failures and _has_failed(history, line.id)
            standing += 1
            continue
        known = None if history is None else history.of(line.id)
        standing += known is not None and known.is_finished
        what: Plan | None = None
        if isinstance(line, Problem):
            found.problems.append(line)
        else:
            what = plan(line.digest, known, retry_failed=retry_failed, rerun_changed=rerun_changed)
            _note_row(found, line, what, known)
        if NAMELESS.fullmatch(line.id):
            nameless.add(line.id)
        if on_row is not None:
            on_row(line, what, known)
    if history is not None:
        mended = [id_ for id_ in _nameless(history) if id_ not in nameless]
        found.again += mended
        found.gone = len(history.finished) - standing - len(mended)
        _note_results(found, history)
    return found


def _finished_in(history: History | None, *, retry_failed: bool) -> Callable[[str, str], bool]:
    """Whether nothing is to be done with a row of this id and digest, whatever else it says."""

    def is_finished(row_id: str, digest: str) -> bool:
        result = None if history is None else history.finished.get(row_id)
        if result is None or result.digest != digest or result.category == Category.BAD_REQUEST:
            return False
        return not (retry_failed and result.status == "error")

    return is_finished


def _note_row(found: Survey, row: Row | KnownRow, what: Plan, known: ItemHistory | None) -> None:
    found.plans[what] += 1
    if what != "finished" and isinstance(row, Row):
        found.places.extend((row.offset, row.number, row.checksum))
    if what in TO_BE_RUN and isinstance(row, Row):
        found.writers.add(row)
    elif what == "refused":
        found.refused.append(row)
    if what in {"again", "changed"}:
        found.again.append(row.id)
    elif what == "finished":
        found.retriable += known is not None and known.status == "error"


def _has_failed(history: History, row_id: str) -> bool:
    result = history.finished.get(row_id)
    return result is not None and result.status == "error"


def _note_results(found: Survey, history: History) -> None:
    found.finished.update(history.finished.kinds)
    for id_ in {*found.again, *(problem.id for problem in found.problems)}:
        if (entry := history.finished.get(id_)) is not None:
            found.finished[entry.status, entry.category] -= 1
    found.finished = +found.finished


def _nameless(history: History) -> Iterator[str]:
    """Lines that were no rows and said no id: once such a line has been mended, what stands there has another id."""
    if history.finished.kinds["error", Category.BAD_REQUEST] == 0:
        return
    for id_, finished in history.finished.items():
        if finished.category == Category.BAD_REQUEST and NAMELESS.fullmatch(id_):
            yield id_
