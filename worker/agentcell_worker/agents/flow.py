"""What makes a function a flow: its failures are values of its own shape, and a worker can run it."""

import logging
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec

from agentcell_protocol.errors import Category, SessionError, internal_error, session_error
from agentcell_protocol.masking import masked
from agentcell_protocol.result import SessionResult
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.sessions import Sessions

Given = ParamSpec("Given")
Flow = Callable[Given, Awaitable[dict[str, Any]]]

MAX_ISSUES = 5
"""In an error: enough to see what is wrong; all are in the flow's validation."""

log = logging.getLogger(__name__)


class FlowError(Exception):
    """A flow cannot go on; `known` is what it has to show nevertheless, by the keys of its shape.

    `error` is the session's, or None when it is the product that is not as it should be.
    """

    def __init__(self, text: str, error: SessionError | None = None, **known: Any) -> None:
        self.error = error
        self.known = known
        super().__init__(text)


def flow(**empty: Any) -> Callable[[Flow[Given]], Flow[Given]]:
    """Turns what the function raises into a failure: `success` False, the `error` as text, the other keys `empty`."""

    def decorate(function: Flow[Given]) -> Flow[Given]:
        @wraps(function)
        async def run(*given: Given.args, **named: Given.kwargs) -> dict[str, Any]:
            try:
                return await function(*given, **named)
            except FlowError as failed:
                if failed.__cause__ is not None:
                    log.exception("%s failed", function.__name__)
                error, known, text = failed.error, failed.known, str(failed)
            except Exception as unexpected:  # a flow promises to raise nothing
                log.exception("%s failed", function.__name__)
                error, known, text = internal_error(unexpected), {}, f"{type(unexpected).__name__}: {unexpected}"
            if isinstance(sessions := named.get("sessions"), Sessions):
                sessions.error = error
            return {**deepcopy(empty), **known, "success": False, "error": text}

        return run

    return decorate


async def deliver(job: Job, function: Flow[...]) -> SessionResult:
    """Run the flow that the request asks for; its dict, with the ids of its sessions, is the result's `flow`."""
    sessions = Sessions(job)
    request = job.request
    context = {name: value for name, value in (request.context or {}).items() if value is not None}
    if "analysis_results" in job.agent.context:
        context.setdefault("analysis_results", None)
    product = await function(
        project_dir=request.project_dir,
        spec_dir=request.spec_dir,
        model=request.model,
        max_thinking_tokens=request.max_thinking_tokens,
        **context,
        sessions=sessions,
    )
    result = _result(job, product, sessions)
    job.listen({"type": "outcome", "result": result.to_message(hosted=False)})
    return result


def _result(job: Job, product: dict[str, Any], sessions: Sessions) -> SessionResult:
    total = sessions.total()
    status, error = total.status, None
    if not product["success"]:
        response = total.response if total.status != "error" else ""
        issues = product.get("validation", {}).get("issues", [])[:MAX_ISSUES]
        details = {"issues": issues} if issues else {}
        spoiled = session_error(Category.DELIVERABLE, product["error"], partial_response=response or None, **details)
        status, error = "error", sessions.error or spoiled
    result = job.report.of(status, total.response, dict(total.usage), replace(total.trace, error=error))
    said = {"validation": masked(product["validation"], job.report.mask)} if "validation" in product else {}
    if result.error is not None:
        said["error"] = result.error.message
    session_id = result.session_id or job.request.session_id or job.request.resume
    told = {**product, **said, "session_ids": sessions.ids}
    return result.model_copy(update={"session_id": session_id, "flow": told})
