"""`agentcell batch` on a Ray cluster whose cells are stand-ins: `python batch_program.py ADDRESS ARGUMENT…`.

All is the command's own, but for the worker and for leases that are short.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import agentcell.commands.batching
from agentcell.cli import main
from agentcell.commands.batch_options import BatchOptions
from agentcell.executors.ray import RayExecutor

LEASE_SECONDS = 3.0

STAND_IN = (sys.executable, "-P", "-m", "agentcell.testing")


def on(address: str, options: BatchOptions, say: Callable[[str], object]) -> RayExecutor:
    """The command's executor, with cells that do what their rows say."""
    shared = [str(Path(options.directory).absolute())]
    return RayExecutor(
        address, lease_seconds=LEASE_SECONDS, directories=shared, worker_command=STAND_IN, on_warning=say
    )


if __name__ == "__main__":
    place, *arguments = sys.argv[1:]
    vars(agentcell.commands.batching)["executor_of"] = partial(on, place)
    sys.argv[1:] = ["batch", *arguments]
    main()
