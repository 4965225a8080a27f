"""Which framework a project's tests are written for, and which files are its tests."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, Literal

Framework = Literal["pytest", "vitest"]

TESTS = "tests"
"""The directory of a project's tests."""

TEST_FOLDERS = frozenset({"test", "tests"})
TYPESCRIPT = (".ts", ".tsx")

PATTERNS: Mapping[Framework, tuple[str, ...]] = {
    "pytest": ("test_*.py", "*_test.py"),
    "vitest": ("*.test.ts", "*.test.tsx"),
}
"""What the names of test files look like."""

NEW_FILES: Mapping[Framework, str] = {"pytest": "tests/**/test_*.py", "vitest": "tests/**/*.test.{ts,tsx}"}
"""What new ones are to match."""


def detect_test_framework(analysis: Mapping[str, Any]) -> Framework:
    """vitest for what has `components` or `hooks`, or names a TypeScript file anywhere, else pytest."""
    if analysis.get("components") or analysis.get("hooks"):
        return "vitest"
    return "vitest" if any(text.lower().endswith(TYPESCRIPT) for text in _texts(analysis)) else "pytest"


def _texts(content: object) -> Iterable[str]:
    """Every text in it, keys included, however deep it is nested."""
    waiting = [content]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case Mapping() as members:
                waiting += [*members.keys(), *members.values()]
            case list() | tuple() as items:
                waiting += items
            case _:
                pass


def is_test(path: PurePosixPath) -> bool:
    """Whether pytest would take the file for tests or for what they need."""
    by_name = path.name == "conftest.py" or path.name.startswith("test_") or path.stem.endswith("_test")
    return by_name or not TEST_FOLDERS.isdisjoint(path.parts[:-1])


def only_tests(files: Iterable[str], framework: Framework) -> list[str]:
    """Those that are tests; for pytest only what lies in the project's directory of tests."""
    return [file for file in files if _is_new_test(PurePosixPath(file), framework)]


def _is_new_test(path: PurePosixPath, framework: Framework) -> bool:
    is_in_place = framework == "vitest" or path.parts[0] == TESTS
    return is_in_place and any(fnmatchcase(path.name, pattern) for pattern in PATTERNS[framework])
