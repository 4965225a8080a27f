"""A batch from a command line: read its rows, run them, end them when the user says so, and say how it ended."""

import os
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import click

from agentcell.batch.batch import BatchEnd, run_batch
from agentcell.batch.caps import Caps, MaxFailures, parse_max_failures
from agentcell.batch.directory import RunDirectory, read_history
from agentcell.batch.display import Display
from agentcell.batch.interruption import Interruption
from agentcell.batch.reading import read_batch
from agentcell.batch.rows import KnownRow, Problem, Row, checked_defaults
from agentcell.batch.settings import Settings
from agentcell.batch.sources import STDIN, FileRows, Source, StreamRows
from agentcell.batch.survey import Survey, survey
from agentcell.batch.tally import Tally
from agentcell.batch.views import display_on, view_for
from agentcell.commands.moment import moment
from agentcell.commands.output import silence_stdout, tell, write
from agentcell.commands.overview import tell_end
from agentcell.environment import cell_environment, with_cli_retries
from agentcell.errors import RunDirectoryError
from agentcell.host import Host
from agentcell.signals import cancelling_on_signals
from agentcell.terminal import one_line
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import RequestError
from agentcell_protocol.exitcodes import BAD_REQUEST, ERROR
from agentcell_protocol.result import SessionResult

MOST_TOLD = 20
"""Lines of a file that are named for what is wrong with them: one mistake in a generator is in all of them."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The options of `agentcell batch`, as given; None and empty stand for what was not given."""

    requests: str
    jobs: int | None
    run_dir: str | None
    defaults: dict[str, Any] | None
    retries: int
    retry_failed: bool
    rerun_changed: bool
    skip_invalid: bool
    dry_run: bool
    timeout: float | None
    max_cost_usd: float | None
    max_failures: str | None
    deadline: str | None
    min_free_mb: float
    wait_for_quota: bool
    grace: float
    env: dict[str, str]
    pass_env: tuple[str, ...]
    progress: str
    as_json: bool

    @property
    def directory(self) -> Path:
        """The run directory."""
        if self.run_dir is not None:
            return Path(self.run_dir)
        return Path("stdin.run" if self.requests == "-" else self.requests).with_suffix(".run")


def run_in_foreground(options: BatchOptions) -> int:
    """Run the batch that the options ask for; the exit code. Raises click.UsageError for the caller's mistakes."""
    defaults, settings = _defaults(options), _settings(options)
    with _rows(options.requests) as file:
        if not _is_seekable(file):
            return _run_stream(file, defaults, settings, options)
        return _run_file(file, defaults, settings, options)


def _run_file(file: BinaryIO, defaults: Mapping[str, Any], settings: Settings, options: BatchOptions) -> int:
    found = _survey(file, defaults, options)
    if options.dry_run:
        return _summarise(found, options)
    if not options.skip_invalid and (found.problems or found.refused):
        return _refuse(found, options)
    tally = Tally(time.time(), total=found.total)
    for (status, category), count in found.finished.items():
        for _ in range(count):
            tally.finished_before(status, category)
    _warn_of_conflicts(found)
    source = FileRows(file, found.places, problems=found.problems, defaults=defaults)
    return _run(source, tally, settings, options, again=found.again)


def _run_stream(file: BinaryIO, defaults: Mapping[str, Any], settings: Settings, options: BatchOptions) -> int:
    if options.dry_run:
        return _summarise(_survey(file, defaults, options), options)
    if settings.caps.max_failures is not None and settings.caps.max_failures.is_share:
        raise click.BadParameter("of a stream nobody knows the number of rows; give one", param_hint="--max-failures")
    return _run(StreamRows(file.fileno(), defaults=defaults), Tally(time.time()), settings, options, again=[])


def _run(source: Source, tally: Tally, settings: Settings, options: BatchOptions, *, again: list[str]) -> int:
    """Run what the source gives, in the run directory of the options."""
    try:
        config = {"rows": tally.total, **_config(options, settings)}
        with RunDirectory.open(options.directory, config, requests=options.requests) as run:
            for told in run.repairs:
                tell(f"warning: {told}")
            run.reopen(again)
            with _display(options) as display:
                begin = partial(run_batch, source, run=run, settings=settings, tally=tally, on_change=display.show)
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
    """Print it beside the loop: a reader that takes its time must not stop the clocks."""
    try:
        await anyio.to_thread.run_sync(write, encode(result.to_message()), abandon_on_cancel=True)
    except OSError as failure:
        raise OutputError(failure) from failure


def _survey(file: BinaryIO, defaults: Mapping[str, Any], options: BatchOptions) -> Survey:
    history = read_history(options.directory) if options.directory.is_dir() else None
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


def _summarise(found: Survey, options: BatchOptions) -> int:
    """The end of a dry run."""
    to_run = len(found.places) // 2
    parts = [f"{count} {what}" for what, count in found.plans.items()]
    if found.problems:
        parts.append(f"{len(found.problems)} invalid")
    tell(f"{found.total} rows, {to_run} would run: {', '.join(parts) or 'there are none'}")
    is_refused = not options.skip_invalid and (found.problems or found.refused)
    return BAD_REQUEST if is_refused else 0


def _refuse(found: Survey, options: BatchOptions) -> int:
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


def _warn_of_conflicts(found: Survey) -> None:
    if found.conflicts and found.places:
        directory, count = max(found.conflicts.items(), key=lambda one: one[1])
        tell(f"warning: {count} rows may write to {one_line(directory)} at the same time; give each a copy of its own")


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


def _defaults(options: BatchOptions) -> Mapping[str, Any]:
    members = dict(options.defaults or {})
    try:
        if options.timeout is not None and isinstance(limits := members.get("limits", {}), Mapping):
            members["limits"] = {**limits, "max_execution_seconds": options.timeout}
        return checked_defaults(members)
    except RequestError as mistake:
        raise click.BadParameter(str(mistake), param_hint="--defaults") from None


def _settings(options: BatchOptions) -> Settings:
    environment = cell_environment(os.environ, env=options.env, pass_env=options.pass_env)
    return Settings(
        environment=with_cli_retries(environment) if options.retries else environment,
        retries=options.retries,
        retry_failed=options.retry_failed,
        rerun_changed=options.rerun_changed,
        waits_for_quota=options.wait_for_quota,
        caps=Caps(options.max_cost_usd, _max_failures(options), _deadline(options)),
        min_free_mb=options.min_free_mb,
        grace_seconds=options.grace,
    )


def _max_failures(options: BatchOptions) -> MaxFailures | None:
    if options.max_failures is None:
        return None
    try:
        return parse_max_failures(options.max_failures)
    except ValueError as mistake:
        raise click.BadParameter(str(mistake), param_hint="--max-failures") from None


def _deadline(options: BatchOptions) -> float | None:
    if options.deadline is None:
        return None
    try:
        return moment(options.deadline, time.time())
    except ValueError as mistake:
        raise click.BadParameter(str(mistake), param_hint="--deadline") from None


def _config(options: BatchOptions, settings: Settings) -> dict[str, Any]:
    """How it is run, as it is written down: without the values of variables."""
    return {
        "jobs": options.jobs or os.cpu_count() or 1,
        "retries": settings.retries,
        "caps": asdict(settings.caps),
        "min_free_mb": settings.min_free_mb,
        "grace_seconds": settings.grace_seconds,
        "wait_for_quota": settings.waits_for_quota,
        "env": sorted(options.env),
        "pass_env": sorted(options.pass_env),
    }


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
    """Whether its rows can be read twice; what comes from stdin never is."""
    return file.fileno() != STDIN and stat.S_ISREG(os.fstat(file.fileno()).st_mode)
