"""What keeps test files from being collected: all are tried together, and when that fails all, each alone."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio

from agentcell_worker.checks.interpreter import probe
from agentcell_worker.checks.reports import Collected

COLLECT_SECONDS = 120.0
"""For one try: the code under test is imported, which takes a few seconds."""

CULPRIT_SECONDS = 300.0
"""For all tries with one file each; what was not reached by then is not blamed."""

COLLECTED, NOTHING_COLLECTED = 0, 5
"""Exit codes of pytest."""

NO_TESTS = "has no tests"

Problems = dict[str, str]
"""What is wrong, by file."""

Collect = Callable[[Sequence[str]], Awaitable[Problems]]


async def culprits(collect: Collect, files: Sequence[str]) -> Problems:
    """The files that cannot be collected; when none can together, those that cannot alone, if there are any."""
    together = await collect(files)
    if len(together) < len(files) or len(files) == 1:
        return together
    alone: Problems = {}
    deadline = anyio.current_time() + CULPRIT_SECONDS
    for file in files:
        if anyio.current_time() < deadline:
            alone |= await collect([file])
    return alone or together


def real_path(project_dir: str | Path, file: str) -> str:
    """The one path that a tool may name the file by, whatever links lead to it."""
    return str(Path(project_dir, file).resolve())


async def pytest_problems(files: Sequence[str], project_dir: str | Path, python: str) -> Problems:
    """What keeps pytest from collecting the files, which are relative to the project."""
    return await culprits(partial(_with_pytest, project_dir, python), files)


async def _with_pytest(project_dir: str | Path, python: str, files: Sequence[str]) -> Problems:
    paths = {file: real_path(project_dir, file) for file in files}
    arguments = ["collect", *paths.values()]
    probed = await probe("tests", Collected, python, project_dir, arguments, seconds=COLLECT_SECONDS)
    if (report := probed.report) is None:
        return dict.fromkeys(files, f"is not collected: pytest came to no end ({probed.ran.ending})")
    found = {
        file: f"is not collected: {report.problems[path]}" for file, path in paths.items() if path in report.problems
    }
    if report.exit_code in {COLLECTED, NOTHING_COLLECTED} or found:
        return {file: NO_TESTS for file, path in paths.items() if not report.items.get(path)} | found
    ended = f"pytest ended with exit code {report.exit_code} ({probed.ran.reason})"
    return dict.fromkeys(files, f"is not collected: {ended}")
