"""`agentcell run`."""

from typing import Any

import click

from agentcell.commands.options import RunOptions, mapping_file, mcp_servers, pairs, seconds


@click.command
@click.argument("message", required=False, metavar="[MESSAGE|-]")
@click.option("-C", "--project-dir", default=".", metavar="DIR", help="Where the agent works.  [default: .]")
@click.option(
    "--agent-type",
    default="coder",
    metavar="TYPE",
    help="planner, coder, qa_reviewer, qa_fixer, documentation_generator, migration_assistant, test_generator or "
    "fixture_generator. See also agentcell agents.  [default: coder]",
)
@click.option("--agents-dir", metavar="DIR", help="Where further agent types are defined, as *.md files.")
@click.option("--session-name", metavar="NAME", help="How the result calls it.  [default: the project's name]")
@click.option("--spec-dir", metavar="DIR", help="Holds the implementation_plan.json that decides about the status.")
@click.option("--model", metavar="NAME", help="The model to ask.")
@click.option("--system-prompt", metavar="TEXT", help="A role prompt: it leads the message.")
@click.option(
    "--timeout",
    type=float,
    callback=seconds,
    metavar="SECONDS",
    help="The limit max_execution_seconds: the whole session.",
)
@click.option("--max-turns", type=int, metavar="N", help="The most turns the agent may take.")
@click.option("--max-budget-usd", type=float, metavar="USD", help="The most it may cost.")
@click.option("--permission-mode", metavar="MODE", help="default, acceptEdits, plan, dontAsk, auto, bypassPermissions.")
@click.option("--tools", multiple=True, metavar="NAME", help="A tool that exists; repeat it. '' for none at all.")
@click.option("--allowed-tools", multiple=True, metavar="RULE", help="What needs no permission; repeat it.")
@click.option("--disallowed-tools", multiple=True, metavar="RULE", help="What is refused; repeat it.")
@click.option("--setting-sources", multiple=True, metavar="SOURCE", help="user, project or local; repeat it.")
@click.option("--mcp-config", callback=mcp_servers, metavar="FILE", help='MCP servers: {"mcpServers": {...}}.')
@click.option("--session-id", metavar="UUID", help="The id to give the conversation.")
@click.option("--resume", metavar="UUID", help="The conversation to go on with.")
@click.option("--env", multiple=True, callback=pairs, metavar="K=V", help="A variable for the session; repeat it.")
@click.option("--pass-env", multiple=True, metavar="NAME", help="A variable to pass on as it is; repeat it.")
@click.option("--context", callback=mapping_file, metavar="FILE", help="JSON or YAML: what the agent type asks for.")
@click.option("--request", metavar="FILE|-", help="The whole request as JSON, instead of the options above.")
@click.option("--no-keep", is_flag=True, help="Do not keep the conversation; it cannot be resumed then.")
@click.option("--json", "as_json", is_flag=True, help="Print exactly one line: the result.")
@click.option("--offline", is_flag=True, help="Rehearse: a scripted model on this machine, no credentials.")
@click.option("-v", "--verbose", is_flag=True, help="Say on stderr what happens meanwhile.")
@click.pass_context
def run(command: click.Context, /, **given: Any) -> None:
    """Run one session in a cell of its own.

    MESSAGE says what the agent is to do. With '-' it is read from stdin, and without one too, unless there is a
    --context, or the --agent-type needs no message.
    On a terminal you see the answer as it comes; in a pipe you get only the answer. Exit codes: 0 complete or
    continue, 1 error, 2 bad request or usage, 124 timeout, 129, 130, 143 cancelled by SIGHUP, SIGINT, SIGTERM.
    """
    from agentcell.commands.foreground import run_in_foreground

    on_command_line = click.core.ParameterSource.COMMANDLINE
    names = frozenset(name for name in given if command.get_parameter_source(name) is on_command_line)
    command.exit(run_in_foreground(RunOptions(**given, given=names)))
