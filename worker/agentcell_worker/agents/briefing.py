"""What a flow tells its agent below the role prompt."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentcell_protocol.codec import encode
from agentcell_worker.agents import analysis
from agentcell_worker.agents.sessions import Sessions


def json_block(title: str, content: Mapping[str, Any]) -> str:
    """A titled block of JSON, members in their order; what JSON has no form for is replaced, as on the wire."""
    return f"{title}:\n\n```json\n{encode(content).decode().strip()}\n```"


def analysis_block(project_dir: str | Path, analysis_results: Mapping[str, Any] | None, sessions: Sessions) -> str:
    """The analysis of the project, which is made when there is none, as a block of JSON."""
    if analysis_results is None:
        with sessions.check("analyse"):
            analysis_results = analysis.analyse(project_dir)
    return json_block("Analysis of the project", analysis_results)
