"""The console script: however early it is interrupted, it ends without a traceback."""

import sys

INTERRUPTED = 130
"""Exit code after Ctrl-C where no session was running: 128 + SIGINT."""


def main() -> None:
    """Run the command. Exits with its code."""
    try:
        from agentcell.cli import main as run  # noqa: PLC0415 - an interrupt meanwhile is caught
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()
