"""A batch from a command line: read its rows, run them, end them when the user says so, and say how it ended."""

import os
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

import anyio
import click

from agentcell.batch.batch import run_batch
from agentcell.batch.directory import RunDirectory
from agentcell.batch.display import Display
from agentcell.batch.ending import BatchEnd
from agentcell.batch.former import count_former
from agentcell.batch.history import History
from agentcell.batch.interruption import Interruption
from agentcell.batch.reading import read_batch
from agentcell.batch.settings import Settings
from agentcell.batch.sources import STDIN, FileRows, Source, StreamRows
from agentcell.batch.tally import Tally
from agentcell.batch.views import display_on, view_for
from agentcell.commands.batch_options import BatchOptions, batch_config, batch_defaults, batch_settings
from agentcell.commands.batch_plan import known_of, look_through, refuse, summarise, warn_of_conflicts
from agentcell.commands.output import pour, silence_stdout, tell
from agentcell.commands.overview import tell_end
from agentcell.errors import RunDirectoryError
from agentcell.host import Host
from agentcell.signals import cancelling_on_signals
from agentcell.terminal import one_line
from agentcell_protocol.codec import encode
from agentcell_protocol.exitcodes import ERROR
from agentcell_protocol.result import SessionResult


def run_in_foreground(options: BatchOptions) -> int:
    """Run the batch that the options ask for; the exit code. Raises click.UsageError for the caller's mistakes."""
    defaults, settings = batch_defaults(options), batch_settings(options)
    with _rows(options.requests) as file:
        if options.requests == "-" or not _is_seekable(file):
            return _run_stream(file, defaults, settings, options)
        return _run_file(file, defaults, settings, options)


def _run_file(file: BinaryIO, defaults: Mapping[str, Any], settings: Settings, options: BatchOptions) -> int:
    if options.dry_run:
        return summarise(look_through(file, defaults, options, known_of(options)), options)
    tally, again = Tally(time.time()), list[str]()

    def prepare(history: History | None) -> tuple[Source, dict[str, Any]]:
        """Look at every row before anything starts."""
        file.seek(0)
        found = look_through(file, defaults, options, history)
        if not options.skip_invalid and (found.problems or found.refused):
            raise RefusedError(refuse(found, options))
        tally.total = found.total
        for (status, category), count in found.finished.items():
            tally.finished_before(status, category, count)
        again.extend(found.again)
        warn_of_conflicts(found)
        return FileRows(file, found.places, problems=found.problems, defaults=defaults), {"rows": found.total}

    try:
        return _run(prepare, tally, settings, options, again)
    except RefusedError as refused:
        return refused.exit_code


def _run_stream(file: BinaryIO, defaults: Mapping[str, Any], settings: Settings, options: BatchOptions) -> int:
    if options.dry_run:
        return summarise(look_through(file, defaults, options, known_of(options)), options)
    if settings.caps.max_failures is not None and settings.caps.max_failures.is_share:
        raise click.BadParameter("of a stream nobody knows the number of rows; give one", param_hint="--max-failures")
    source = StreamRows(file.fileno(), defaults=defaults)
    return _run(lambda _: (source, {"rows": None}), Tally(time.time()), settings, options, [])


class RefusedError(Exception):
    """The rows are not as they must be, which has been told."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(exit_code)


def _run(
    prepare: Callable[[History | None], tuple[Source, dict[str, Any]]],
    tally: Tally,
    settings: Settings,
    options: BatchOptions,
    again: list[str],
) -> int:
    """Run what the prepared source gives, in the run directory of the options."""
    prepared = None if options.directory.is_dir() else prepare(None)  # which is not made for rows that are none
    sources = [prepared[0]] if prepared else []

    def config(history: History) -> Mapping[str, Any]:
        source, known = prepare(history)
        sources.append(source)
        return {**known, **batch_config(options, settings)}

    given = {**prepared[1], **batch_config(options, settings)} if prepared else config
    try:
        with RunDirectory.open(options.directory, given, requests=options.requests) as run:
            for told in run.repairs:
                tell(f"warning: {told}")
            if tally.total is None or tally.finished < tally.total:
                count_former(run, tally)
            run.reopen(again)
            with _display(options) as display:
                begin = partial(run_batch, sources[-1], run=run, settings=settings, tally=tally, on_change=display.show)
                on_result = _print if options.as_json else None
                end = anyio.run(_run_signalled, partial(begin, on_result=on_result), options.jobs)
                display.show(end.snapshot)
    except RunDirectoryError as unusable:
        raise click.UsageError(str(unusable)) from None
    except OutputError as lost:
        return _close_without_stdout(lost.cause, options)
    except OSError as failure:
        tell(f"error: {failure.filename or options.directory}: {failure.strerror}; what is finished is kept")
        return ERROR
    return _close(end, options)


async def _run_signalled(run: Callable[..., Awaitable[BatchEnd]], jobs: int | None) -> BatchEnd:
    interruption = Interruption()
    async with cancelling_on_signals(interruption), Host(max_sessions=jobs) as host:
        return await run(host=host, interruption=interruption)


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
    if end.refused:
        tell(f"{len(end.refused)} rows were changed since they were run; --rerun-changed runs them again")
    if end.reason is not None:
        tell(one_line(end.reason))
    return end.exit_code


def _close_without_stdout(cause: OSError, options: BatchOptions) -> int:
    silence_stdout()
    tell(
        f"error: the results cannot be written to stdout ({cause.strerror}), so the batch has ended; "
        f"what is finished is in {options.directory}, and the same command again goes on"
    )
    return ERROR


@contextmanager
def _rows(source: str) -> Iterator[BinaryIO]:
    """The file or stream that the rows come from."""
    try:
        file = open(STDIN if source == "-" else source, "rb", closefd=source != "-")  # noqa: SIM115 - or a descriptor
    except OSError as unreadable:
        reason = f"{source} cannot be read: {unreadable.strerror}; name a file, or '-' for stdin"
        raise click.BadParameter(reason, param_hint="REQUESTS") from None
    with file:
        yield file


def _is_seekable(file: BinaryIO) -> bool:
    """Whether its rows can be read twice."""
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
