"""What is to be done with the rows: looked at, and told, before anything starts."""

import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

import click

from agentcell.batch.directory import known_history
from agentcell.batch.history import History
from agentcell.batch.rows import KnownRow, Problem, Row
from agentcell.batch.rules import Rules
from agentcell.batch.sources import FileRows, Source, StreamRows
from agentcell.batch.survey import OnRow, Survey, survey
from agentcell.batch.tally import Tally
from agentcell.commands.batch_options import BatchOptions
from agentcell.commands.output import tell
from agentcell.errors import RunDirectoryError
from agentcell.terminal import one_line
from agentcell_protocol.exitcodes import BAD_REQUEST

MOST_TOLD = 20
"""Lines of a file that are named for what is wrong with them: one mistake in a generator is in all of them."""


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The rows that are to be run, the count of all, and the ids of those whose results are to be dropped before.

    So many of those that failed are `retriable`; None where nobody knows.
    """

    source: Source
    tally: Tally
    again: list[str] = field(default_factory=list)
    retriable: int | None = None

    @property
    def is_stream(self) -> bool:
        """Whether nobody knows what is still to come."""
        return self.tally.total is None


def plan_rows(file: BinaryIO, rules: Rules, options: BatchOptions, history: History | None) -> RowPlan:
    """Take rows as they come, or look at all of a file. Blocks. Exits, once it is told why, where nothing is to run."""
    if options.is_stream(file):
        return RowPlan(StreamRows(file.fileno(), rules), Tally(time.time()))
    found = _survey(file, rules, options, history)
    if not options.skip_invalid and (found.problems or found.refused):
        _refuse(found, options)
    _warn(found)
    tally = Tally(time.time(), total=found.total + found.gone)
    for (status, category), count in found.finished.items():
        tally.finished_before(status, category, count)
    rows = FileRows(file, found.places, problems=found.problems, rules=rules)
    return RowPlan(rows, tally, found.again, found.retriable)


def dry_run(file: BinaryIO, rules: Rules, options: BatchOptions) -> int:
    """Print what would be done with each row; the exit code. Blocks. Raises click.UsageError."""
    try:
        history = known_history(options.directory)
    except RunDirectoryError as unusable:
        raise click.UsageError(one_line(str(unusable))) from None
    found = _survey(file, rules, options, history, _print_row)
    _warn(found)
    parts = [f"{count} {what}" for what, count in found.plans.items()]
    if found.problems:
        parts.append(f"{len(found.problems)} invalid")
    runs_others = options.skip_invalid or options.is_stream(file)
    refusals = [] if runs_others else _refusals(found, options, "nothing would be run")
    would_run = 0 if refusals else found.to_run
    tell(f"{found.total} rows, {would_run} would run: {', '.join(parts) or 'there are none'}", *refusals)
    return BAD_REQUEST if refusals else 0


def conflict(directory: str, count: int | None = None) -> str:
    """The warning about rows that may get into each other's way; `count` is how many there are, where it is known."""
    rows = "rows" if count is None else f"{count} rows"
    way_out = "give each a copy of its own, such as a git worktree"
    return f"warning: {rows} may write to {one_line(directory)} at the same time; {way_out}"


def _warn(found: Survey) -> None:
    if found.writers.most is not None:
        tell(conflict(*found.writers.most))


def _survey(
    file: BinaryIO,
    rules: Rules,
    options: BatchOptions,
    history: History | None,
    on_row: OnRow | None = None,
) -> Survey:
    return survey(
        file,
        history,
        rules,
        retry_failed=options.retry_failed,
        rerun_changed=options.rerun_changed,
        on_row=on_row,
    )


def _print_row(line: Row | KnownRow | Problem, what: str | None, known: Any) -> None:
    id_ = one_line(line.id)
    if isinstance(line, Problem):
        text = f"invalid   {id_}: line {line.number}: {one_line(str(line.error))}"
    elif what == "finished":
        text = f"finished  {id_}: {known.category or known.status}"
    elif what == "refused":
        text = f"refused   {id_}: it was changed since it was run; --rerun-changed runs it again"
    else:
        text = f"{what or '':8}  {id_}"
    click.echo(text)


def _refuse(found: Survey, options: BatchOptions) -> NoReturn:
    """Name what is wrong with the file; nothing was started."""
    lines = [(one.number, f"line {one.number}: {one.error}") for one in found.problems]
    lines += [(row.number, f"line {row.number}: {row.id} was changed since it was run") for row in found.refused]
    lines.sort()
    tell(*(one_line(text) for _, text in lines[:MOST_TOLD]))
    if (more := len(lines) - MOST_TOLD) > 0:
        tell(f"and {more} more")
    tell(*_refusals(found, options, "nothing was run"))
    raise click.exceptions.Exit(BAD_REQUEST)


def _refusals(found: Survey, options: BatchOptions, outcome: str) -> list[str]:
    """Why the whole file is refused, and how it would not be; empty when it is not."""
    told = []
    if found.problems:
        told.append(
            f"error: {options.shown_requests}: {outcome}; mend these lines, or run the others with --skip-invalid"
        )
    if found.refused:
        told.append(f"error: {options.shown_directory}: {outcome}; --rerun-changed runs changed rows again")
    return told
