"""What is in a project's Python files, for agents that are not told by their caller."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from agentcell_worker.agents.outline import Definition, OutlineError, outline

MAX_ENTRIES = 300
"""Of each list: some ten thousand tokens in all, which a model reads before it looks for itself."""

MAX_FILE_BYTES = 1024 * 1024
"""Larger files are generated, or data."""

MAX_BYTES = 32 * 1024 * 1024
"""In all files together; to parse them takes some ten seconds."""

MAX_SEEN = 100_000
"""Files and directories that are looked at: a home directory must not take forever."""

SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist", "target"})
"""Directories that hold what is installed or made; those whose names begin with a dot are left out, too."""

TEST_FOLDERS = frozenset({"test", "tests"})
TYPESCRIPT = (".ts", ".tsx")

Entry = dict[str, Any]


def analyse(project_dir: str | Path) -> dict[str, Any]:
    """What the Python files of a project define, apart from its tests; paths are relative to the project.

    {functions: [{name, file, line}], classes: [{name, file, line, methods: [{name, line}]}], missing_docstrings:
    [{name, file, line, kind}], test_files: [path], unparsable: [{file, error}]}. Public names come first, then the
    order is that of files and lines. In a project without any, `typescript_files` has those. Of a list that is
    longer than 300 the rest is left out: then `truncated` is true, and `totals` has the length of each.
    """
    found, whole = _Found(), True
    python, typescript = [], []
    for path in _files(Path(project_dir)):
        if path is None:
            whole = False
        elif path.suffix == ".py":
            python.append(path)
        elif path.suffix in TYPESCRIPT:
            typescript.append(path)
    whole = found.read(Path(project_dir), sorted(python)) and whole
    lists = found.lists()
    if not python and typescript:
        lists["typescript_files"] = [str(path) for path in sorted(typescript)]
    return _bounded(lists, whole=whole)


def _files(root: Path) -> Iterator[PurePosixPath | None]:
    """The paths of a project's files, in no order; None instead of all that are too many."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith(".")]
        seen += 1 + len(names)
        if seen > MAX_SEEN:
            yield None
            return
        yield from (PurePosixPath(Path(folder, name).relative_to(root).as_posix()) for name in names)


def is_test(path: PurePosixPath) -> bool:
    """Whether pytest would take the file for tests or for what they need."""
    by_name = path.name == "conftest.py" or path.name.startswith("test_") or path.stem.endswith("_test")
    return by_name or not TEST_FOLDERS.isdisjoint(path.parts[:-1])


@dataclass
class _Found:
    """What has been read so far."""

    definitions: list[tuple[str, Definition]] = field(default_factory=list)
    unparsable: list[Entry] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    size: int = 0

    def read(self, root: Path, paths: list[PurePosixPath]) -> bool:
        """Take the files; False when they are too many to be read."""
        for path in paths:
            if is_test(path):
                self.tests.append(str(path))
            elif self.size > MAX_BYTES:
                return False
            else:
                self._read(root, path)
        return True

    def _read(self, root: Path, path: PurePosixPath) -> None:
        try:
            source = _source(root / path)
            self.size += len(source)
            self.definitions += [(str(path), each) for each in outline(source)]
        except (OSError, OutlineError) as wrong:
            text = (wrong.strerror if isinstance(wrong, OSError) else None) or str(wrong)
            self.unparsable.append({"file": str(path), "error": text})

    def lists(self) -> dict[str, list[Any]]:
        """By what they are; public names first."""
        inner = [(file, each) for file, each in self.definitions if not each.is_public]
        ordered = [(file, each) for file, each in self.definitions if each.is_public] + inner
        return {
            "functions": [_entry(file, each) for file, each in ordered if each.kind == "function"],
            "classes": self._classes(ordered),
            "missing_docstrings": [
                {**_entry(file, each), "kind": each.kind}
                for file, each in ordered
                if each.is_public and not each.has_docstring
            ],
            "test_files": self.tests,
            "unparsable": self.unparsable,
        }

    def _classes(self, ordered: list[tuple[str, Definition]]) -> list[Entry]:
        methods: dict[tuple[str, str], list[Entry]] = {}
        for file, each in self.definitions:
            if each.kind == "method":
                owner, _, name = each.name.rpartition(".")
                methods.setdefault((file, owner), []).append({"name": name, "line": each.line})
        classes = [(file, each) for file, each in ordered if each.kind == "class"]
        return [{**_entry(file, each), "methods": methods.get((file, each.name), [])} for file, each in classes]


def _source(path: Path) -> bytes:
    """The bytes of a regular file that is not too large. Raises OSError."""
    state = path.lstat()  # a link may lead out of the project, and opening a pipe would wait for ever
    if not stat.S_ISREG(state.st_mode):
        raise OSError("it is no regular file")
    if state.st_size > MAX_FILE_BYTES:
        raise OSError(f"it is larger than {MAX_FILE_BYTES:,} bytes")
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES)


def _entry(file: str, definition: Definition) -> Entry:
    return {"name": definition.name or PurePosixPath(file).stem, "file": file, "line": definition.line}


def _bounded(lists: dict[str, list[Any]], *, whole: bool) -> dict[str, Any]:
    totals = {name: len(entries) for name, entries in lists.items()}
    if whole and max(totals.values()) <= MAX_ENTRIES:
        return dict(lists)
    return {**{name: entries[:MAX_ENTRIES] for name, entries in lists.items()}, "truncated": True, "totals": totals}
