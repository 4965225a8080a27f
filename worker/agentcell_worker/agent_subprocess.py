"""The legacy interface without a guard: one session in this very process, options in, one line out.

Run it by its path, or import `run_agent_session`. `agentcell-worker` with the same options is the same session
in a cell of its own, and answers even when that is killed.
"""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # this folder: whoever imports a `session` or a `client` means another one

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import anyio

from agentcell_protocol import cell
from agentcell_protocol.codec import encode
from agentcell_protocol.enclosing import is_marker
from agentcell_protocol.errors import RequestError
from agentcell_protocol.legacy import (
    Arguments,
    ArgumentsError,
    Outcome,
    answer,
    exit_code,
    failed,
    fatal,
    parse_arguments,
    succeeded,
)
from agentcell_protocol.request import parse_request
from agentcell_worker import stdio
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.sdk_log import mute_sdk
from agentcell_worker.signals import Cancellation, Stopped

STDOUT = 1


async def run_agent_session(  # noqa: PLR0917 - its callers pass them by position
    project_dir: str | Path,
    spec_dir: str | Path,
    agent_type: str,
    model: str | None,
    starting_message: str,
    system_prompt: str | None = None,
    max_thinking_tokens: int | None = None,
    session_name: str = "agent-session",
) -> Outcome:
    """Run one session here: {success, output: {response, agent_type, session_name} or None, error: text or None}.

    The error is the session's own text, or `Agent session failed: …` when something was raised.
    """
    message = f"{system_prompt}\n\n{starting_message}" if system_prompt else starting_message
    try:
        phase = agent_named(agent_type).phase
        client = create_client(project_dir, spec_dir, model, agent_type, max_thinking_tokens)
        async with client:
            status, response, *_ = await run_sdk_session(client, message, spec_dir, phase=phase)
    except Exception as failure:  # noqa: BLE001 - this is what the interface promises instead
        return failed(f"Agent session failed: {failure}")
    if status == "error":
        return failed(response)
    return succeeded(response, agent_type, session_name)


def create_client(*arguments: Any, **options: Any) -> Any:
    """The worker's own, which brings the SDK along."""
    from agentcell_worker import client  # noqa: PLC0415 - imported once stdout belongs to the answer

    return client.create_client(*arguments, **options)


async def run_sdk_session(*arguments: Any, **options: Any) -> tuple[Any, ...]:
    """The worker's own `run_agent_session`, as it is when it is called."""
    from agentcell_worker import session  # noqa: PLC0415 - imported once stdout belongs to the answer

    return await session.run_agent_session(*arguments, **options)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the session that the options ask for; print one line; the exit code."""
    began, stdout = monotonic(), STDOUT
    try:
        arguments = _checked(parse_arguments(sys.argv[1:] if argv is None else argv))
        stdout = stdio.claim().writes
        outcome = _outcome(arguments)
    except (ArgumentsError, RequestError) as mistake:
        outcome = fatal(mistake)
    with suppress(OSError), open(stdout, "wb", closefd=False) as stream:
        stream.write(encode(answer(outcome, monotonic() - began)))
    return exit_code(outcome)


def _checked(arguments: Arguments) -> Arguments:
    parse_request(arguments.as_request())
    agent_named(arguments.agent_type)
    return arguments


def _outcome(arguments: Arguments) -> Outcome:
    """What came of the session, once nothing of it runs any more."""
    cancellation = Cancellation()
    cancellation.install()
    for marker in filter(is_marker, list(os.environ)):
        del os.environ[marker]
    mute_sdk()
    cell.become_subreaper()
    try:
        cancellation.interrupt()
        return anyio.run(_run, arguments, cancellation)
    except Stopped:
        return _cancelled(cancellation)
    finally:
        cancellation.settle()
        cell.end_descendants()


async def _run(arguments: Arguments, cancellation: Cancellation) -> Outcome:
    with anyio.CancelScope() as scope, cancellation.cancelling(scope):
        return await run_agent_session(**arguments.as_members())
    return _cancelled(cancellation)


def _cancelled(cancellation: Cancellation) -> Outcome:
    return failed(f"the session was cancelled by {cancellation.signal}")


if __name__ == "__main__":
    sys.exit(main())
