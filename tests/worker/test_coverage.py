"""What is measured of a project's tests, by a pytest in a child."""

import sys
from pathlib import Path

import anyio
import pytest
from tests.worker.node_tools import put
from tests.worker.shop import ADDS, FIRST, SECONDS, names_in

from agentcell_worker.checks import coverage
from agentcell_worker.checks.coverage import Coverage, Gap, line_ranges

pytestmark = pytest.mark.anyio


async def measured(project: Path) -> Coverage | str:
    with anyio.fail_after(SECONDS):
        return await coverage.measure(project, sys.executable)


async def test_the_projects_own_settings_of_coverage_count(project: Path) -> None:
    put(project, ".coveragerc", "[run]\nsource = .\nomit = tests/*\nbranch = true\n[report]\nfail_under = 40\n")
    put(project, FIRST, ADDS)
    assert await measured(project) == Coverage(37.5, 40.0, (Gap("shop.py", ((6, 8),), 37.5),))


async def test_what_nobody_imports_is_not_covered(project: Path) -> None:
    put(project, "lone.py", "def one():\n    return 1\n\n\ndef two():\n    return one() + one()\n")
    put(project, "src/wide.py", "\n".join(f"x{number} = {number}" for number in range(100)))
    wide = "import sys\n\nsys.path.append('src')\nimport wide\n\n\ndef test_wide():\n    assert wide.x1 == 1\n"
    put(project, "tests/test_wide.py", wide)
    gaps = (Gap("lone.py", ((1, 6),), 0.0), Gap("shop.py", ((1, 8),), 0.0))
    assert await measured(project) == Coverage(90.91, 0.0, gaps)


async def test_what_a_project_has_set_up_for_pytest_is_no_hindrance(project: Path) -> None:
    """Options against it, tests that fail, one that was broken before, and a module named coverage."""
    put(project, "pytest.ini", "[pytest]\naddopts = -p xdist.plugin -n 2 -x --lf --strict-markers --strict-config\n")
    put(project, "tests/test_a_broken_one.py", "import nothing_of_that_name\n")
    put(project, "tests/test_a_failing_one.py", "def test_fails():\n    assert False\n")
    put(project, "coverage/__init__.py", "")
    put(project, FIRST, ADDS)
    before = names_in(project)
    assert await measured(project) == Coverage(50.0, 0.0, (Gap("shop.py", ((6, 8),), 50.0),), failed=2)
    assert names_in(project) == before


async def test_tests_that_end_their_process_are_not_measured(project: Path) -> None:
    put(project, FIRST, "import os\n\n\ndef test_ends():\n    os._exit(0)\n")
    assert await measured(project) == "the tests came to no end that could be measured (exit code 0)"


async def test_tests_that_overwrite_the_report_are_not_measured(project: Path) -> None:
    report = (
        '{"exit_code": 0, "failed": 0, "items": {}, "problems": {}, "statements": 1, "percent": "high", "files": []}'
    )
    write = f"pathlib.Path(sys.argv[1], 'report.json').write_text({report!r})"
    put(
        project,
        FIRST,
        f"import atexit, pathlib, sys\n\natexit.register(lambda: {write})\n\n\ndef test_it():\n    pass\n",
    )
    found = await measured(project)
    assert isinstance(found, str)
    assert found.startswith("the tests came to no end that could be measured (exit code 0")


async def test_tests_that_take_too_long_are_not_measured(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "MEASURE_SECONDS", 1.0)
    put(project, FIRST, "import time\n\n\ndef test_lasts():\n    time.sleep(600)\n")
    found = await measured(project)
    assert isinstance(found, str)
    assert found.startswith("the tests came to no end that could be measured (its time was up")


@pytest.mark.parametrize(
    ("missing", "executed", "ranges"),
    [
        ([], [1, 2], []),
        ([3], [1, 2], [(3, 3)]),
        ([2, 3, 7], [1], [(2, 7)]),
        ([2, 3, 7], [1, 5, 9], [(2, 3), (7, 7)]),
        ([9, 1], [], [(1, 9)]),
    ],
)
def test_missing_lines_become_ranges(missing: list[int], executed: list[int], ranges: list[tuple[int, int]]) -> None:
    assert list(line_ranges(missing, executed)) == ranges


@pytest.mark.parametrize(
    ("asked", "fail_under", "threshold"), [(None, 0, 80), (None, 90, 90), (70, 90, 70), (0, 90, 0), (70, 0, 70)]
)
def test_the_caller_then_the_project_says_how_much_is_asked_for(
    asked: float | None, fail_under: float, threshold: float
) -> None:
    assert Coverage(50, fail_under, ()).threshold(asked) == threshold


@pytest.mark.parametrize(
    ("percent", "worst", "is_short"), [(80, 40, False), (79.99, 100, True), (90, 39.99, True), (100, 100, False)]
)
def test_the_whole_and_half_of_it_in_each_file_are_asked_for(percent: float, worst: float, is_short: bool) -> None:
    gaps = (Gap("a.py", ((1, 1),), 90), Gap("b.py", ((1, 1),), worst))
    assert Coverage(percent, 0, gaps).is_short_of(80) == is_short
