"""The private directory of a cell, or of a rehearsal, for what is gone when that is."""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from agentcell.hold import held

PREFIX = "agentcell-cell-"

STALE_SECONDS = 60.0
"""A directory that nobody holds is left alone for so long: the one who makes it has still to hold it."""


@contextmanager
def scratch(environment: Mapping[str, str]) -> Iterator[Path]:
    """A directory (0700) that is removed at the end.

    It lies where `environment` has its temporary files, or in the host's own place for them. Raises OSError.
    """
    directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_place(environment)))
    try:
        with ExitStack() as holding:
            with suppress(OSError):  # without locks it may be left behind, and not be swept later
                holding.enter_context(held(directory))
            yield directory
    finally:
        remove(directory)


def remove(directory: Path) -> None:
    """Remove it with everything in it, as far as that can be done. Blocks: a tool may have left much."""
    shutil.rmtree(directory, ignore_errors=True)


def sweep_stale(environment: Mapping[str, str], *, older_than: float = STALE_SECONDS) -> None:
    """Remove what hosts that were killed have left there. `older_than` is in seconds. Blocks."""
    place = Path(_place(environment) or tempfile.gettempdir())
    with suppress(OSError):
        for directory in place.glob(f"{PREFIX}*"):
            with suppress(OSError):
                if time.time() - directory.stat().st_mtime > older_than:
                    with held(directory):
                        remove(directory)


def _place(environment: Mapping[str, str]) -> str | None:
    parent = environment.get("TMPDIR")
    return parent if parent and Path(parent).is_dir() else None
