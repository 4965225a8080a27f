"""What pytest makes of a project's tests: `tests.py SCRATCH collect|measure FILE...`, run in the project's directory.

The report: {"exit_code": pytest's, "failed": how many tests and files, "items": {file: how many tests}, "problems":
{file: why it was not collected}}.
Measured ones are run, and the report has in addition "fail_under": percent or 0, "percent": of all, "statements": of
all, "files": {file: {"percent", "executed": [line], "missing": [line]}}. The project's own configuration of coverage
counts; where it names no source, that is the project without its tests.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = {"numprocesses": ("-n", "0"), "no_cov": ("--no-cov",)}
"""Against plugins that a project may have set up: what they start is not seen from here, and two cannot measure."""

ALL = ("--maxfail=0", "--continue-on-collection-errors")
"""What is wrong in one place hides nothing in another."""

MAX_REASON = 500
"""Characters; a reason is a line for people."""

SOURCES = ("src", "lib")
"""Directories that are no packages but hold some: coverage looks for files nobody imported in packages only."""

NOT_SOURCE = ("tests/*", "test/*", "docs/*", "test_*.py", "conftest.py", "setup.py", "noxfile.py")
"""What no test is expected to cover."""


class Listener:
    """Hears from pytest what became of each file."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.problems: dict[str, str] = {}
        self.failed = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: Any, args: list[str]) -> None:
        """Keep pytest to one process that nobody else measures."""
        for name, options in OPTIONS.items():
            if hasattr(early_config.known_args_namespace, name):
                args.extend(options)

    def pytest_itemcollected(self, item: Any) -> None:
        """There is one more test."""
        file = place_of(item)
        self.items[file] = self.items.get(file, 0) + 1

    def pytest_sessionfinish(self, session: Any) -> None:
        """All have run."""
        self.failed = session.testsfailed

    def pytest_exception_interact(self, node: Any, report: Any) -> None:
        """Something could not be collected."""
        if isinstance(node, pytest.Collector):
            lines = [line.strip() for line in str(report.longrepr).splitlines() if line.strip()]
            reason = lines[-1].removeprefix("E ").strip() if lines else "no reason was given"
            self.problems[place_of(node)] = reason[:MAX_REASON]


def place_of(node: Any) -> str:
    """The file that a test or a collector is of."""
    return os.path.realpath(str(getattr(node, "path", None) or node.fspath))


def main(scratch: str, task: str, *files: str) -> None:
    """Do it, and write the report."""
    if task == "measure":
        import coverage  # noqa: F401, PLC0415 - before the project's directory, where something may have its name
    sys.path[0] = str(Path.cwd())
    listener = Listener()
    measured: dict[str, object] = {}
    options = ("-q", *ALL, "-o", f"cache_dir={Path(scratch, 'cache')}")
    if task == "collect":
        exit_code = pytest.main(["--collect-only", *options, *files], plugins=[listener])
    else:
        with measuring(Path(scratch), measured):
            exit_code = pytest.main([*options, *files], plugins=[listener])
    heard = {"failed": listener.failed, "items": listener.items, "problems": listener.problems}
    found = {"exit_code": int(exit_code), **heard, **measured}
    Path(scratch, "report.json").write_text(json.dumps(found), "utf-8")


@contextmanager
def measuring(scratch: Path, measured: dict[str, object]) -> Iterator[None]:
    """What is run within is measured. Raises CoverageException when nothing can be said of it."""
    import coverage  # noqa: PLC0415 - it need not be installed to collect

    data_file = str(scratch / "data")
    running = coverage.Coverage(data_file=data_file)
    set_source(running)
    running.start()
    yield
    running.stop()
    running.save()
    finished = coverage.Coverage(data_file=data_file)
    if any(scratch.glob("data.*")):  # processes that the tests started have files of their own
        finished.combine()
    else:
        finished.load()
    measured.update(findings(finished, scratch / "coverage.json"))


def set_source(running: Any) -> None:
    """Say what to measure when the project does not."""
    if not any(running.get_option(name) for name in ("run:source", "run:source_pkgs", "run:include")):
        running.set_option("run:source", [".", *(name for name in SOURCES if Path(name).is_dir())])
        running.set_option("run:omit", [*(running.get_option("run:omit") or []), *NOT_SOURCE])


def findings(finished: Any, file: Path) -> dict[str, object]:
    """What coverage reports, as far as it is needed. Raises CoverageException when there is no data."""
    finished.json_report(outfile=str(file), ignore_errors=True)
    told = json.loads(file.read_text("utf-8"))
    return {
        "fail_under": finished.get_option("report:fail_under") or 0,
        "percent": told["totals"]["percent_covered"],
        "statements": told["totals"]["num_statements"],
        "files": {path: lines_of(each) for path, each in told["files"].items()},
    }


def lines_of(told: dict[str, Any]) -> dict[str, object]:
    """Of one file. A line from which a branch was never taken is missing, too."""
    branches = {abs(start) for start, _ in told.get("missing_branches", ())}
    missing = sorted(branches.union(told["missing_lines"]))
    executed = [line for line in told["executed_lines"] if line not in branches]
    return {"percent": told["summary"]["percent_covered"], "executed": executed, "missing": missing}


if __name__ == "__main__":
    main(*sys.argv[1:])
