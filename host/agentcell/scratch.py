"""The private temporary directory of a cell."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PREFIX = "agentcell-"

VARIABLES = ("TMPDIR", "CLAUDE_CODE_TMPDIR")
"""Where the worker, its tools and the CLI put their temporary files."""


@contextmanager
def scratch(environment: Mapping[str, str]) -> Iterator[Path]:
    """A directory (0700) that is removed at the end.

    It lies where `environment` has its temporary files, or in the host's own place for them. Raises OSError.
    """
    parent = environment.get("TMPDIR")
    directory = tempfile.mkdtemp(prefix=PREFIX, dir=parent if parent and Path(parent).is_dir() else None)
    try:
        yield Path(directory)
    finally:
        remove(Path(directory))


def remove(directory: Path) -> None:
    """Remove it with everything in it, as far as that can be done. Blocks: a tool may have left much."""
    shutil.rmtree(directory, ignore_errors=True)
