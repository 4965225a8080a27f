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
def scratch(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment with a directory of its own (0700) for temporary files, removed at the end.

    It lies where `environment` has its temporary files, or in the host's own place for them. Raises OSError.
    """
    parent = environment.get("TMPDIR")
    directory = tempfile.mkdtemp(prefix=PREFIX, dir=parent if parent and Path(parent).is_dir() else None)
    try:
        yield {**environment, **dict.fromkeys(VARIABLES, directory)}
    finally:
        shutil.rmtree(directory, ignore_errors=True)
