"""What keeps test files from being collected: all are tried together, and when that fails, each alone."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio

from agentcell_worker.agents.interpreter import probe

COLLECT_SECONDS = 120.0
"""For one try: the code under test is imported, which takes a few seconds."""

CULPRIT_SECONDS = 300.0
"""For all tries with one file each; what was not reached by then is not blamed."""

NOTHING = "has no tests"

Problems = dict[str, str]
"""What is wrong, by file."""

Collect = Callable[[Sequence[str]], Awaitable[Problems]]


async def culprits(collect: Collect, files: Sequence[str]) -> Problems:
    """The files that cannot be collected; when each can alone, what is said of them together."""
    together = await collect(files)
    if not together or len(files) == 1:
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


async def pytest_problems(
    files: Sequence[str], project_dir: str | Path, python: str, tools: frozenset[str]
) -> Problems:
    """What keeps pytest from collecting the files, which are relative to the project."""
    return await culprits(partial(_with_pytest, project_dir, python, pytest_options(tools)), files)


def pytest_options(tools: frozenset[str]) -> list[str]:
    """What keeps plugins that a project may have set up from starting processes and from measuring as well."""
    return [*(["-n", "0"] if "xdist" in tools else []), *(["--no-cov"] if "pytest_cov" in tools else [])]


async def _with_pytest(project_dir: str | Path, python: str, options: Sequence[str], files: Sequence[str]) -> Problems:
    paths = {file: real_path(project_dir, file) for file in files}
    arguments = [*options, *paths.values()]
    probed = await probe("collect", python, project_dir, arguments, seconds=COLLECT_SECONDS)
    if probed.report is None:
        return dict.fromkeys(files, f"is not collected: pytest came to no end ({probed.ran.ending})")
    items, problems = probed.report["items"], probed.report["problems"]
    found = {file: f"is not collected: {problems[path]}" for file, path in paths.items() if path in problems}
    empty = {file: NOTHING for file, path in paths.items() if file not in found and not items.get(path)}
    if probed.report["exit_code"] == 0 or found:
        return {**empty, **found}
    return empty or dict.fromkeys(files, f"is not collected ({probed.ran.ending})")
