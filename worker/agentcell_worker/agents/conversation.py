"""The flow that hands the caller's message to the model."""

from functools import partial

from agentcell_protocol.result import SessionResult
from agentcell_worker.agents.exchange import Ended, exchange
from agentcell_worker.agents.job import Job
from agentcell_worker.client import create_client
from agentcell_worker.options import client_arguments


async def run(job: Job) -> SessionResult:
    """Hand the caller's message to the model, led by the role prompt if there is one."""
    request, agent = job.request, job.agent
    message = "\n\n".join(part for part in (request.system_prompt or agent.role, request.starting_message) if part)
    client = create_client(**{**client_arguments(request), "agent_type": agent}, drain_seconds=job.drain_seconds)
    ended = await exchange(
        client,
        message,
        request.spec_dir,
        request.phase or agent.phase,
        listen=job.listen,
        conclude=partial(_tell, job),
    )
    return _result(job, ended)


def _tell(job: Job, ended: Ended) -> None:
    job.listen({"type": "outcome", "result": _result(job, ended).to_message(hosted=False)})


def _result(job: Job, ended: Ended) -> SessionResult:
    return job.report.of(ended.status, ended.response, dict(ended.usage), ended.trace)
