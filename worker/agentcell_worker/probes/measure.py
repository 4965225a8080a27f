"""Runs tests and measures what they cover: `measure.py SCRATCH ARGUMENT...`, as `python -m pytest ARGUMENT...`.

The report: {"exit_code": pytest's, "fail_under": percent or 0, "percent": of all, "statements": of all,
"files": {file: {"percent", "executed": [line], "missing": [line]}}}. The project's own configuration of coverage
counts; where it names no source, that is the project without its tests.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SOURCES = ("src", "lib")
"""Directories that are no packages but hold some: coverage looks for files nobody imported in packages only."""

NOT_SOURCE = ("tests/*", "test/*", "docs/*", "test_*.py", "conftest.py", "setup.py", "noxfile.py")
"""What no test is expected to cover."""


def main(scratch: str, *arguments: str) -> None:
    """Measure, and write the report."""
    del sys.path[0]
    import coverage  # noqa: PLC0415 - directories of these names in the project are not meant
    import pytest  # noqa: PLC0415

    sys.path.insert(0, str(Path.cwd()))
    data_file = str(Path(scratch, "data"))
    measuring = coverage.Coverage(data_file=data_file)
    with_source(measuring)
    measuring.start()
    exit_code = int(pytest.main(["-q", "-o", f"cache_dir={Path(scratch, 'cache')}", *arguments]))
    measuring.stop()
    measuring.save()
    measured = coverage.Coverage(data_file=data_file)
    if any(Path(scratch).glob("data.*")):  # processes that the tests started have files of their own
        measured.combine()
    else:
        measured.load()
    found = {"exit_code": exit_code, **findings(measured, Path(scratch, "coverage.json"))}
    Path(scratch, "report.json").write_text(json.dumps(found), "utf-8")


def with_source(measuring: Any) -> None:
    """Say what to measure when the project does not."""
    if not any(measuring.get_option(name) for name in ("run:source", "run:source_pkgs", "run:include")):
        measuring.set_option("run:source", [".", *(name for name in SOURCES if Path(name).is_dir())])
        measuring.set_option("run:omit", [*(measuring.get_option("run:omit") or []), *NOT_SOURCE])


def findings(measured: Any, file: Path) -> dict[str, object]:
    """What coverage reports, as far as it is needed. Raises CoverageException when there is no data."""
    measured.json_report(outfile=str(file), ignore_errors=True)
    told = json.loads(file.read_text("utf-8"))
    return {
        "fail_under": measured.get_option("report:fail_under") or 0,
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
