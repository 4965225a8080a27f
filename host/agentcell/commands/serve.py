"""`agentcell serve`."""

import sys

import click

from agentcell.commands.options import pairs


@click.command
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Sessions at a time.  [default: cores]")
@click.option("--env", multiple=True, callback=pairs, metavar="K=V", help="A variable for all sessions; repeat it.")
@click.option("--pass-env", multiple=True, metavar="NAME", help="A variable to pass on as it is; repeat it.")
@click.option("--no-keep", is_flag=True, help="Do not keep the conversations; they cannot be resumed then.")
@click.pass_context
def serve(
    command: click.Context, /, jobs: int | None, env: dict[str, str], pass_env: tuple[str, ...], *, no_keep: bool
) -> None:
    """Run sessions for another program, which sends lines to stdin and reads lines from stdout.

    \b
    {"type":"run","id":"r1","request":{...}}   begins a session, as soon as there is room
    {"type":"cancel","id":"r1"}                ends it
    {"type":"shutdown"}                        ends this once all runs have their results

    Each run has exactly one result, with its id. When stdin ends, all runs are cancelled. See docs/protocol.md.
    Exit codes: 0 stdin has ended or a shutdown is done, 1 stdout is gone, 2 usage, 129, 130, 143 ended by SIGHUP,
    SIGINT, SIGTERM.
    """
    import os

    from agentcell.commands.serving import serve_in_foreground
    from agentcell.environment import cell_environment

    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout)):
        if stream is None:
            raise click.UsageError(f"{name} is closed; lines come through stdin, and are answered through stdout")
    environment = cell_environment(os.environ, env=env, pass_env=pass_env)
    command.exit(serve_in_foreground(jobs, environment, keep=not no_keep))
