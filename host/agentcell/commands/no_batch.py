"""What is said where a command finds no run directory under the name that it was given."""

import os
from pathlib import Path

import click

from agentcell.batch.directory import OTHER_DIRECTORY, is_run_directory
from agentcell.errors import RunDirectoryError
from agentcell.terminal import one_line

MADE = "name a run directory, such as NAME.run, which agentcell batch makes beside NAME.jsonl"


def no_batch(path: Path, mistake: RunDirectoryError) -> click.UsageError:
    """The mistake, as a command says it that makes no directory, and which one was meant if there is one. Blocks."""
    if not os.path.lexists(path):
        told = f"there is no {path}"
    elif mistake.remedy == OTHER_DIRECTORY:
        told = f"{path}: {mistake.reason}"
    else:
        return click.UsageError(one_line(str(mistake)))
    meant = _meant(path)
    return click.UsageError(one_line(f"{told}; {MADE if meant is None else f'did you mean {meant}?'}"))


def _meant(path: Path) -> Path | None:
    """The run directory of the rows in a file of this name."""
    if not path.name:
        return None
    likely = (path.with_suffix(".run"), path.with_name(f"{path.name}.run"))
    return next((one for one in likely if one != path and is_run_directory(one)), None)
