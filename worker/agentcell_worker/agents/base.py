"""What all flows share, and the flow that hands the caller's message to the model."""

from agentcell_protocol.result import SessionResult
from agentcell_worker import session
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.client import CannotStart, closing_notices, create_client, session_id_of
from agentcell_worker.options import client_arguments


async def run(job: Job) -> SessionResult:
    """Hand the caller's message to the model, led by the system prompt if there is one."""
    request = job.request
    parts = (request.system_prompt, request.starting_message)
    return await converse(job, "\n\n".join(part for part in parts if part))


async def converse(job: Job, message: str) -> SessionResult:
    """One prompt in one client: the session's result, with what was odd about the client's end."""
    request = job.request
    client = create_client(**client_arguments(request), drain_seconds=job.drain_seconds)
    try:
        async with client:
            status, response, usage, trace = await session.run_agent_session(
                client,
                message,
                request.spec_dir,
                phase=request.phase or agent_named(request.agent_type).phase,
                on_event=job.listen,
            )
            result = job.report.of(status, response, usage, trace)
            job.listen({"type": "outcome", "result": result.to_message(hosted=False)})
    except CannotStart as failed:
        return job.report.failed(failed.error, session_id=session_id_of(client))
    return (
        result if result.error else result.model_copy(update={"warnings": [*result.warnings, *closing_notices(client)]})
    )
