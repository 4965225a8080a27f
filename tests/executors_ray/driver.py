"""A driver to be killed: `python driver.py ADDRESS PROJECT MARKER…` runs a session that hangs for each marker."""

import json
import sys

import anyio

from agentcell.executors.ray import RayExecutor
from agentcell.orders import Order
from agentcell_protocol.request import parse_request

STAND_IN = (sys.executable, "-P", "-m", "agentcell.testing")


async def main(*arguments: str) -> None:
    """Say the pids of the workers, one a line, and never end."""
    address, project, *markers = arguments
    request = {"session_name": "a", "agent_type": "coder", "project_dir": project, "starting_message": "hi"}
    steps = [{"spawn": ["setsid", "sleep", "600"]}, {"ignore": ["EOF"]}, {"hang": True}]
    session = parse_request({**request, "context": {"stand_in": steps}})
    environment = {"PATH": "/usr/bin:/bin", "HOME": project, "TMPDIR": project}
    async with (
        RayExecutor(address, lease_seconds=3, worker_command=STAND_IN) as executor,
        anyio.create_task_group() as tasks,
    ):
        for marker in markers:
            order = Order(session, environment=environment, marker=marker, on_event=tell, keep=False)
            tasks.start_soon(executor.attempt, order)


def tell(event: dict[str, object]) -> None:
    """Say who has begun."""
    if event["type"] == "hello":
        print(json.dumps(event["pid"]), flush=True)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
