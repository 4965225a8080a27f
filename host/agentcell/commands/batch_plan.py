"""What a file of rows holds, as it is told before anything starts."""

from collections.abc import Mapping
from typing import Any, BinaryIO

import click

from agentcell.batch.directory import read_history
from agentcell.batch.history import History
from agentcell.batch.rows import KnownRow, Problem, Row
from agentcell.batch.survey import Survey, survey
from agentcell.commands.batch_options import BatchOptions
from agentcell.commands.output import tell
from agentcell.terminal import one_line
from agentcell_protocol.exitcodes import BAD_REQUEST

MOST_TOLD = 20
"""Lines of a file that are named for what is wrong with them: one mistake in a generator is in all of them."""


def known_of(options: BatchOptions) -> History | None:
    """What became of the rows until now, as far as there is anything; nothing is changed. Blocks."""
    return read_history(options.directory) if options.directory.is_dir() else None


def look_through(file: BinaryIO, defaults: Mapping[str, Any], options: BatchOptions, history: History | None) -> Survey:
    """Read the file and decide about each row; a dry run prints what would be done with it. Blocks."""
    return survey(
        file,
        history,
        defaults=defaults,
        retry_failed=options.retry_failed,
        rerun_changed=options.rerun_changed,
        on_row=_print_plan if options.dry_run else None,
    )


def _print_plan(line: Row | KnownRow | Problem, what: str | None, known: Any) -> None:
    id_ = one_line(line.id)
    if isinstance(line, Problem):
        text = f"invalid   {id_}: line {line.number}: {one_line(str(line.error))}"
    elif what == "finished":
        text = f"finished  {id_}: {known.category or known.status}"
    else:
        text = f"{what or '':8}  {id_}"
    click.echo(text)


def summarise(found: Survey, options: BatchOptions) -> int:
    """The end of a dry run."""
    to_run = len(found.places) // 2
    parts = [f"{count} {what}" for what, count in found.plans.items()]
    if found.problems:
        parts.append(f"{len(found.problems)} invalid")
    tell(f"{found.total} rows, {to_run} would run: {', '.join(parts) or 'there are none'}")
    is_refused = not options.skip_invalid and (found.problems or found.refused)
    return BAD_REQUEST if is_refused else 0


def refuse(found: Survey, options: BatchOptions) -> int:
    """Name what is wrong with the file; nothing was started."""
    lines = [(one.number, f"line {one.number}: {one.error}") for one in found.problems]
    lines += [(row.number, f"line {row.number}: {row.id} was changed since it was run") for row in found.refused]
    lines.sort()
    tell(*(one_line(text) for _, text in lines[:MOST_TOLD]))
    if (more := len(lines) - MOST_TOLD) > 0:
        tell(f"and {more} more")
    if found.problems:
        tell(f"error: {options.requests}: nothing was run; mend these lines, or run the others with --skip-invalid")
    if found.refused:
        tell(f"error: {options.directory}: nothing was run; --rerun-changed runs changed rows again")
    return BAD_REQUEST


def warn_of_conflicts(found: Survey) -> None:
    """Name one directory in which rows may get into each other's way."""
    if found.conflicts and found.places:
        directory, count = max(found.conflicts.items(), key=lambda one: one[1])
        tell(f"warning: {count} rows may write to {one_line(directory)} at the same time; give each a copy of its own")
