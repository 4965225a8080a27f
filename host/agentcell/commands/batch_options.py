"""What `agentcell batch` was told, and what follows from it."""

import os
import stat
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import click

from agentcell.batch.caps import Caps, MaxFailures, parse_max_failures
from agentcell.batch.rows import checked_defaults
from agentcell.batch.rules import Rules, owned
from agentcell.batch.settings import Settings
from agentcell.commands.moment import moment
from agentcell.commands.options import MappingFile
from agentcell.environment import cell_environment, with_cli_retries
from agentcell.terminal import one_line
from agentcell_protocol.errors import RequestError


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The options of `agentcell batch`, as given; None and empty stand for what was not given."""

    requests: str
    jobs: int | None
    on: str | None
    run_dir: str | None
    defaults: MappingFile | None
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
    env: dict[str, str] = field(repr=False)
    pass_env: tuple[str, ...]
    progress: str
    as_json: bool

    @property
    def directory(self) -> Path:
        """The run directory. Raises click.UsageError where none is named."""
        if self.run_dir is None:
            return Path("stdin.run" if self.requests == "-" else self.requests).with_suffix(".run")
        if not self.run_dir:
            raise click.BadParameter("it is empty; name a directory, or leave it out", param_hint="--run-dir")
        return Path(self.run_dir)

    @property
    def shown_directory(self) -> str:
        """The same, for people."""
        return one_line(str(self.directory))

    @property
    def shown_requests(self) -> str:
        """Where the rows come from, for people."""
        return "stdin" if self.requests == "-" else one_line(self.requests)

    def is_stream(self, file: BinaryIO) -> bool:
        """Whether the rows are taken as they come: from stdin, and from what cannot be read twice."""
        return self.requests == "-" or not stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def batch_rules(options: BatchOptions) -> Rules:
    """What holds for all rows. Raises click.UsageError."""
    files = [] if options.requests == "-" else [options.requests]
    files += [options.defaults.path] if options.defaults else []
    return Rules(batch_defaults(options), owned([options.directory, *files]))


def batch_defaults(options: BatchOptions) -> Mapping[str, Any]:
    """The members that rows may leave out. Raises click.UsageError for what cannot be one."""
    members = dict(options.defaults.members) if options.defaults else {}
    try:
        if options.timeout is not None and isinstance(limits := members.get("limits", {}), Mapping):
            members["limits"] = {**limits, "max_execution_seconds": options.timeout}
        return checked_defaults(members)
    except RequestError as mistake:
        where = one_line(options.defaults.path) if options.defaults else "--timeout"
        raise click.BadParameter(f"{where}: {mistake}", param_hint="--defaults") from None


def batch_settings(options: BatchOptions) -> Settings:
    """How the batch is to be run. Raises click.UsageError."""
    environment = cell_environment(os.environ, env=options.env, pass_env=options.pass_env)
    return Settings(
        environment=with_cli_retries(environment) if options.retries else environment,
        retries=options.retries,
        retry_failed=options.retry_failed,
        rerun_changed=options.rerun_changed,
        waits_for_quota=options.wait_for_quota,
        caps=Caps(options.max_cost_usd, _max_failures(options), _deadline(options)),
        min_free_mb=0 if options.on else options.min_free_mb,  # of this machine: nodes mind their own
        grace_seconds=options.grace,
    )


def refuse_share(options: BatchOptions, settings: Settings, file: BinaryIO) -> None:
    """Raise click.UsageError for a share of the rows where their number is not known."""
    most = settings.caps.max_failures
    if most is not None and most.is_share and options.is_stream(file):
        raise click.BadParameter("of a stream nobody knows the number of rows; give one", param_hint="--max-failures")


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


def batch_config(options: BatchOptions, settings: Settings) -> dict[str, Any]:
    """How it is run, as it is written down: without the values of variables."""
    return {
        "jobs": options.jobs if options.on else options.jobs or os.cpu_count() or 1,
        "on": options.on,
        "retries": settings.retries,
        "caps": asdict(settings.caps),
        "min_free_mb": options.min_free_mb,
        "grace_seconds": settings.grace_seconds,
        "wait_for_quota": settings.waits_for_quota,
        "env": sorted(options.env),
        "pass_env": sorted(options.pass_env),
    }
