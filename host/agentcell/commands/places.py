"""Where a batch runs, if it is not to run here: `--on`."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from agentcell.commands.batch_options import BatchOptions
    from agentcell.executors.executor import Executor

PLACE = re.compile(r"ray(?:://(?P<address>[^/\s:]+:\d+|\[[^\]\s]+\]:\d+))?")

MOST_SHOWN = 80
"""Characters that are repeated of what is no place: an address has fewer."""


def place(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    """Where a batch can run."""
    if given is None:
        return None
    if PLACE.fullmatch(given) is None:
        shown = given if len(given) <= MOST_SHOWN else given[: MOST_SHOWN - 1] + "…"
        raise click.BadParameter(f"{shown!r} is no place; give ray, or ray://HOST:PORT with the address of its head")
    from agentcell.errors import ExecutorError
    from agentcell.executors.ray.absence import check_installed

    try:
        check_installed()
    except ExecutorError as missing:
        raise click.BadParameter(str(missing)) from None
    return given


def executor_of(options: "BatchOptions", say: Callable[[str], object]) -> "Executor | None":
    """What runs the sessions, and has a line to `say` when it leaves a node out; None for the host's own."""
    if options.on is None:
        return None
    from agentcell.executors.ray import RayExecutor
    from agentcell.terminal import one_line

    found = PLACE.fullmatch(options.on)
    return RayExecutor(
        found and found["address"],
        max_sessions=options.jobs,
        min_free_mb=options.min_free_mb,
        directories=[str(options.directory.absolute())],
        on_warning=lambda warning: say(one_line(f"warning: {warning}")),
    )
