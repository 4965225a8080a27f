"""What a flow tells its agent below the role prompt."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentcell_protocol.codec import encode
from agentcell_protocol.errors import RequestError
from agentcell_worker.agents.flow import FlowError
from agentcell_worker.agents.parameters import check_kind
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.checks import analysis


def json_block(title: str, content: Mapping[str, Any]) -> str:
    """A titled block of JSON, members in their order; what JSON has no form for is replaced, as on the wire."""
    return f"{title}:\n\n```json\n{encode(content).decode().strip()}\n```"


def analysis_block(project_dir: str | Path, analysis_results: Mapping[str, Any] | None, sessions: Sessions) -> str:
    """The analysis of the project, which is made when there is none, as a block of JSON."""
    return json_block("Analysis of the project", analysed(project_dir, analysis_results, sessions))


def analysed(
    project_dir: str | Path, analysis_results: Mapping[str, Any] | None, sessions: Sessions
) -> Mapping[str, Any]:
    """The analysis of the project, which is made when there is none. Raises FlowError for what is no object."""
    if analysis_results is not None:
        return required_object("analysis_results", analysis_results)
    with sessions.check("analyse"):
        return analysis.analyse(project_dir)


def required_object(name: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A parameter of a flow, which callers in Python may have given anything for. Raises FlowError."""
    try:
        check_kind(name, dict, value)
    except RequestError as refused:
        raise FlowError(str(refused), refused.as_session_error()) from None
    return value
