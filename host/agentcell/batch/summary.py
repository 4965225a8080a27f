"""What a batch has come to, at its end or at any time: a table on a terminal, plain lines elsewhere."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentcell.batch.directory import CELLS, RESULTS
from agentcell.batch.identity import slug
from agentcell.batch.index import Entry, Index
from agentcell.batch.phrases import GO_ON, cost, duration, pending, shown_id, tokens
from agentcell.batch.recovery import RESULT
from agentcell.batch.tally import Snapshot
from agentcell.terminal import one_line

MOST_FAILURES = 10
"""Failed rows that are named: all of them are in the results."""


class Failure(NamedTuple):
    """A row that failed; where its result begins in the results, in bytes.

    `result` is the file with that of its last attempt. A line that was no row has none, and no `folder`.
    """

    id: str
    category: str
    offset: int
    folder: Path | None = None
    result: Path | None = None


class Failures(NamedTuple):
    """The first rows that failed, and how many there are in all."""

    first: tuple[Failure, ...] = ()
    total: int = 0


Pair = tuple[str, str]
"""A line of the table: what, and how much of it or where."""


def failures_in(finished: Index, directory: Path) -> Failures:
    """The failed ones of the rows that are finished in the run directory. Blocks."""
    failed = ((id_, entry) for id_, entry in finished.items() if entry.status == "error")
    first = tuple(_failure(id_, entry, directory) for id_, entry in islice(failed, MOST_FAILURES))
    return Failures(first, sum(count for (status, _), count in finished.kinds.items() if status == "error"))


def summary(snapshot: Snapshot, failures: Failures, directory: Path) -> list[Pair]:
    """The table: by status and category, what it took, and where to look."""
    pairs = [("rows", _rows(snapshot)), *_endings(snapshot)]
    if snapshot.retries:
        pairs.append(("retries", str(snapshot.retries)))
    pairs += [("cost", cost(snapshot)), ("tokens", tokens(snapshot)), ("time", duration(snapshot.elapsed))]
    if snapshot.slowest:
        pairs.append(("slowest", ", ".join(f"{shown_id(id_)} {duration(took)}" for id_, took in snapshot.slowest)))
    return [*pairs, ("results", _shown(directory / RESULTS)), *_failed(failures, directory)]


def going_on(snapshot: Snapshot) -> str | None:
    """How to go on with what is left; None when nothing is."""
    left = pending(snapshot)
    return None if left is None else f"{left}: {GO_ON}"


def lines(pairs: Iterable[Pair], stream: TextIO | None) -> list[str]:
    """The table's lines: in columns on a terminal, and elsewhere without padding."""
    if stream is None or not stream.isatty():
        return [f"{name}: {text}" for name, text in pairs]
    table = Table.grid(padding=(0, 2))
    for name, text in pairs:
        table.add_row(Text(name, "bold"), Text(text, overflow="fold"))
    console = Console(file=stream, highlight=False)
    with console.capture() as drawn:
        console.print(table)
    return [line.rstrip() for line in drawn.get().splitlines()]


def _rows(snapshot: Snapshot) -> str:
    """How many there are, and how many of them are where."""
    numbers = {"running": len(snapshot.running), "pending": snapshot.pending}
    parts = [f"{snapshot.done} done", f"{snapshot.failed} failed", *(f"{n} {what}" for what, n in numbers.items() if n)]
    return ", ".join(parts) if snapshot.total is None else f"{snapshot.total}: {', '.join(parts)}"


def _endings(snapshot: Snapshot) -> list[Pair]:
    """How many ended with each status, and of the errors with each category, the most frequent first."""
    pairs = [(status, str(snapshot.by_status[status])) for status in sorted(snapshot.by_status.keys() - {"error"})]
    for category, number in sorted(snapshot.by_category.items(), key=lambda one: (-one[1], one[0])):
        pairs.append((f"error ({one_line(category)})", str(number)))
    return pairs


def _failed(failures: Failures, directory: Path) -> list[Pair]:
    pairs = [
        (
            "failed",
            f"{shown_id(one.id)} ({one_line(one.category)}): {_shown(one.result or one.folder or directory / RESULTS)}",
        )
        for one in failures.first
    ]
    if (more := failures.total - len(failures.first)) > 0:
        pairs.append(("failed", f"and {more} more"))
    return pairs


def _failure(id_: str, entry: Entry, directory: Path) -> Failure:
    folder = directory / CELLS / slug(id_)
    category = entry.category or "unknown"
    if not folder.is_dir():
        return Failure(id_, category, entry.offset)
    attempts = [int(one.name) for one in folder.iterdir() if one.name.isdecimal()]
    result = folder / str(max(attempts, default=0)) / RESULT
    return Failure(id_, category, entry.offset, folder, result if result.is_file() else None)


def _shown(path: Path) -> str:
    return one_line(str(path))
