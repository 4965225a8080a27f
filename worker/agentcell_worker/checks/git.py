"""What a git repository says of itself; it is only read."""

import os
import subprocess
from pathlib import Path

from agentcell_protocol import cell

GIT_SECONDS = 5.0
"""A question takes milliseconds; a file system that hangs must not hold up a result."""

MAX_REASON = 300
"""Characters of what git says, which is a line for people."""

PASSED = ("PATH", "HOME", cell.MARKER)
"""Variables that git gets: none that make it look at another repository, and no credentials."""

OFFLINE = {"GIT_ALLOW_PROTOCOL": "none"}
"""Nothing is fetched, not even what a partial clone lacks."""


class NoAnswerError(Exception):
    """Git does not say, and why, for people."""


class RefusedError(NoAnswerError):
    """Git ran, and says no."""


def is_work_tree(folder: str | Path) -> bool:
    """Whether the directory lies in a work tree. Raises NoAnswerError where it looks so, but git does not say."""
    try:
        return _ask(folder, "rev-parse", "--is-inside-work-tree") == "true"
    except NoAnswerError:
        if _looks_like_one(Path(folder)):
            raise
        return False


def has_commit(folder: str | Path, commit: str) -> bool:
    """Whether the repository around the directory has the commit of that id. Raises NoAnswerError.

    The caller sees to it that the id is one: git would read other text as something else.
    """
    try:
        _ask(folder, "cat-file", "-e", f"{commit}^{{commit}}")
    except RefusedError:
        return False
    return True


def _looks_like_one(folder: Path) -> bool:
    """Whether a repository belongs to the directory, or to one above it."""
    places = (str(place / ".git") for place in (folder.resolve(), *folder.resolve().parents))
    return any(os.path.isfile(place) or os.path.lexists(f"{place}/HEAD") for place in places)  # noqa: PTH113 - never raises


def _ask(folder: str | Path, *question: str) -> str:
    """Raises NoAnswerError."""
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
    except OSError as missing:
        raise NoAnswerError(f"git does not start: {missing.strerror}") from None
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"git did not answer within {GIT_SECONDS:g} s") from None
    if ended.returncode != 0:
        first = ended.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise RefusedError(first[:MAX_REASON] or f"git ended with exit code {ended.returncode}")
    return ended.stdout.decode(errors="replace").strip()
