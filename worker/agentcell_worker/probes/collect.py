"""Has pytest collect tests without running them: `collect.py SCRATCH ARGUMENT...`, as `python -m pytest ARGUMENT...`.

The report: {"exit_code": pytest's, "items": {file: how many tests}, "problems": {file: why it was not collected}}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


class Collected:
    """Hears from pytest what became of each file."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.problems: dict[str, str] = {}

    def pytest_itemcollected(self, item: Any) -> None:
        """There is one more test."""
        file = place_of(item)
        self.items[file] = self.items.get(file, 0) + 1

    def pytest_exception_interact(self, node: Any, report: Any) -> None:
        """Something could not be collected."""
        lines = [line.strip() for line in str(report.longrepr).splitlines() if line.strip()]
        self.problems[place_of(node)] = lines[-1].removeprefix("E ").strip() if lines else "no reason was given"


def place_of(node: Any) -> str:
    """The file that a test or a collector is of."""
    return os.path.realpath(str(getattr(node, "path", None) or node.fspath))


def main(scratch: str, *arguments: str) -> None:
    """Collect, and write the report."""
    del sys.path[0]
    import pytest  # noqa: PLC0415 - a directory of that name in the project is not meant

    sys.path.insert(0, str(Path.cwd()))
    collected = Collected()
    cache = f"cache_dir={Path(scratch, 'cache')}"
    exit_code = pytest.main(["--collect-only", "-q", "-o", cache, *arguments], plugins=[collected])
    found = {"exit_code": int(exit_code), "items": collected.items, "problems": collected.problems}
    Path(scratch, "report.json").write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
