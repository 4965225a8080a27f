"""What a git repository says of itself; it is only read."""

import os
import subprocess
from pathlib import Path

from agentcell_protocol import cell

GIT_SECONDS = 5.0
"""A question takes milliseconds; a file system that hangs must not hold up a result."""

PASSED = ("PATH", "HOME", cell.MARKER)
"""Variables that git gets: none that make it look at another repository, and no credentials."""

OFFLINE = {"GIT_ALLOW_PROTOCOL": "none"}
"""Nothing is fetched, not even what a partial clone lacks."""


def is_work_tree(folder: str | Path) -> bool:
    """Whether the directory lies in a work tree; not, when git is missing or refuses."""
    return _ask(folder, "rev-parse", "--is-inside-work-tree") == (0, b"true")


def has_commit(folder: str | Path, commit: str) -> bool | None:
    """Whether the repository around the directory has the commit of that id, None when it does not say.

    The caller sees to it that the id is one: git would read other text as something else.
    """
    answer = _ask(folder, "cat-file", "-e", f"{commit}^{{commit}}")
    return None if answer is None else answer[0] == 0


def _ask(folder: str | Path, *question: str) -> tuple[int, bytes] | None:
    variables = {name: os.environ[name] for name in PASSED if name in os.environ}
    try:
        ended = subprocess.run(
            ["git", *question],  # noqa: S607 - the user's own git, by their PATH
            cwd=folder,
            env={**variables, **OFFLINE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.returncode, ended.stdout.strip()
