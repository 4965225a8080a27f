"""The command `agentcell`: arguments in, exit code out. What a command needs is imported when it runs."""

import gc
import sys

import click

from agentcell.commands.agents import agents
from agentcell.commands.batch import batch
from agentcell.commands.conformance import conformance
from agentcell.commands.doctor import doctor
from agentcell.commands.offline_model import offline_model
from agentcell.commands.output import settle_stderr, silence_stdout
from agentcell.commands.run import run
from agentcell.commands.schema import schema
from agentcell.commands.serve import serve
from agentcell.commands.status import status
from agentcell.commands.stop import stop
from agentcell.console import INTERRUPTED
from agentcell_protocol.version import __version__

BROKEN_PIPE = 141
"""Exit code when nobody reads what we print: 128 + SIGPIPE."""


NEW_OBJECTS = 50_000
"""Between two looks for garbage. With the 700 of Python a fifth of the start of a batch finds out that imports stay."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="agentcell", message="%(prog)s %(version)s")
def agentcell() -> None:
    """Run Claude agent sessions in cells: one isolated worker process per session, one truthful result each."""


for command in (run, serve, batch, status, stop, agents, doctor, schema, offline_model, conformance):
    agentcell.add_command(command)


def main() -> None:
    """Exit with the command's code, without a traceback for what a user can cause."""
    gc.set_threshold(NEW_OBJECTS)
    try:
        code = agentcell.main(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as mistake:
        mistake.show()
        code = mistake.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:
        silence_stdout()
        code = BROKEN_PIPE
    settle_stderr()
    sys.exit(code)
