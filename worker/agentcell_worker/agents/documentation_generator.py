"""The flow that has documentation written for existing code, and checks it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentcell_protocol.result import SessionResult
from agentcell_worker.agents.base import run_generator_session
from agentcell_worker.agents.briefing import analysis_block
from agentcell_worker.agents.changes import Changes
from agentcell_worker.agents.flow import FlowError, deliver, flow
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.checks.documents import validate_generated_docs

__all__ = ["run_documentation_generator_session", "validate_generated_docs"]

AGENT_TYPE = "documentation_generator"


async def run(job: Job) -> SessionResult:
    """Have the documentation written that a request asks for."""
    return await deliver(job, run_documentation_generator_session)


@flow(generated_files=[], validation={"valid": False, "issues": []})
async def run_documentation_generator_session(  # noqa: PLR0917 - callers may pass them so
    project_dir: str | Path,
    spec_dir: str | Path | None,
    analysis_results: Mapping[str, Any] | None,
    model: str | None = None,
    max_thinking_tokens: int | None = None,
    verbose: bool = False,
    *,
    sessions: Sessions | None = None,
) -> dict[str, Any]:
    """Have documentation written: {generated_files, success, error: text or None, validation: {valid, issues}}.

    The files are those of the project that are new or changed, relative to it; that there are none is a success, and so
    is what `validation` finds wrong with them. Without `analysis_results` the project is analysed. Nothing is raised.
    """
    sessions = sessions or Sessions()
    changes = Changes(project_dir, sessions)
    ended = await run_generator_session(
        AGENT_TYPE,
        project_dir,
        spec_dir,
        analysis_block(project_dir, analysis_results, sessions),
        model=model,
        max_thinking_tokens=max_thinking_tokens,
        verbose=verbose,
        sessions=sessions,
    )
    if not ended["success"]:
        raise FlowError(ended["error"], sessions.error)
    with sessions.check("validate"):
        files = changes.files()
        validation = validate_generated_docs(files, project_dir)
    return {"generated_files": files, "success": True, "error": None, "validation": validation}
