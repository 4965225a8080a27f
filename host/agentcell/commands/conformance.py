"""`agentcell conformance`."""

from typing import TYPE_CHECKING, Any

import click

from agentcell.commands.options import pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agentcell.conformance.check import Check, Finding
    from agentcell.conformance.running import Checking

    Command = Callable[..., None]
    Show = Callable[[Iterable[Finding]], Sequence[Finding]]

VERBATIM = {"allow_interspersed_args": False}
"""What follows the program's name is the program's own."""


def _options(command: "Command") -> "Command":
    for option in reversed(
        (
            click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each check."),
            click.option("--only", multiple=True, metavar="NUMBER", help="Only this check, such as W03; repeat it."),
            click.option(
                "--patience",
                type=click.FloatRange(min=6, max=3600),
                metavar="SECONDS",
                help="How long anything may take the program.  [default: 30]",
            ),
            click.option(
                "--env", multiple=True, callback=pairs, metavar="K=V", help="A variable for the program; repeat it."
            ),
            click.option(
                "--pass-env", multiple=True, metavar="NAME", help="A variable to pass on as it is; repeat it."
            ),
            click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…"),
            click.pass_context,
        )
    ):
        command = option(command)
    return command


@click.group
def conformance() -> None:
    """Check a program that claims to speak the protocol, offline and free of charge.

    Each check has a number; one that fails says what was expected, what came, and what to do. Exit codes: 0 all passed,
    1 some failed, 2 usage, 129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM.
    """


@conformance.command(context_settings=VERBATIM)
@_options
def worker(context: click.Context, /, **given: Any) -> None:
    """Check a worker: one request line on stdin, events and one result on stdout.

    Its model is a scripted one, by ANTHROPIC_BASE_URL; HOME and the project are empty directories of each scene's own.
    """
    from agentcell.conformance.worker_checks import WORKER_CHECKS

    context.exit(_run(WORKER_CHECKS, **given))


@conformance.command(context_settings=VERBATIM)
@_options
def host(context: click.Context, /, **given: Any) -> None:
    """Check a host that speaks as `agentcell serve` does: many requests on one stdin.

    Start it with room for two to four sessions at a time, as in: agentcell conformance host -- agentcell serve -j 2
    """
    from agentcell.conformance.host_checks import HOST_CHECKS

    context.exit(_run(HOST_CHECKS, **given))


def _run(
    checks: "Sequence[Check]",
    *,
    command: tuple[str, ...],
    as_json: bool,
    only: tuple[str, ...],
    patience: float | None,
    env: dict[str, str],
    pass_env: tuple[str, ...],
) -> int:
    import os

    import anyio

    from agentcell.commands.report import print_lines
    from agentcell.commands.verdicts import print_table
    from agentcell.conformance.running import BrokenOff, Checking
    from agentcell.conformance.stage import PATIENCE_SECONDS, CommandError, Setting
    from agentcell_protocol.exitcodes import CANCEL_SIGNALS, SIGNALLED

    passed_on = {name: os.environ[name] for name in pass_env if name in os.environ}
    setting = Setting(_found(command), {**passed_on, **env}, patience or PATIENCE_SECONDS)
    checking = Checking(_wanted(checks, only), setting)
    try:
        findings = anyio.run(_show_until_signalled, print_lines if as_json else print_table, checking)
    except CommandError as mistake:
        raise click.UsageError(str(mistake)) from None
    except BrokenOff as signalled:
        return SIGNALLED + CANCEL_SIGNALS[signalled.reason]
    return int(any(finding.grade == "failed" for finding in findings))


async def _show_until_signalled(show: "Show", checking: "Checking") -> "Sequence[Finding]":
    """Show the findings from a thread of its own: what ends this is heard by this one, and ends what was started."""
    import anyio

    from agentcell.signals import cancelling_on_signals

    async with cancelling_on_signals(checking):
        return await anyio.to_thread.run_sync(show, checking.findings())


def _found(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, its program by its path."""
    import shutil

    path = shutil.which(command[0])
    if path is None:
        raise click.UsageError(f"{command[0]}: there is no such program; give its path, or put it on the PATH")
    return (path, *command[1:])


def _wanted(checks: "Sequence[Check]", only: tuple[str, ...]) -> "Sequence[Check]":
    known = {check.number for check in checks}
    for number in only:
        if number.upper() not in known:
            reason = f"{number} is no check; the numbers are {min(known)} to {max(known)}"
            raise click.BadParameter(reason, param_hint="--only")
    numbers = {number.upper() for number in only} or known
    return [check for check in checks if check.number in numbers]
