"""The flow that has pytest fixtures written for existing code."""

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

__all__ = ["generate_fixtures"]

AGENT_TYPE = "fixture_generator"

FRAMEWORK = "pytest-fixtures"


async def run(job: Job) -> SessionResult:
    """Have the fixtures written that a request asks for."""
    return await deliver(job, generate_fixtures)


@flow(generated_files=[], framework="")
async def generate_fixtures(  # noqa: PLR0917 - callers may pass them so
    project_dir: str | Path,
    spec_dir: str | Path | None,
    analysis_results: Mapping[str, Any] | None,
    model: str | None = None,
    max_thinking_tokens: int | None = None,
    verbose: bool = False,
    *,
    sessions: Sessions | None = None,
) -> dict[str, Any]:
    """Have fixtures written: {generated_files, success, error: text or None, framework: "pytest-fixtures"}.

    The files are those of the project that are new or changed, relative to it; that there are none is a success.
    Without `analysis_results` the project is analysed. Nothing is raised.
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
    return {"generated_files": changes.files(), "success": True, "error": None, "framework": FRAMEWORK}
