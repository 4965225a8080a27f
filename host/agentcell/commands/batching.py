"""A batch from a command line: read its rows, run them, end them when the user says so, and say how it ended."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import BinaryIO

import anyio
import click

from agentcell.batch import journal
from agentcell.batch.batch import Batch
from agentcell.batch.directory import RunDirectory, is_run_directory
from agentcell.batch.display import Display
from agentcell.batch.ending import BatchEnd
from agentcell.batch.history import History
from agentcell.batch.interruption import DRAIN, Interruption
from agentcell.batch.phrases import nothing_to_do
from agentcell.batch.reading import read_batch
from agentcell.batch.settings import Settings
from agentcell.batch.sources import STDIN
from agentcell.batch.tally import Snapshot
from agentcell.batch.views import display_on, view_for
from agentcell.batch.writers import WatchedRows
from agentcell.commands.batch_options import BatchOptions, batch_config, batch_rules, batch_settings, refuse_share
from agentcell.commands.batch_plan import RowPlan, conflict, dry_run, plan_rows
from agentcell.commands.output import pour, silence_stdout, tell
from agentcell.commands.overview import tell_end
from agentcell.commands.places import executor_of
from agentcell.errors import ExecutorError, RunDirectoryError
from agentcell.executors.executor import Executor
from agentcell.executors.opening import unless
from agentcell.host import Host
from agentcell.reap import in_thread
from agentcell.signals import cancelling_on_signals
from agentcell.terminal import one_line
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import Category
from agentcell_protocol.exitcodes import ERROR
from agentcell_protocol.result import SessionResult


def run_in_foreground(options: BatchOptions) -> int:
    """Run the batch that the options ask for; the exit code. Raises click.UsageError for the caller's mistakes."""
    if options.dry_run and options.as_json:
        raise click.UsageError("--dry-run prints a line for each row, and no results for --json; leave one of them out")
    if options.as_json and sys.stdout is None:
        raise click.UsageError("stdout is closed, and --json prints to it; open it, or leave --json out")
    rules, settings = batch_rules(options), batch_settings(options)
    with _rows(options) as file:
        if options.dry_run:
            return dry_run(file, rules, options)
        refuse_share(options, settings, file)
        return _run(partial(plan_rows, file, rules, options), settings, options)


def _run(look: Callable[[History | None], RowPlan], settings: Settings, options: BatchOptions) -> int:
    """Run the rows that it takes a look to know, in the run directory, which is not made for rows that are refused."""
    directory = options.directory
    plan = None if is_run_directory(directory) else look(None)
    try:
        with RunDirectory.open(directory, requests=options.requests) as run:
            for repair in run.repairs:
                tell(f"warning: {repair}")
            if told := str(run.recovery):
                tell(told)
            plan = plan or look(run.history)
            run.begin({"rows": plan.tally.total, **batch_config(options, settings)})
            end = _run_plan(plan, run, settings, options)
    except RunDirectoryError as unusable:
        raise click.UsageError(one_line(str(unusable))) from None
    except ExecutorError as unusable:
        tell(one_line(f"error: {unusable}"))
        return ERROR
    except OutputError as lost:
        return _close_without_stdout(lost.cause, options)
    except OSError as failure:
        where = options.shown_directory if failure.filename is None else one_line(str(failure.filename))
        tell(f"error: {where}: {failure.strerror}; what is finished is kept")
        return ERROR
    return _close(end, options)


def _run_plan(plan: RowPlan, run: RunDirectory, settings: Settings, options: BatchOptions) -> BatchEnd:
    """Run its rows, and show it meanwhile."""
    tally = plan.tally
    tally.spending = run.history.spending.copy()  # of former runs
    run.reopen(plan.again)
    kept = len(run.results.index)
    with _display(options) as display:
        rows = plan.source
        if plan.is_stream:
            rows = WatchedRows(rows, lambda directory: display.say(conflict(directory)), run.results.index.__contains__)
        on_result = _print if options.as_json else None
        begin = partial(Batch, rows, run=run, settings=settings, tally=tally, on_result=on_result)
        started = partial(begin, on_change=display.show)
        end = anyio.run(_run_signalled, started, options.jobs, executor_of(options, display.say), run)
        display.show(end.snapshot)
    has_done_nothing = end.reason is None and len(run.results.index) == kept
    return replace(end, reason=nothing_to_do(end.snapshot, _retriable(plan, end.snapshot))) if has_done_nothing else end


def _retriable(plan: RowPlan, snapshot: Snapshot) -> int:
    """How many of the rows that failed could be run again."""
    if plan.retriable is not None:
        return plan.retriable
    return snapshot.failed - snapshot.by_category.get(Category.BAD_REQUEST, 0)


async def _run_signalled(
    batch: Callable[..., Batch], jobs: int | None, executor: Executor | None, run: RunDirectory
) -> BatchEnd:
    """The batch, once what may be left of former runs' cells is ended where it runs."""
    interruption = Interruption()
    async with cancelling_on_signals(interruption), AsyncExitStack() as lifetime:
        if executor is not None:
            await unless(partial(interruption.reached, DRAIN), partial(open_executor, executor, lifetime, run))
        if interruption.reason is not None:
            executor = None  # it may not be open, and nothing is begun
        host = await lifetime.enter_async_context(Host(max_sessions=jobs))
        return await batch(host=host, interruption=interruption, executor=executor).run()


async def open_executor(executor: Executor, lifetime: AsyncExitStack, run: RunDirectory) -> None:
    """Open it for as long as that lives, and end there what former runs of the directory may have left."""
    await lifetime.enter_async_context(executor)
    if run.history.left:
        await executor.sweep(sorted(run.history.left))
        await in_thread(partial(run.record, journal.left(time.time(), markers=())))


def _display(options: BatchOptions) -> Display:
    prints_results = options.as_json and sys.stdout is not None and sys.stdout.isatty()
    return display_on(sys.stderr, view_for(options.progress, sys.stderr, prints_results=prints_results))


class OutputError(Exception):
    """Stdout, which was to have the results, takes no more."""

    def __init__(self, cause: OSError) -> None:
        self.cause = cause
        super().__init__(str(cause))


async def _print(result: SessionResult) -> None:
    """Print it; a reader that takes its time holds nothing else up."""
    try:
        await pour(encode(result.to_message()))
    except OSError as failure:
        raise OutputError(failure) from failure


def _close(end: BatchEnd, options: BatchOptions) -> int:
    """Say how it ended, with what former runs have done."""
    with suppress(OSError, RunDirectoryError):
        reading = read_batch(options.directory, time.time())
        tell_end(reading.snapshot, reading.failures, options.directory)
    if end.reason is not None:
        tell(one_line(end.reason))
    return end.exit_code


def _close_without_stdout(cause: OSError, options: BatchOptions) -> int:
    silence_stdout()
    tell(
        f"error: the results cannot be written to stdout ({cause.strerror}), so the batch has ended; "
        f"what is finished is in {options.shown_directory}, and the same command again goes on"
    )
    return ERROR


@contextmanager
def _rows(options: BatchOptions) -> Iterator[BinaryIO]:
    """The file or stream that the rows come from."""
    source = STDIN if options.requests == "-" else options.requests
    try:
        file = open(source, "rb", closefd=source != STDIN)  # noqa: SIM115 - or a descriptor
    except OSError as unreadable:
        reason = f"{options.shown_requests} cannot be read: {unreadable.strerror}; name a file, or '-' for stdin"
        raise click.BadParameter(reason, param_hint="REQUESTS") from None
    with file:
        yield file
