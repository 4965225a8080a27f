"""The flow that has tests written for existing code, checks them, and has gaps in their coverage closed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentcell_protocol.errors import RequestError
from agentcell_protocol.result import SessionResult
from agentcell_worker.agents import fixture_generator
from agentcell_worker.agents.base import Agent, prepare
from agentcell_worker.agents.briefing import analysed, analysis_block
from agentcell_worker.agents.changes import Changes
from agentcell_worker.agents.flow import FlowError, deliver, flow
from agentcell_worker.agents.generated_tests import GeneratedTests
from agentcell_worker.agents.improvement import improvement_message
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.parameters import check_value
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.checks.frameworks import NEW_FILES, Framework, detect_test_framework
from agentcell_worker.checks.interpreter import find_interpreter, tools_of
from agentcell_worker.checks.tests import validate_generated_tests
from agentcell_worker.checks.vitest import Types, types_of

__all__ = ["detect_test_framework", "run_test_generator_session", "validate_generated_tests"]

AGENT_TYPE = "test_generator"


async def run(job: Job) -> SessionResult:
    """Have the tests written that a request asks for."""
    return await deliver(job, run_test_generator_session)


@flow(
    generated_files=[],
    framework="",
    coverage_analyzed=False,
    coverage_percent=None,
    coverage_percent_before=None,
    coverage_gaps=0,
    gaps=[],
    improved=False,
    fixture_files=[],
    validation={"valid": False, "issues": [], "warnings": []},
)
async def run_test_generator_session(  # noqa: PLR0917 - callers may pass them so
    project_dir: str | Path,
    spec_dir: str | Path | None,
    analysis_results: Mapping[str, Any] | None,
    model: str | None = None,
    max_thinking_tokens: int | None = None,
    verbose: bool = False,
    generate_fixtures_first: bool = True,
    *,
    python: str | None = None,
    minimum_coverage: float | None = None,
    sessions: Sessions | None = None,
) -> dict[str, Any]:
    """Have tests written; a second session adds some when the first ones' coverage is too low.

    {generated_files, success, error: text or None, framework: "pytest" or "vitest", coverage_analyzed,
    coverage_percent, coverage_percent_before: before the second session, coverage_gaps: how many, gaps: [{file,
    lines: [[first, last]], percent}], improved, fixture_files, validation: {valid, issues, warnings}}. Files are
    relative to the project. `python` runs pytest: by default the project's own, else this one; `minimum_coverage` is
    in percent: by default what the project's coverage asks for, else 80. Without `analysis_results` the project is
    analysed. Nothing is raised.
    """
    sessions = sessions or Sessions()
    await _check_parameters(project_dir, python, minimum_coverage)
    results = analysed(project_dir, analysis_results, sessions)
    asked = Asked(project_dir, spec_dir, model, max_thinking_tokens, verbose, sessions)
    framework = detect_test_framework(results)
    agent = asked.agent(framework)
    fixtures = await asked.fixtures(results) if generate_fixtures_first and framework == "pytest" else []
    types = await _types_before(framework, project_dir, sessions)
    changes = Changes(project_dir, sessions)
    tests = GeneratedTests(Path(project_dir), framework, changes, sessions, python, fixtures, types)
    await agent.ask(analysis_block(project_dir, results, sessions))
    await tests.look()
    await _improve(tests, agent, minimum_coverage)
    return {**tests.as_dict(), "success": True, "error": None}


@dataclass(frozen=True)
class Asked:
    """What the agents of one run have in common."""

    project_dir: str | Path
    spec_dir: str | Path | None
    model: str | None
    max_thinking_tokens: int | None
    verbose: bool
    sessions: Sessions

    def agent(self, framework: Framework) -> Agent:
        """The one that writes tests. Raises FlowError."""
        return prepare(
            AGENT_TYPE,
            self.project_dir,
            self.spec_dir,
            model=self.model,
            max_thinking_tokens=self.max_thinking_tokens,
            verbose=self.verbose,
            fields={"framework": framework, "test_files": NEW_FILES[framework]},
            sessions=self.sessions,
        )

    async def fixtures(self, results: Mapping[str, Any]) -> list[str]:
        """The files of fixtures that another agent wrote; none when it failed, which is no failure of the tests."""
        generated = await fixture_generator.generate_fixtures(
            self.project_dir,
            self.spec_dir,
            results,
            self.model,
            self.max_thinking_tokens,
            self.verbose,
            sessions=self.sessions,
        )
        if not generated["success"]:
            self.sessions.error = None
            self.sessions.warn("fixtures_failed", f"there are no new fixtures: {generated['error']}")
        return list(generated["generated_files"])


async def _check_parameters(project_dir: str | Path, python: str | None, minimum_coverage: float | None) -> None:
    """Raises FlowError for what cannot be meant: a session would be paid for in vain."""
    given = {"python": python, "minimum_coverage": minimum_coverage}
    try:
        for name, value in given.items():
            if value is not None:
                check_value(name, value, Path(project_dir))
    except RequestError as refused:
        raise FlowError(str(refused), refused.as_session_error()) from None
    if python is not None:
        tools = await tools_of(find_interpreter(python, project_dir), project_dir)
        if isinstance(tools, str):
            raise FlowError(f"context.python: {python} does not run ({tools})")


async def _types_before(framework: Framework, project_dir: str | Path, sessions: Sessions) -> Types:
    if framework == "pytest":
        return "unknown"
    with sessions.check("types"):
        return await types_of(project_dir)


async def _improve(tests: GeneratedTests, agent: Agent, minimum_coverage: float | None) -> None:
    """Measure, and have tests added in a second session where that is too little. Raises FlowError."""
    measured = await tests.measure()
    if measured is None or not measured.is_short_of(threshold := measured.threshold(minimum_coverage)):
        return
    tests.before, tests.coverage = measured, None
    try:
        await agent.ask(improvement_message(measured, threshold))
    except FlowError as failed:
        tests.sessions.warn("improvement_failed", f"the session that was to close the gaps failed: {failed}")
    await tests.look()
    await tests.measure()
