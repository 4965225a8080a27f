"""What the project's own TypeScript compiler and vitest say of test files, when they are installed."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from agentcell_worker.checks.child import CANNOT_RUN, report_in, run_child
from agentcell_worker.checks.collecting import COLLECT_SECONDS, NO_TESTS, Problems, culprits, real_path

TYPES_SECONDS = 300.0
"""To check the types of a whole project: a large one takes minutes."""

SETTINGS = "tsconfig.json"

LISTS_SINCE = 2
"""The version of vitest that began to list tests; an earlier one would run them."""

QUIET = {"CI": "1", "NO_COLOR": "1"}
"""Variables with which vitest neither watches nor colours."""

Types = Literal["sound", "unsound", "unknown"]


def _tool(project_dir: str | Path, name: str) -> Path | None:
    path = Path(project_dir, "node_modules", ".bin", name).absolute()
    return path if path.is_file() else None


def _has_settings(project_dir: str | Path) -> bool:
    return Path(project_dir, SETTINGS).is_file()


async def types_of(project_dir: str | Path) -> Types:
    """Whether the project's types are sound; unknown without its compiler or settings, or in the time there is."""
    compiler = _tool(project_dir, "tsc") if _has_settings(project_dir) else None
    if compiler is None:
        return "unknown"
    ran = await run_child([compiler, "--noEmit", "-p", SETTINGS], cwd=project_dir, seconds=TYPES_SECONDS)
    if ran.exit_code is None or ran.exit_code >= CANNOT_RUN - 1 or ran.exit_code < 0:
        return "unknown"
    return "sound" if ran.exit_code == 0 else "unsound"


async def vitest_problems(files: Sequence[str], project_dir: str | Path) -> Problems | None:
    """What keeps vitest from listing the tests in the files; None when it is not there, or too old to list them."""
    vitest = _tool(project_dir, "vitest")
    if vitest is None or _version(project_dir) < LISTS_SINCE:
        return None
    return await culprits(partial(_listed, project_dir, vitest), files)


def _version(project_dir: str | Path) -> int:
    package = report_in(Path(project_dir, "node_modules", "vitest", "package.json"))
    version = package.get("version") if isinstance(package, dict) else None
    major = str(version).partition(".")[0]
    return int(major) if major.isascii() and major.isdigit() else 0


async def _listed(project_dir: str | Path, vitest: Path, files: Sequence[str]) -> Problems:
    with TemporaryDirectory(prefix="check-", ignore_cleanup_errors=True) as folder:
        report = Path(folder, "list.json")
        argv = [str(vitest), "list", f"--json={report}", *files]
        ran = await run_child(argv, cwd=project_dir, seconds=COLLECT_SECONDS, variables=QUIET)
        listed = report_in(report)
    if ran.exit_code != 0 or not isinstance(listed, list):
        return dict.fromkeys(files, f"is not collected ({ran.ending})")
    found = {real_path(project_dir, str(each.get("file"))) for each in listed if isinstance(each, dict)}
    return {file: NO_TESTS for file in files if real_path(project_dir, file) not in found}
