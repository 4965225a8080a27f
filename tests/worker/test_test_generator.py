"""The flow that has tests written: how often it asks, and what comes of what its checks find."""

import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker.flows import Model, answer, install
from tests.worker.node_tools import IT, install_node_tools, put
from tests.worker.shop import ADDS, FIRST, SECOND, SECONDS, TAKES, VALID, interpreter_without, names_in

from agentcell_protocol.errors import Category, RequestError, session_error
from agentcell_protocol.request import parse_request
from agentcell_worker import preflight
from agentcell_worker.agents import generated_tests, test_generator
from agentcell_worker.agents.base import role_prompt
from agentcell_worker.agents.improvement import improvement_message
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.agents.test_generator import run_test_generator_session
from agentcell_worker.checks.coverage import Coverage, Gap
from agentcell_worker.checks.frameworks import NEW_FILES
from agentcell_worker.checks.tests import Checked
from agentcell_worker.report import Report

pytestmark = pytest.mark.anyio

ANALYSIS = {"functions": [{"name": "add", "file": "shop.py", "line": 1}]}

TOOLS = frozenset({"pytest", "coverage"})

HALF = Coverage(50.0, 0, (Gap("shop.py", ((6, 8),), 50.0),))


def writing(patch: pytest.MonkeyPatch, project: Path, *sessions: dict[str, str], answers: Any = None) -> Model:
    """A model that writes these files, a set in each session."""

    def works(number: int) -> None:
        for name, content in sessions[number - 1].items() if number <= len(sessions) else ():
            put(project, name, content)

    return install(patch, Model(answers=answers or [answer()], works=works))


def finding(patch: pytest.MonkeyPatch, *measured: Coverage | str, problems: tuple[dict[str, str], ...] = ()) -> None:
    """Checks that find this in turn, without a pytest of their own."""
    checks, measurements = iter(problems), iter(measured)

    async def check_tests(*_: object, **__: object) -> Checked:
        return Checked(next(checks, {}), (), TOOLS)

    async def measure(*_: object) -> Coverage | str:
        return next(measurements)

    patch.setattr(generated_tests, "check_tests", check_tests)
    patch.setattr(generated_tests, "measure", measure)


async def generate(project: Path, **named: Any) -> dict[str, Any]:
    arguments = {"analysis_results": ANALYSIS, "generate_fixtures_first": False, **named}
    with anyio.fail_after(SECONDS):
        return await run_test_generator_session(project, None, **arguments)


async def serve(project: Path, context: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """The flow as a worker runs it: the result, and the events."""
    asked = {"session_name": "s", "agent_type": "test_generator", "project_dir": str(project), "context": context}
    events: list[dict[str, Any]] = []
    job = Job(agent_named("test_generator"), Report(parse_request(asked)), events.append, 1.0)
    with anyio.fail_after(SECONDS):
        return await test_generator.run(job), events


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


@pytest.mark.parametrize(
    ("measured", "minimum", "told"),
    [
        (Coverage(79.9, 0, ()), None, "79.9 % of the code; 80 % are asked for"),
        (Coverage(37.5, 40.0, ()), None, "37.5 % of the code; 40 % are asked for"),
        (Coverage(40.0, 40.0, ()), 60, "40 % of the code; 60 % are asked for"),
        (Coverage(0.0, 40.0, ()), 0, None),
        (Coverage(92.0, 0, (Gap("a.py", ((1, 2),), 39.9),)), None, "- a.py: 1-2 (39.9 % covered)"),
    ],
)
async def test_too_little_coverage_needs_a_second_session_that_is_told_what_is_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch, measured: Coverage, minimum: float | None, told: str | None
) -> None:
    finding(monkeypatch, measured, measured)
    model = writing(monkeypatch, project, {FIRST: ADDS})
    product = await generate(project, minimum_coverage=minimum)
    assert (product["success"], product["improved"], len(model.asked)) == (True, False, 1 if told is None else 2)
    assert told is None or told in model.messages[1]


@pytest.mark.parametrize(
    "failure", [answer("error", "the API failed"), OSError("no disk")], ids=["a session", "an exception"]
)
async def test_an_error_in_the_improvement_is_a_warning(
    project: Path, monkeypatch: pytest.MonkeyPatch, failure: Any
) -> None:
    finding(monkeypatch, HALF, HALF)
    model = writing(monkeypatch, project, {FIRST: ADDS}, answers=[answer(), failure])
    sessions = Sessions()
    product = await generate(project, sessions=sessions)
    found = shown(product, "success", "error", "improved", "coverage_percent", "coverage_percent_before")
    assert found == (True, None, False, 50.0, 50.0)
    said = [(notice.code, notice.message) for notice in sessions.total().trace.warnings]
    reason = failure[1] if isinstance(failure, tuple) else str(failure)
    assert said == [("improvement_failed", f"the session that was to close the gaps failed: {reason}")]
    assert (len(model.asked), sessions.error, model.is_left()) == (2, None, True)


async def test_an_improvement_that_breaks_a_file_fails_the_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding(monkeypatch, HALF, problems=({}, {FIRST: "is broken"}))
    writing(monkeypatch, project, {FIRST: ADDS})
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
            "issues": [f"{FIRST}: is broken"],
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
    assert (result.error.category, result.error.details) == (Category.DELIVERABLE, {"issues": [issue]})
    assert len(model.asked) == 1
    assert [(e["name"], e["state"]) for e in events if e["type"] == "check"] == [
        ("validate", "started"),
        ("validate", "ended"),
    ]


async def test_fixtures_come_first_and_are_no_tests(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding(monkeypatch, HALF)
    fixtures = {"tests/conftest.py": "import pytest\n", "tests/test_odd.py": ADDS}
    model = writing(monkeypatch, project, fixtures, {FIRST: ADDS})
    product = await generate(project, generate_fixtures_first=True, minimum_coverage=0)
    assert shown(product, "success", "fixture_files", "generated_files") == (True, sorted(fixtures), [FIRST])
    assert [arguments["agent_type"] for _, arguments in model.opened] == ["test_generator", "fixture_generator"]
    assert [asked["client"] for asked in model.asked] == model.clients[::-1]


async def test_fixtures_that_fail_are_a_warning(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding(monkeypatch, HALF)
    error = session_error(Category.RATE_LIMIT, "too many requests")
    failed = answer("error", "too many requests", error=error)
    writing(monkeypatch, project, {}, {FIRST: ADDS}, answers=[failed, answer()])
    result, _ = await serve(project, {"analysis_results": ANALYSIS, "minimum_coverage": 0})
    assert (result.status, result.error, result.flow["fixture_files"]) == ("complete", None, [])
    assert [(notice.code, notice.message) for notice in result.warnings] == [
        ("fixtures_failed", "there are no new fixtures: too many requests")
    ]


@pytest.mark.parametrize(
    ("measured", "percent", "warning"),
    [
        (Coverage(50.0, 0, (), failed=2), 50.0, ("tests_fail", "not all tests of the project pass: 2 failed")),
        ("they hang", None, ("coverage_failed", "coverage was not measured: they hang")),
    ],
)
async def test_what_is_odd_about_the_measurement_is_a_warning(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: Coverage | str,
    percent: float | None,
    warning: tuple[str, str],
) -> None:
    finding(monkeypatch, measured)
    model = writing(monkeypatch, project, {FIRST: ADDS})
    sessions = Sessions()
    product = await generate(project, minimum_coverage=10, sessions=sessions)
    found = shown(product, "success", "coverage_analyzed", "coverage_percent", "validation")
    assert found == (True, percent is not None, percent, {**VALID, "warnings": [warning[1]]})
    assert [(notice.code, notice.message) for notice in sessions.total().trace.warnings] == [warning]
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("pytest", "pytest is not installed for {}: only the syntax was checked"),
        ("coverage", "coverage is not installed for {}: it was not measured"),
    ],
)
async def test_a_tool_that_is_not_installed_is_a_warning(
    project: Path, monkeypatch: pytest.MonkeyPatch, tool: str, text: str
) -> None:
    python = interpreter_without(project, tool)
    writing(monkeypatch, project, {FIRST: ADDS})
    sessions = Sessions()
    product = await generate(project, sessions=sessions)
    warning = text.format(python)
    found = shown(product, "success", "coverage_analyzed", "validation")
    assert found == (True, False, {**VALID, "warnings": [warning]})
    said = [(notice.code, notice.message) for notice in sessions.total().trace.warnings]
    assert said == [("tool_missing", warning)]


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


def test_the_worst_of_many_gaps_are_listed() -> None:
    gaps = tuple(Gap(f"f{number:03}.py", ((1, 2), (4, 4)), 90.0 - number % 90) for number in range(250))
    message = improvement_message(Coverage(12.5, 0, gaps), 80.0)
    lines = [line for line in message.splitlines() if line.startswith("- ")]
    assert lines[0] == "- f089.py: 1-2, 4 (1 % covered)"
    assert (len(lines), lines[-1]) == (201, "- and 50 more files with smaller gaps")


COMPONENTS = {"components": [{"name": "Cart", "file": "src/Cart.tsx"}]}


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
