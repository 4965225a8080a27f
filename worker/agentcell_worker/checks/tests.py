"""Whether generated tests can be used: each file is there, has something in it, compiles and is collected."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agentcell_worker.checks.collecting import Problems, culprits, pytest_problems
from agentcell_worker.checks.frameworks import Framework
from agentcell_worker.checks.interpreter import SURVEY_SECONDS, find_interpreter, probe, tools_of
from agentcell_worker.checks.reading import UnusableError, read_text
from agentcell_worker.checks.reports import Survey
from agentcell_worker.checks.vitest import SETTINGS, Types, types_of, vitest_problems

NO_FILES = "no test files were generated"


@dataclass(frozen=True)
class Checked:
    """What is wrong with the files, by file, what could not be found out, and with which tools it was."""

    problems: Problems = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()

    def as_validation(self) -> dict[str, Any]:
        """As a flow reports it."""
        issues = [f"{file}: {problem}" if file else problem for file, problem in sorted(self.problems.items())]
        return {"valid": not issues, "issues": issues, "warnings": list(self.warnings)}


async def validate_generated_tests(
    generated_files: Iterable[str | Path],
    project_dir: str | Path,
    framework: Framework = "pytest",
    *,
    python: str | None = None,
) -> dict[str, Any]:
    """{valid, issues: ["FILE: what is wrong"], warnings: [what could not be checked]}.

    The files are relative to the project. `python` runs pytest: by default the project's own, else this one.
    """
    return (
        await check_tests([str(file) for file in generated_files], project_dir, framework, python=python)
    ).as_validation()


async def check_tests(
    files: Sequence[str],
    project_dir: str | Path,
    framework: Framework,
    *,
    python: str | None = None,
    types_before: Types = "sound",
) -> Checked:
    """The same; unsound types are a problem only where they were sound before."""
    if not files:
        return Checked({"": NO_FILES})
    problems = {file: problem for file in files if (problem := _content_problem(Path(project_dir, file), framework))}
    if framework == "vitest":
        return await _check_vitest(files, project_dir, problems, types_before)
    return await _check_pytest(files, project_dir, problems, find_interpreter(python, project_dir))


def _content_problem(path: Path, framework: Framework) -> str | None:
    """What is wrong with a file as such. A Python file may say itself how it is encoded."""
    try:
        read_text(path, errors="strict" if framework == "vitest" else "replace")
    except UnusableError as wrong:
        return str(wrong)
    return None


async def _check_pytest(files: Sequence[str], project_dir: str | Path, problems: Problems, python: str) -> Checked:
    sources = [file for file in files if file not in problems]
    syntax, tools = await _survey(sources, project_dir, python)
    problems = {**problems, **syntax}
    if isinstance(tools, str):
        return Checked(problems, (f"{python} does not run ({tools}): only the syntax was checked",))
    if "pytest" not in tools:
        return Checked(problems, (f"pytest is not installed for {python}: only the syntax was checked",), tools)
    return Checked(problems or await pytest_problems(sources, project_dir, python), (), tools)


async def _survey(files: Sequence[str], project_dir: str | Path, python: str) -> tuple[Problems, frozenset[str] | str]:
    """What is wrong with the syntax of the files, and what the interpreter has, or why it does not run."""
    probed = await probe("survey", Survey, python, project_dir, files, seconds=SURVEY_SECONDS)
    if probed.report is not None:
        return probed.report.problems, probed.report.tools
    tools = await tools_of(python, project_dir)
    compiles = partial(_syntax, project_dir, sys.executable if isinstance(tools, str) else python)
    return await culprits(compiles, files) if files else {}, tools


async def _syntax(project_dir: str | Path, python: str, files: Sequence[str]) -> Problems:
    probed = await probe("survey", Survey, python, project_dir, files, seconds=SURVEY_SECONDS)
    if probed.report is None:  # the compiler itself may crash
        return dict.fromkeys(files, f"cannot be compiled ({probed.ran.ending})")
    return probed.report.problems


async def _check_vitest(
    files: Sequence[str], project_dir: str | Path, problems: Problems, types_before: Types
) -> Checked:
    warnings = []
    if not problems:
        types = await types_of(project_dir)
        if types == "unknown":
            warnings.append("tsc is not installed, or does not run: types were not checked")
        elif types == "unsound" and types_before == "unsound":
            warnings.append("the project's types were unsound before: they were not checked")
        elif types == "unsound":
            problems = {SETTINGS: "the types of the project are not sound (tsc --noEmit)"}
    if not problems:
        found = await vitest_problems(files, project_dir)
        if found is None:
            warnings.append(
                "vitest is not installed, or too old to list tests: only existence and encoding were checked"
            )
        problems = found or {}
    return Checked(problems, tuple(warnings))
