"""The files of a project at one moment."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 100_000
"""A tree of so many is looked through in two seconds; of a larger one nothing is said."""

SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".tox", ".nox", ".eggs", ".hypothesis", ".gradle"}
)
"""What tools keep there is nobody's work."""

SKIPPING = frozenset({"pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"})
"""A directory with one of these is a virtual environment or a cache."""


@dataclass(frozen=True)
class Stamp:
    """What tells that a file is another one, or was written to."""

    size: int
    mtime_ns: int
    inode: int


def stamps(root: str | Path) -> dict[str, Stamp] | None:
    """The files below a directory by their relative POSIX paths; None when there are more than `MAX_FILES`.

    Symbolic links to directories are not followed, what cannot be read is passed over.
    """
    found: dict[str, Stamp] = {}
    for path, stamp in _walk(os.fspath(root)):
        if len(found) == MAX_FILES:
            return None
        found[path] = stamp
    return found


def changed(before: dict[str, Stamp] | None, after: dict[str, Stamp] | None) -> set[str] | None:
    """The files that are new or another since then; None when one of the two moments is not known."""
    if before is None or after is None:
        return None
    return {path for path, stamp in after.items() if before.get(path) != stamp}


def _walk(root: str) -> Iterator[tuple[str, Stamp]]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        entries = _entries(os.path.join(root, folder))  # noqa: PTH118 - a Path for each file takes twice the time
        if folder and any(entry.name in SKIPPING for entry in entries):
            continue
        for entry in entries:
            path = f"{folder}{entry.name}"
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{path}/")
                elif entry.is_file():
                    yield path, _stamp(entry)
            except OSError:
                continue  # it went meanwhile, or is not ours to see


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.name not in SKIPPED]
    except OSError:
        return []


def _stamp(entry: "os.DirEntry[str]") -> Stamp:
    found = entry.stat(follow_symlinks=False)
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ino)
