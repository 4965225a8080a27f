"""The tests that a flow's sessions wrote: found, checked and measured."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentcell_worker.agents.changes import Changes
from agentcell_worker.agents.flow import FlowError
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.checks.coverage import Coverage, measure
from agentcell_worker.checks.frameworks import TESTS, Framework, only_tests
from agentcell_worker.checks.interpreter import find_interpreter
from agentcell_worker.checks.tests import Checked, check_tests
from agentcell_worker.checks.vitest import Types


@dataclass
class GeneratedTests:
    """What is known of them so far. `before` is the coverage before it was improved, `python` what was asked for."""

    project: Path
    framework: Framework
    changes: Changes
    sessions: Sessions
    python: str | None = None
    fixture_files: list[str] = field(default_factory=list)
    types_before: Types = "sound"
    files: list[str] = field(default_factory=list)
    checked: Checked | None = None
    coverage: Coverage | None = None
    before: Coverage | None = None
    _told: set[tuple[str, str]] = field(default_factory=set)

    async def look(self) -> None:
        """Find what was written, and check it. Raises FlowError when it cannot be used."""
        if self.framework == "pytest" and not (self.project / TESTS).is_dir():
            raise self._unusable(f"{TESTS}/ directory not found")
        written = only_tests(self.changes.files(), self.framework)
        self.files = [file for file in written if file not in self.fixture_files]
        if not self.files:
            raise self._unusable("No test files generated")
        with self.sessions.check("validate"):
            self.checked = await check_tests(
                self.files, self.project, self.framework, python=self.python, types_before=self.types_before
            )
        for warning in self.checked.warnings:
            self._warn("tool_missing", warning)
        if self.checked.problems:
            raise self._unusable("Test validation failed")

    async def measure(self) -> Coverage | None:
        """Measure what all tests of the project cover; None when that cannot be done."""
        self.coverage = None
        tools = self.checked.tools if self.checked else frozenset()
        if self.framework != "pytest" or "pytest" not in tools:
            return None
        python = find_interpreter(self.python, self.project)
        if "coverage" not in tools:
            self._warn("tool_missing", f"coverage is not installed for {python}: it was not measured")
            return None
        with self.sessions.check("coverage"):
            measured = await measure(self.project, python)
        if isinstance(measured, str):
            self._warn("coverage_failed", f"coverage was not measured: {measured}")
            return None
        if measured.failed:
            self._warn("tests_fail", f"not all tests of the project pass: {measured.failed} failed")
        self.coverage = measured
        return measured

    def as_dict(self) -> dict[str, Any]:
        """As a flow reports it."""
        coverage, before = self.coverage, self.before
        gaps = [gap.as_dict() for gap in coverage.gaps] if coverage else []
        validation = self.checked.as_validation() if self.checked else {"valid": False, "issues": []}
        return {
            "generated_files": self.files,
            "framework": self.framework,
            "coverage_analyzed": coverage is not None,
            "coverage_percent": coverage.percent if coverage else None,
            "coverage_percent_before": before.percent if before else None,
            "coverage_gaps": len(gaps),
            "gaps": gaps,
            "improved": coverage is not None and before is not None and coverage.percent > before.percent,
            "fixture_files": self.fixture_files,
            "validation": {**validation, "warnings": [text for _, text in sorted(self._told)]},
        }

    def _unusable(self, text: str) -> FlowError:
        return FlowError(text, **self.as_dict())

    def _warn(self, code: str, message: str) -> None:
        """Once for each."""
        if (code, message) not in self._told:
            self._told.add((code, message))
            self.sessions.warn(code, message)
