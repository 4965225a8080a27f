"""The flow that has a project migrated step by step, and checks that there is a way back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentcell_protocol.result import SessionResult
from agentcell_worker.agents.base import run_generator_session
from agentcell_worker.agents.briefing import json_block, required_object
from agentcell_worker.agents.flow import FlowError, deliver, flow
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.checks import checkpoints, git
from agentcell_worker.checks.checkpoints import validate_migration_checkpoint
from agentcell_worker.checks.tree import changed, stamps

__all__ = ["run_migration_assistant", "validate_migration_checkpoint"]

AGENT_TYPE = "migration_assistant"

PLAN = "migration_plan.md"

NO_CONTEXT = "There is no migration context."


async def run(job: Job) -> SessionResult:
    """Have the migration done that a request asks for."""
    return await deliver(job, run_migration_assistant)


@flow(
    checkpoints_created=0,
    migration_plan_path=None,
    validation={"valid": False, "issues": [], "checkpoint_info": {}},
)
async def run_migration_assistant(  # noqa: PLR0917 - callers may pass them so
    project_dir: str | Path,
    spec_dir: str | Path | None,
    migration_context: Mapping[str, Any] | None = None,
    model: str | None = None,
    max_thinking_tokens: int | None = None,
    verbose: bool = False,
    *,
    sessions: Sessions | None = None,
) -> dict[str, Any]:
    """Have a project migrated: {checkpoints_created: how many, success, migration_plan_path, validation}.

    A failure also has `error`, a text. The plan's path is relative to the project when it lies in it, None when there
    is no plan; `validation` is that of `validate_migration_checkpoint` and changes no success. Nothing is raised.
    """
    sessions = sessions or Sessions()
    _look_for_git(project_dir, sessions)
    folder = Path(project_dir, checkpoints.FOLDER)
    before = stamps(folder)
    ended = await run_generator_session(
        AGENT_TYPE,
        project_dir,
        spec_dir,
        _briefing(migration_context),
        model=model,
        max_thinking_tokens=max_thinking_tokens,
        verbose=verbose,
        sessions=sessions,
    )
    if not ended["success"]:
        raise FlowError(ended["error"], sessions.error)
    with sessions.check("validate"):
        created = changed(before, stamps(folder)) or set()
        validation = validate_migration_checkpoint(folder, project_dir)
    return {
        "checkpoints_created": sum(map(checkpoints.is_commit_file, created)),
        "success": True,
        "migration_plan_path": _plan(Path(project_dir), spec_dir),
        "validation": validation,
    }


def _look_for_git(project_dir: str | Path, sessions: Sessions) -> None:
    """Each step is to be a commit."""
    try:
        reason = None if git.is_work_tree(project_dir) else "the project is in no git work tree"
    except git.NoAnswerError as why:
        reason = str(why)
    if reason:
        sessions.warn("no_git", f"{reason}: there may be no commits that lead back")


def _briefing(migration_context: Mapping[str, Any] | None) -> str:
    if not migration_context:
        return NO_CONTEXT
    return json_block("Migration context", required_object("migration_context", migration_context))


def _plan(project: Path, spec_dir: str | Path | None) -> str | None:
    """The plan in the spec directory, else in the project."""
    places = [Path(spec_dir), project] if spec_dir else [project]
    for plan in (place.resolve() / PLAN for place in places):
        if plan.is_file():
            root = project.resolve()
            return plan.relative_to(root).as_posix() if plan.is_relative_to(root) else str(plan)
    return None
