"""The Python that a project's tests run in, and what it can be asked to do."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, TypeVar

from pydantic import ValidationError

from agentcell_worker.checks.child import Ran, report_in, run_child
from agentcell_worker.checks.reports import Report, Survey

Reported = TypeVar("Reported", bound=Report)

ENVIRONMENTS = (".venv", "venv")
"""Where a project has its own interpreter."""

PROBES = Path(__file__).parent / "probes"

SURVEY_SECONDS = 60.0
"""To start an interpreter and compile some files; a second is usual."""


@dataclass(frozen=True)
class Probed(Generic[Reported]):
    """How a probe ended, and its report, if it came to one."""

    ran: Ran
    report: Reported | None


def interpreter_problem(asked: str, project_dir: str | Path) -> str | None:
    """Why that cannot be the interpreter; None when it can."""
    return None if _program(asked, project_dir) else f"there is no program {asked!r}"


def find_interpreter(asked: str | None, project_dir: str | Path) -> str:
    """The one that was asked for, by path or name; else the project's own, else the one that runs this."""
    if asked is not None:
        return _program(asked, project_dir) or asked
    own = (_program(str(Path(name, "bin", "python")), project_dir) for name in ENVIRONMENTS)
    return next((python for python in own if python), sys.executable)


def _program(name: str, project_dir: str | Path) -> str | None:
    """Links stay as they are: by its own path an interpreter knows its virtual environment."""
    if os.sep not in name:
        return shutil.which(name)
    path = os.path.abspath(Path(project_dir, name))  # noqa: PTH100 - as above
    return path if shutil.which(path) else None


async def probe(
    name: str,
    shape: type[Reported],
    python: str,
    project_dir: str | Path,
    arguments: Sequence[str | Path],
    *,
    seconds: float,
) -> Probed[Reported]:
    """Have an interpreter run one of the probes in the project; what it writes elsewhere is removed."""
    with TemporaryDirectory(prefix="check-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        temporary = scratch / "t"
        temporary.mkdir()
        argv = [python, PROBES / f"{name}.py", scratch, *arguments]
        variables = {"TMPDIR": str(temporary), "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis")}
        ran = await run_child(argv, cwd=project_dir, seconds=seconds, variables=variables)
        return Probed(ran, _of_shape(shape, report_in(scratch / "report.json")))


def _of_shape(shape: type[Reported], report: object) -> Reported | None:
    try:
        return shape.model_validate(report)
    except ValidationError:
        return None


async def tools_of(python: str, project_dir: str | Path) -> frozenset[str] | str:
    """Which of pytest and coverage it has; a text instead that says why it does not run."""
    probed = await probe("survey", Survey, python, project_dir, (), seconds=SURVEY_SECONDS)
    return probed.ran.ending if probed.report is None else probed.report.tools
