"""A file that only this user can read, for what must not stand in an argument list."""

import os
import tempfile
from pathlib import Path


def write_private(content: bytes, *, suffix: str) -> str:
    """Put the content into a new temporary file (mode 0600); its path."""
    fd, path = tempfile.mkstemp(prefix="agentcell-", suffix=suffix)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    return path


def remove_private(path: str | None) -> None:
    """Remove it, if it is there."""
    if path is not None:
        Path(path).unlink(missing_ok=True)
