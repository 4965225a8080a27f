"""`agentcell batch`."""

from typing import Any

import click

from agentcell.batch.settings import GRACE_SECONDS, MIN_FREE_MB, RETRIES
from agentcell.commands.options import finite, named_mapping, pairs, seconds
from agentcell.commands.places import place

MOST_RETRIES = 1_000
"""Nobody waits for more, and all of them are in a row's result."""


@click.command
@click.argument("requests", metavar="REQUESTS.jsonl|-")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Sessions at a time.  [default: cores, or what a cluster has room for]",
)
@click.option(
    "--on", callback=place, metavar="ray[://HOST:PORT]", help="Run them on a Ray cluster.  [default: on this machine]"
)
@click.option("--run-dir", metavar="DIR", help="Where all of it is kept.  [default: the file's name with .run]")
@click.option("--defaults", callback=named_mapping, metavar="FILE", help="JSON or YAML: members that rows leave out.")
@click.option(
    "--retries",
    type=click.IntRange(min=0, max=MOST_RETRIES),
    default=RETRIES,
    show_default=True,
    metavar="N",
    help="Further attempts at a row, where one may end better.",
)
@click.option("--retry-failed", is_flag=True, help="Run rows again that failed in a former run.")
@click.option("--rerun-changed", is_flag=True, help="Run rows again that were changed since a former run.")
@click.option("--skip-invalid", is_flag=True, help="Run the others where lines of the file are no requests.")
@click.option("--dry-run", is_flag=True, help="Say what would be done with each row, and do nothing; not with --json.")
@click.option(
    "--timeout", type=float, callback=seconds, metavar="SECONDS", help="max_execution_seconds, where a row has none."
)
@click.option(
    "--max-cost-usd",
    type=click.FloatRange(min=0, min_open=True),
    callback=finite,
    metavar="USD",
    help="Begin no row once that is spent.",
)
@click.option("--max-failures", metavar="N|P%", help="Begin no row once so many have failed.")
@click.option("--deadline", metavar="WHEN", help="Begin no row after that: 90s, 45m, 8h, or 2030-01-31T07:00.")
@click.option(
    "--min-free-mb",
    type=click.FloatRange(min=0),
    callback=finite,
    default=MIN_FREE_MB,
    metavar="MB",
    help="Memory that must be free to begin a row; under half of it the youngest makes room.  "
    f"[default: {MIN_FREE_MB:g}]",
)
@click.option("--wait-for-quota", is_flag=True, help="Wait for hours where the account's quota is used up.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    callback=finite,
    default=GRACE_SECONDS,
    metavar="SECONDS",
    help=f"For running sessions to finish after the first Ctrl-C.  [default: {GRACE_SECONDS:g}]",
)
@click.option("--env", multiple=True, callback=pairs, metavar="K=V", help="A variable for all sessions; repeat it.")
@click.option("--pass-env", multiple=True, metavar="NAME", help="A variable to pass on as it is; repeat it.")
@click.option(
    "--progress", type=click.Choice(["auto", "plain", "none", "json"]), default="auto", help="How to show it."
)
@click.option("--json", "as_json", is_flag=True, help="Print each result, one line each, as soon as it is there.")
@click.pass_context
def batch(command: click.Context, /, **given: Any) -> None:
    """Run many sessions, each in a cell of its own, and go on with them whatever happens.

    REQUESTS.jsonl has one request a line, '-' reads them from stdin as they come. The same command again goes on where
    a run was cut, and runs nothing that has its result in DIR/results.jsonl. The first Ctrl-C lets running sessions
    finish, the second ends them, the third kills them.
    Exit codes: 0 all succeeded, 1 some failed, 2 usage, 75 paused: go on later, 129, 130, 143 cut by SIGHUP, SIGINT,
    SIGTERM.
    """
    from agentcell.commands.batch_options import BatchOptions
    from agentcell.commands.batching import run_in_foreground

    command.exit(run_in_foreground(BatchOptions(**given)))
