"""The flow that has tests written: how often it asks, what it checks, and what it measures."""

import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker.flows import Model, answer, install
from tests.worker.node_tools import install_node_tools, put

from agentcell_protocol.errors import Category, RequestError, session_error
from agentcell_protocol.request import parse_request
from agentcell_worker import preflight
from agentcell_worker.agents import collecting, coverage, test_generator
from agentcell_worker.agents.base import role_prompt
from agentcell_worker.agents.coverage import Coverage, Gap, line_ranges
from agentcell_worker.agents.frameworks import NEW_FILES, detect_test_framework, only_tests
from agentcell_worker.agents.improvement import improvement_message
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.agents.test_generator import run_test_generator_session
from agentcell_worker.agents.validation import validate_generated_tests
from agentcell_worker.agents.vitest import types_of
from agentcell_worker.report import Report

pytestmark = pytest.mark.anyio

SECONDS = 120
"""For what takes some seconds on an idle machine."""

ANALYSIS = {"functions": [{"name": "add", "file": "shop.py", "line": 1}]}

SHOP = """\
def add(a, b):
    return a + b


def take(a, b):
    if a < b:
        raise ValueError("too little")
    return a - b
"""

ADDS = "from shop import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n"
TAKES = "from shop import take\n\n\ndef test_takes():\n    assert take(3, 2) == 1\n"

FIRST, SECOND = "tests/test_add.py", "tests/test_take.py"

VALID: dict[str, Any] = {"valid": True, "issues": [], "warnings": []}


@pytest.fixture(autouse=True)
def _no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The children's pytest comes up faster without those that are installed for these tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project"
    put(folder, "shop.py", SHOP)
    return folder


def writing(patch: pytest.MonkeyPatch, project: Path, *sessions: dict[str, str], answers: Any = None) -> Model:
    """A model that writes these files, a set in each session."""

    def works(number: int) -> None:
        for name, content in sessions[number - 1].items() if number <= len(sessions) else ():
            put(project, name, content)

    return install(patch, Model(answers=answers or [answer()], works=works))


async def generate(project: Path, **named: Any) -> dict[str, Any]:
    arguments = {"analysis_results": ANALYSIS, "generate_fixtures_first": False, **named}
    with anyio.fail_after(SECONDS):
        return await run_test_generator_session(project, None, **arguments)


def names_in(project: Path) -> list[str]:
    return sorted(path.name for path in project.rglob("*"))


def shown(product: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(product[name] for name in names)


def role(project: Path) -> str:
    fields = {"project_dir": project, "spec_dir": "none", "framework": "pytest", "test_files": NEW_FILES["pytest"]}
    return role_prompt("test_generator", fields)


EMPTY: dict[str, Any] = {
    "generated_files": [],
    "framework": "",
    "coverage_analyzed": False,
    "coverage_percent": None,
    "coverage_percent_before": None,
    "coverage_gaps": 0,
    "gaps": [],
    "improved": False,
    "fixture_files": [],
    "validation": {"valid": False, "issues": [], "warnings": []},
}


async def test_coverage_above_the_threshold_needs_one_session(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = writing(monkeypatch, project, {FIRST: ADDS})
    product = await generate(project, minimum_coverage=50)
    assert product == {
        "generated_files": [FIRST],
        "success": True,
        "error": None,
        "framework": "pytest",
        "coverage_analyzed": True,
        "coverage_percent": 50.0,
        "coverage_percent_before": None,
        "coverage_gaps": 1,
        "gaps": [{"file": "shop.py", "lines": [[6, 8]], "percent": 50.0}],
        "improved": False,
        "fixture_files": [],
        "validation": VALID,
    }
    assert (len(model.asked), len(model.opened), model.clients[0].entered) == (1, 1, 1)
    assert names_in(project) == ["shop.py", "test_add.py", "tests"]


@pytest.mark.slow
async def test_coverage_below_the_threshold_is_improved_on_the_same_client(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = writing(monkeypatch, project, {FIRST: ADDS}, {SECOND: TAKES})
    product = await generate(project)
    assert product == {
        "generated_files": [FIRST, SECOND],
        "success": True,
        "error": None,
        "framework": "pytest",
        "coverage_analyzed": True,
        "coverage_percent": 83.33,
        "coverage_percent_before": 50.0,
        "coverage_gaps": 1,
        "gaps": [{"file": "shop.py", "lines": [[7, 7]], "percent": 83.33}],
        "improved": True,
        "fixture_files": [],
        "validation": VALID,
    }
    (client,) = model.clients
    assert (client.entered, client.left) == (2, 2)
    assert [asked["client"] for asked in model.asked] == [client, client]
    first, second = model.messages
    assert first.startswith(role(project) + "\n\n")
    assert '"name":"add"' in first
    assert second.startswith(role(project) + "\n\n")
    assert "- shop.py: 6-8 (50 % covered)\n" in second
    assert "only add tests, change or remove no existing test" in second


@pytest.mark.slow
@pytest.mark.parametrize(
    "failure", [answer("error", "the API failed"), OSError("no disk")], ids=["a session", "an exception"]
)
async def test_an_error_in_the_improvement_is_a_warning(
    project: Path, monkeypatch: pytest.MonkeyPatch, failure: Any
) -> None:
    model = writing(monkeypatch, project, {FIRST: ADDS}, answers=[answer(), failure])
    sessions = Sessions()
    product = await generate(project, sessions=sessions)
    found = shown(product, "success", "error", "improved", "coverage_percent", "coverage_percent_before")
    assert found == (True, None, False, 50.0, 50.0)
    said = [(notice.code, notice.message) for notice in sessions.total().trace.warnings]
    reason = failure[1] if isinstance(failure, tuple) else str(failure)
    assert said == [("improvement_failed", f"the session that was to close the gaps failed: {reason}")]
    assert (len(model.asked), sessions.error, model.is_left()) == (2, None, True)


@pytest.mark.slow
async def test_an_improvement_that_breaks_a_file_fails_the_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(monkeypatch, project, {FIRST: ADDS}, {FIRST: "def test_adds(:\n"})
    product = await generate(project)
    assert product == {
        **EMPTY,
        "success": False,
        "error": "Test validation failed",
        "framework": "pytest",
        "generated_files": [FIRST],
        "coverage_percent_before": 50.0,
        "validation": {
            "valid": False,
            "issues": [f"{FIRST}: has a syntax error in line 1: invalid syntax"],
            "warnings": [],
        },
    }


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ({}, "tests/ directory not found"),
        ({"tests/conftest.py": ""}, "No test files generated"),
        ({"test_root.py": ADDS, "tests/helper.py": "x = 1\n"}, "No test files generated"),
        ({"sub/tests/test_a.py": ADDS}, "tests/ directory not found"),
    ],
)
async def test_a_run_without_tests_fails(
    project: Path, monkeypatch: pytest.MonkeyPatch, written: dict[str, str], error: str
) -> None:
    writing(monkeypatch, project, written)
    assert await generate(project) == {**EMPTY, "success": False, "error": error, "framework": "pytest"}


async def test_tests_that_were_there_are_not_generated(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, FIRST, ADDS)
    writing(monkeypatch, project)
    product = await generate(project)
    assert shown(product, "error", "generated_files") == ("No test files generated", [])


async def test_files_that_do_not_collect_are_named_with_what_is_known(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = writing(monkeypatch, project, {FIRST: ADDS, SECOND: "import nothing_of_that_name\n"})
    result, events = await serve(project, {"analysis_results": ANALYSIS, "generate_fixtures_first": False})
    issue = f"{SECOND}: is not collected: ModuleNotFoundError: No module named 'nothing_of_that_name'"
    assert result.flow == {
        **EMPTY,
        "success": False,
        "error": "Test validation failed",
        "framework": "pytest",
        "generated_files": [FIRST, SECOND],
        "validation": {"valid": False, "issues": [issue], "warnings": []},
        "session_ids": ["s-1"],
    }
    assert result.error is not None
    assert (result.error.category, len(model.asked)) == (Category.DELIVERABLE, 1)
    assert [(e["name"], e["state"]) for e in events if e["type"] == "check"] == [
        ("validate", "started"),
        ("validate", "ended"),
    ]


async def serve(project: Path, context: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """The flow as a worker runs it: the result, and the events."""
    asked = {"session_name": "s", "agent_type": "test_generator", "project_dir": str(project), "context": context}
    events: list[dict[str, Any]] = []
    job = Job(agent_named("test_generator"), Report(parse_request(asked)), events.append, 1.0)
    with anyio.fail_after(SECONDS):
        return await test_generator.run(job), events


async def test_fixtures_come_first_and_are_no_tests(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixtures = {"tests/conftest.py": "import pytest\n", "tests/test_odd.py": ADDS}
    model = writing(monkeypatch, project, fixtures, {FIRST: ADDS})
    product = await generate(project, generate_fixtures_first=True, minimum_coverage=0)
    assert shown(product, "success", "fixture_files", "generated_files") == (True, sorted(fixtures), [FIRST])
    assert [arguments["agent_type"] for _, arguments in model.opened] == ["test_generator", "fixture_generator"]
    assert [asked["client"] for asked in model.asked] == model.clients[::-1]


async def test_fixtures_that_fail_are_a_warning(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = session_error(Category.RATE_LIMIT, "too many requests")
    failed = answer("error", "too many requests", error=error)
    writing(monkeypatch, project, {}, {FIRST: ADDS}, answers=[failed, answer()])
    result, _ = await serve(project, {"analysis_results": ANALYSIS, "minimum_coverage": 0})
    assert (result.status, result.error, result.flow["fixture_files"]) == ("complete", None, [])
    assert [(notice.code, notice.message) for notice in result.warnings] == [
        ("fixtures_failed", "there are no new fixtures: too many requests")
    ]


async def test_failing_tests_are_a_warning(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(monkeypatch, project, {FIRST: ADDS + "    assert add(1, 1) == 3\n"})
    product = await generate(project, minimum_coverage=10)
    warning = {"valid": True, "issues": [], "warnings": ["not all tests of the project pass"]}
    assert shown(product, "success", "coverage_percent", "validation") == (True, 50.0, warning)


@pytest.mark.slow
@pytest.mark.parametrize(
    "conftest",
    [
        "import os\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
        "import time\ntime.sleep(600)\n",
        "raise RuntimeError('no')\n",
        "import os\nos.unlink(__file__)\n",
    ],
    ids=["leaves", "exits", "hangs", "raises", "vanishes"],
)
async def test_what_keeps_pytest_from_its_end_makes_the_tests_invalid(
    project: Path, monkeypatch: pytest.MonkeyPatch, conftest: str
) -> None:
    monkeypatch.setattr(collecting, "COLLECT_SECONDS", 5.0 if "sleep" in conftest else SECONDS)
    put(project, FIRST, ADDS)
    put(project, "tests/conftest.py", conftest)
    with anyio.fail_after(SECONDS):
        found = await validate_generated_tests([FIRST], project)
    assert found["valid"] is False
    assert found["issues"][0].startswith(f"{FIRST}: is not collected")


async def test_a_conftest_that_misbehaves_quietly_is_survived(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = project.parent / "environment.txt"
    lines = [
        "import os, pathlib, time",
        f"pathlib.Path({str(seen)!r}).write_text(repr(dict(os.environ)))",
        "print('flood ' * 100_000)",
        "if os.fork() == 0:",
        "    os.setsid()",
        "    time.sleep(600)",
    ]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("SOME_TOKEN", "some-secret")
    put(project, FIRST, ADDS)
    put(project, "tests/conftest.py", "\n".join(lines))
    with anyio.fail_after(SECONDS):
        assert await validate_generated_tests([FIRST], project) == VALID
    environment = seen.read_text()
    assert "secret" not in environment
    assert "PYTHONDONTWRITEBYTECODE" in environment


async def test_tests_that_end_their_process_are_not_measured(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = writing(monkeypatch, project, {FIRST: "import os\n\n\ndef test_ends():\n    os._exit(0)\n"})
    product = await generate(project)
    assert shown(product, "success", "coverage_analyzed", "coverage_percent") == (True, False, None)
    assert product["validation"]["warnings"][0].startswith("coverage was not measured: the tests came to no end")
    assert len(model.asked) == 1


@pytest.mark.slow
async def test_tests_that_take_too_long_are_not_measured(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "MEASURE_SECONDS", 3.0)
    writing(monkeypatch, project, {FIRST: "import time\n\n\ndef test_lasts():\n    time.sleep(600)\n"})
    product = await generate(project)
    assert shown(product, "success", "coverage_analyzed") == (True, False)
    (warning,) = product["validation"]["warnings"]
    assert "its time was up" in warning


@pytest.mark.slow
async def test_the_projects_own_settings_of_coverage_count(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, ".coveragerc", "[run]\nsource = .\nomit = tests/*\nbranch = true\n[report]\nfail_under = 40\n")
    model = writing(monkeypatch, project, {FIRST: ADDS})
    product = await generate(project)
    found = shown(product, "coverage_percent", "gaps")
    assert found == (37.5, [{"file": "shop.py", "lines": [[6, 8]], "percent": 37.5}])
    assert "37.5 % of the code; 40 % are asked for" in model.messages[1]


async def test_a_test_that_was_broken_before_hides_no_coverage(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, "tests/test_a_broken_one.py", "import nothing_of_that_name\n")
    writing(monkeypatch, project, {FIRST: ADDS})
    product = await generate(project, minimum_coverage=10)
    found = shown(product, "success", "generated_files", "coverage_percent")
    assert found == (True, [FIRST], 50.0)
    assert product["validation"]["warnings"] == ["not all tests of the project pass"]


@pytest.mark.slow
async def test_what_a_project_has_set_up_for_pytest_is_no_hindrance(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, "pytest.ini", "[pytest]\naddopts = -p xdist.plugin -n 2 -x --lf --strict-markers --strict-config\n")
    put(project, "tests/test_a_failing_one.py", "def test_fails():\n    assert False\n")
    writing(monkeypatch, project, {FIRST: ADDS})
    product = await generate(project, minimum_coverage=10)
    assert shown(product, "success", "coverage_percent") == (True, 50.0)
    assert names_in(project) == ["pytest.ini", "shop.py", "test_a_failing_one.py", "test_add.py", "tests"]


async def test_a_projects_own_module_named_coverage_is_no_hindrance(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, "coverage/__init__.py", "PERCENT = 1\n")
    writing(monkeypatch, project, {FIRST: ADDS})
    product = await generate(project, minimum_coverage=0)
    assert shown(product, "success", "coverage_analyzed") == (True, True)


@pytest.mark.slow
async def test_a_file_below_half_of_the_threshold_is_improved(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(
        project,
        "lone.py",
        "def one():\n    return 1\n\n\ndef two():\n    return one() + one()\n\n\ndef three():\n    pass\n",
    )
    put(project, "src/wide.py", "\n".join(f"x{number} = {number}" for number in range(100)))
    wide = "import sys\n\nsys.path.append('src')\nimport wide\n\n\ndef test_wide():\n    assert wide.x1 == 1\n"
    model = writing(monkeypatch, project, {FIRST: ADDS, "tests/test_wide.py": wide})
    product = await generate(project)
    assert shown(product, "coverage_percent", "improved") == (91.96, False)
    assert "- lone.py: 1-10 (0 % covered)\n" in model.messages[1]


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({"minimum_coverage": 101}, "context.minimum_coverage: 101 is no percentage; give a number from 0 to 100"),
        ({"python": "./none"}, "context.python: there is no program './none'; give the path of"),
        ({"python": shutil.which("false")}, "context.python: {} does not run (exit code 1)"),
    ],
)
async def test_parameters_that_cannot_be_meant_fail_before_a_session(
    project: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, Any], text: str
) -> None:
    model = writing(monkeypatch, project)
    product = await generate(project, **named)
    assert product["error"].startswith(text.format(named.get("python")))
    assert {**product, "error": None} == {**EMPTY, "success": False, "error": None}
    assert model.opened == []


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        ({"minimum_coverage": -1}, "-1 is no percentage"),
        ({"minimum_coverage": True}, "a boolean is not allowed here"),
        ({"python": "/nowhere/python"}, "there is no program '/nowhere/python'"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(project: Path, context: dict[str, Any], reason: str) -> None:
    asked = {"session_name": "s", "agent_type": "test_generator", "project_dir": str(project), "context": context}
    with pytest.raises(RequestError) as refused:
        preflight.check_request(parse_request(asked), agent_named("test_generator"))
    assert (refused.value.member, refused.value.reason) == (f"context.{next(iter(context))}", reason)


def interpreter_without(project: Path, *tools: str) -> str:
    """An interpreter of the project's own that says it lacks these."""
    path = project / ".venv" / "bin" / "python"
    path.parent.mkdir(parents=True)
    blocked = "; ".join(f"sys.modules[{tool!r}] = None" for tool in tools)
    site = project.parent / "site"
    put(site, "sitecustomize.py", f"import sys\n{blocked}\n")
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec {sys.executable} "$@"\n')
    path.chmod(stat.S_IRWXU)
    return str(path)


async def test_without_pytest_only_the_syntax_is_checked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = interpreter_without(project, "pytest")
    writing(monkeypatch, project, {FIRST: "import nothing_of_that_name\n"})
    sessions = Sessions()
    product = await generate(project, sessions=sessions)
    text = f"pytest is not installed for {python}: only the syntax was checked"
    assert shown(product, "success", "coverage_analyzed", "validation") == (True, False, {**VALID, "warnings": [text]})
    assert [(notice.code, notice.message) for notice in sessions.total().trace.warnings] == [("tool_missing", text)]


async def test_without_coverage_nothing_is_measured(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = interpreter_without(project, "coverage")
    writing(monkeypatch, project, {FIRST: ADDS})
    product = await generate(project)
    text = f"coverage is not installed for {python}: it was not measured"
    assert shown(product, "success", "coverage_analyzed", "validation") == (True, False, {**VALID, "warnings": [text]})


async def test_an_interpreter_that_does_not_run_leaves_the_syntax_to_this_one(project: Path) -> None:
    python = interpreter_without(project)
    put(project, ".venv/bin/python", "#!/bin/sh\nexit 3\n")
    put(project, FIRST, ADDS)
    put(project, SECOND, "def (\n")
    found = await validate_generated_tests([FIRST], project)
    text = f"{python} does not run (exit code 3): only the syntax was checked"
    assert found == {**VALID, "warnings": [text]}
    assert (await validate_generated_tests([SECOND], project))["issues"] == [
        f"{SECOND}: has a syntax error in line 1: invalid syntax"
    ]


async def test_no_files_are_not_valid(project: Path) -> None:
    assert await validate_generated_tests([], project) == {
        "valid": False,
        "issues": ["no test files were generated"],
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("content", "issue"),
    [
        (None, "there is no such file"),
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("x = 1\0\n", "has a syntax error"),
        (b"x = '\xff'\n", "has a syntax error"),
        ("(" * 10_000, "has a syntax error in line 1: too many nested parentheses"),
        ("x = " + "-" * 100_000 + "1\n", ""),
        ("x = 1\n", "has no tests"),
        ("import pytest\n\npytest.skip('no', allow_module_level=True)\n", "has no tests"),
    ],
    ids=["missing", "empty", "blank", "null", "bytes", "nested", "deep", "no tests", "skipped"],
)
async def test_a_file_that_cannot_be_used_is_named(project: Path, content: str | bytes | None, issue: str) -> None:
    put(project, FIRST, ADDS)
    if content is not None:
        put(project, SECOND, content)
    with anyio.fail_after(SECONDS):
        found = await validate_generated_tests([FIRST, Path(SECOND)], project)
    assert (found["valid"], len(found["issues"])) == (False, 1)
    assert found["issues"][0].startswith(f"{SECOND}: {issue}")


async def test_three_good_files_are_valid(project: Path) -> None:
    files = {FIRST: ADDS, SECOND: TAKES, "tests/deep/down_test.py": "def test_it():\n    assert True\n"}
    for name, content in files.items():
        put(project, name, content)
    with anyio.fail_after(SECONDS):
        assert await validate_generated_tests(files, project) == VALID


async def test_files_that_collect_alone_but_not_together_are_named(project: Path) -> None:
    same = ["tests/a/test_same.py", "tests/b/test_same.py"]
    for name in same:
        put(project, name, "def test_it():\n    assert True\n")
    with anyio.fail_after(SECONDS):
        found = await validate_generated_tests(same, project)
    assert found["valid"] is False
    assert found["issues"][0].startswith("tests/b/test_same.py: is not collected: ")


@pytest.mark.parametrize(
    ("analysis", "framework"),
    [
        ({}, "pytest"),
        ({"components": [], "hooks": []}, "pytest"),
        ({"components": ["Button"]}, "vitest"),
        ({"hooks": [{"name": "useCart"}]}, "vitest"),
        ({"functions": [{"name": "f", "file": "a.py"}], "notes": "nothing in TypeScript"}, "pytest"),
        ({"functions": [{"name": "f", "file": "src/a.ts"}]}, "vitest"),
        ({"files": {"src/Cart.TSX": 1}}, "vitest"),
        ({"files": (("a.py", ("b.tsx",)),)}, "vitest"),
    ],
)
def test_the_framework_follows_from_the_analysis(analysis: dict[str, Any], framework: str) -> None:
    assert detect_test_framework(analysis) == framework


def test_the_only_tests_the_files_are_told_by_their_names() -> None:
    files = ["a_test.py", "src/a.test.ts", "tests/a.py", "tests/a.test.tsx", "tests/b/c_test.py", "tests/test_a.py"]
    assert only_tests(files, "pytest") == ["tests/b/c_test.py", "tests/test_a.py"]
    assert only_tests(files, "vitest") == ["src/a.test.ts", "tests/a.test.tsx"]


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


def test_the_worst_of_many_gaps_are_listed() -> None:
    gaps = tuple(Gap(f"f{number:03}.py", ((1, 2), (4, 4)), 90.0 - number % 90) for number in range(250))
    message = improvement_message(Coverage(12.5, 0, gaps), 80.0)
    lines = [line for line in message.splitlines() if line.startswith("- ")]
    assert lines[0] == "- f089.py: 1-2, 4 (1 % covered)"
    assert (len(lines), lines[-1]) == (201, "- and 50 more files with smaller gaps")


COMPONENTS = {"components": [{"name": "Cart", "file": "src/Cart.tsx"}]}
IT = 'import { it } from "vitest"\nit("works", () => {})\n'


async def test_vitest_is_the_base_of_a_project_with_components(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_node_tools(project, tsc="exit 0")
    model = writing(monkeypatch, project, {"src/Cart.test.tsx": IT, "tests/test_a.py": ADDS})
    product = await generate(project, analysis_results=COMPONENTS, generate_fixtures_first=True)
    assert product == {
        **EMPTY,
        "generated_files": ["src/Cart.test.tsx"],
        "success": True,
        "error": None,
        "framework": "vitest",
        "validation": VALID,
    }
    assert len(model.asked) == 1
    assert "- The framework: vitest." in model.messages[0]


@pytest.mark.parametrize(
    ("written", "issue"),
    [
        ({"a.test.ts": IT, "b.test.ts": "broken"}, "b.test.ts: is not collected (exit code 1: no)"),
        ({"a.test.ts": IT, "b.test.ts": "const x = 1"}, "b.test.ts: has no tests"),
        ({"b.test.ts": ""}, "b.test.ts: is empty"),
        ({"b.test.ts": b"\xff"}, "b.test.ts: is not UTF-8"),
    ],
)
async def test_what_vitest_does_not_collect_is_named(project: Path, written: dict[str, Any], issue: str) -> None:
    install_node_tools(project, tsc="exit 0")
    for name, content in written.items():
        put(project, name, content)
    found = await validate_generated_tests(list(written), project, "vitest")
    assert found == {"valid": False, "issues": [issue], "warnings": []}


@pytest.mark.parametrize(
    ("tsc", "is_valid", "warnings"),
    [
        ("test ! -e b.test.ts", False, []),
        ("exit 2", True, ["the project's types were unsound before: they were not checked"]),
        ("exit 127", True, ["tsc is not installed, or does not run: types were not checked"]),
        (None, True, ["tsc is not installed, or does not run: types were not checked"]),
    ],
)
async def test_types_count_that_were_sound_before(
    project: Path, monkeypatch: pytest.MonkeyPatch, tsc: str | None, is_valid: bool, warnings: list[str]
) -> None:
    install_node_tools(project, tsc=tsc)
    writing(monkeypatch, project, {"b.test.ts": IT})
    product = await generate(project, analysis_results=COMPONENTS)
    issues = [] if is_valid else ["tsconfig.json: the types of the project are not sound (tsc --noEmit)"]
    assert product["validation"] == {"valid": is_valid, "issues": issues, "warnings": warnings}
    assert product["error"] == (None if is_valid else "Test validation failed")


@pytest.mark.parametrize("version", [None, "1.6.0"])
async def test_without_a_vitest_that_lists_only_the_files_are_checked(project: Path, version: str | None) -> None:
    install_node_tools(project, tsc="exit 0", version=version)
    put(project, "a.test.ts", "broken")
    found = await validate_generated_tests(["a.test.ts"], project, "vitest")
    text = "vitest is not installed, or too old to list tests: only existence and encoding were checked"
    assert found == {**VALID, "warnings": [text]}


async def test_without_settings_types_are_not_known(project: Path) -> None:
    install_node_tools(project, tsc="exit 0")
    assert await types_of(project) == "sound"
    (project / "tsconfig.json").unlink()
    assert await types_of(project) == "unknown"
