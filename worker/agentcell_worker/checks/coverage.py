"""What a project's tests cover, and what they do not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agentcell_worker.checks.child import Ran
from agentcell_worker.checks.frameworks import TESTS, is_test
from agentcell_worker.checks.interpreter import probe
from agentcell_worker.checks.reports import Lines, Measured

MEASURE_SECONDS = 600.0
"""To run all tests of a project once, somewhat slowed down by being measured."""

DEFAULT_PERCENT = 80.0
"""What is asked for where neither the caller nor the project says anything."""

PASSED, FAILED = 0, 1
"""Exit codes of pytest with which the tests have run."""

DIGITS = 2
"""Of a percentage, after the point."""


@dataclass(frozen=True)
class Gap:
    """What of one file no test reaches: ranges of lines, both ends included."""

    file: str
    lines: tuple[tuple[int, int], ...]
    percent: float

    def as_dict(self) -> dict[str, Any]:
        """As a flow reports it."""
        return {"file": self.file, "lines": [list(each) for each in self.lines], "percent": self.percent}


@dataclass(frozen=True)
class Coverage:
    """What the tests cover, in percent, and where the gaps are, although some `failed`.

    `fail_under` is the project's own demand, or 0.
    """

    percent: float
    fail_under: float
    gaps: tuple[Gap, ...]
    failed: int = 0

    def threshold(self, asked: float | None) -> float:
        """The percentage that is asked for: by the caller, else by the project, else the usual one."""
        return asked if asked is not None else self.fail_under or DEFAULT_PERCENT

    def is_short_of(self, threshold: float) -> bool:
        """Whether the whole is below it, or one file below half of it."""
        return self.percent < threshold or any(gap.percent < threshold / 2 for gap in self.gaps)


def percent_problem(value: float) -> str | None:
    """Why that cannot be asked for; None when it can."""
    return None if 0 <= value <= 100 else f"{value:g} is no percentage"  # what is not a number is none either


async def measure(project_dir: str | Path, python: str) -> Coverage | str:
    """Run the project's tests; a text instead that says why their coverage could not be measured."""
    probed = await probe("tests", Measured, python, project_dir, ["measure", TESTS], seconds=MEASURE_SECONDS)
    if probed.report is None:
        return f"the tests came to no end that could be measured ({probed.ran.ending})"
    return _read(probed.report, probed.ran)


def _read(report: Measured, ran: Ran) -> Coverage | str:
    if report.exit_code not in {PASSED, FAILED}:
        return f"pytest ended with exit code {report.exit_code}: {ran.reason}"
    if not report.statements:
        return "there is no code that could be covered"
    files = {PurePosixPath(file).as_posix(): lines for file, lines in report.files.items()}
    gaps = [_gap(file, lines) for file, lines in sorted(files.items()) if lines.missing and not _is_test(file)]
    return Coverage(round(report.percent, DIGITS), report.fail_under, tuple(gaps), report.failed)


def _is_test(file: str) -> bool:
    path = PurePosixPath(file)
    return not path.is_absolute() and is_test(path)


def _gap(file: str, lines: Lines) -> Gap:
    return Gap(file, tuple(line_ranges(lines.missing, lines.executed)), round(lines.percent, DIGITS))


def line_ranges(missing: Sequence[int], executed: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The missing lines as ranges, each as long as no executed line interrupts it."""
    interrupting = set(executed)
    first = last = None
    for line in sorted({*missing, *executed}):
        if line in interrupting:
            if first is not None and last is not None:
                yield first, last
            first = last = None
        else:
            first, last = first if first is not None else line, line
    if first is not None and last is not None:
        yield first, last
