"""What is in a project's Python files, for agents that are not told by their caller."""

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from agentcell_worker.checks.frameworks import TYPESCRIPT, is_test
from agentcell_worker.checks.outline import Definition, OutlineError, outline
from agentcell_worker.checks.tree import stamps

MAX_ENTRIES = 300
"""Of each list: some ten thousand tokens in all, which a model reads before it looks for itself."""

MAX_FILE_BYTES = 512 * 1024
"""Larger files are generated, or data; to parse one takes a hundred times its size in memory."""

MAX_BYTES = 4 * 1024 * 1024
"""In all files together; to parse them takes three seconds, in which nothing else is done."""

Entry = dict[str, Any]


def analyse(project_dir: str | Path) -> dict[str, Any]:
    """What the Python files of a project define, apart from its tests; paths are relative to the project.

    {functions, classes, methods, missing_docstrings: [{name, file, line}], test_files: [path], unparsable: [{file,
    error}]}; a method is named `Class.method`, a module as its file. Public names come first, then the order is that of
    files and lines. In a project without Python files `typescript_files` has the paths of those. When files or
    entries are left out because there are too many, `truncated` is true and `totals` has how many were found.
    """
    root, listed = Path(project_dir), stamps(project_dir)
    paths = [PurePosixPath(path) for path in sorted(listed or ())]
    python = [path for path in paths if path.suffix == ".py"]
    typescript = [str(path) for path in paths if path.suffix in TYPESCRIPT]
    found = _Found()
    for path in python:
        found.take(root, path)
    lists = found.lists()
    if typescript and not python:
        lists["typescript_files"] = typescript
    return _bounded(lists, is_whole=listed is not None and not found.is_full)


@dataclass
class _Found:
    """What has been read so far."""

    definitions: list[tuple[str, Definition]] = field(default_factory=list)
    unparsable: list[Entry] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more is read."""
        return self.size > MAX_BYTES

    def take(self, root: Path, path: PurePosixPath) -> None:
        """One more file; links may lead out of the project and are left out."""
        if (root / path).is_symlink():
            return
        if is_test(path):
            self.tests.append(str(path))
        elif not self.is_full:
            self._read(root, path)

    def _read(self, root: Path, path: PurePosixPath) -> None:
        try:
            source = _source(root / path)
            self.size += len(source)
            self.definitions += [(str(path), each) for each in outline(source)]
        except OutlineError as wrong:
            self.unparsable.append({"file": str(path), "error": str(wrong)})
        except OSError as wrong:
            self.unparsable.append({"file": str(path), "error": wrong.strerror or str(wrong)})

    def lists(self) -> dict[str, list[Any]]:
        """By what they are; public names first."""
        ordered = sorted(self.definitions, key=lambda found: not found[1].is_public)
        undocumented = [(file, each) for file, each in ordered if each.is_public and not each.has_docstring]
        return {
            "functions": [_entry(file, each) for file, each in ordered if each.kind == "function"],
            "classes": [_entry(file, each) for file, each in ordered if each.kind == "class"],
            "methods": [_entry(file, each) for file, each in ordered if each.kind == "method"],
            "missing_docstrings": [_entry(file, each) for file, each in undocumented],
            "test_files": self.tests,
            "unparsable": self.unparsable,
        }


def _source(path: Path) -> bytes:
    """The bytes of a file that is not too large. Raises OSError."""
    with path.open("rb") as file:
        source = file.read(MAX_FILE_BYTES + 1)
    if len(source) > MAX_FILE_BYTES:
        raise OSError(f"it is larger than {MAX_FILE_BYTES:,} bytes")
    return source


def _entry(file: str, definition: Definition) -> Entry:
    return {"name": definition.name or file, "file": file, "line": definition.line}


def _bounded(lists: dict[str, list[Any]], *, is_whole: bool) -> dict[str, Any]:
    totals = {name: len(entries) for name, entries in lists.items()}
    kept = {name: entries[:MAX_ENTRIES] for name, entries in lists.items()}
    return kept if is_whole and kept == lists else {**kept, "truncated": True, "totals": totals}
