"""A run directory that a batch has begun."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentcell.batch.directory import RunDirectory


@contextmanager
def begun(path: Path, config: Mapping[str, Any] | None = None, *, requests: str = "-") -> Iterator[RunDirectory]:
    """Opened, and begun or gone on with."""
    with RunDirectory.open(path, requests=requests) as run:
        run.begin(config or {})
        yield run
