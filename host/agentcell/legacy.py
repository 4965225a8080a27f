"""The legacy interface of `agentcell-worker`: options in, one line out, through the host and so with its guard."""

import os
from collections.abc import Sequence
from time import monotonic

import anyio

from agentcell.commands.output import silence_stdout, write
from agentcell.environment import inherited_environment
from agentcell.limits import Limits
from agentcell.signals import run_until_signalled
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import Category, RequestError
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
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult


def main(argv: Sequence[str]) -> int:
    """Run the session that the options `argv` (without the program's name) ask for; print one line; the exit code."""
    began = monotonic()
    outcome = _outcome(argv)
    try:
        write(encode(answer(outcome, monotonic() - began)))
    except OSError:
        silence_stdout()
    return exit_code(outcome)


def outcome_of(result: SessionResult, arguments: Arguments) -> Outcome:
    """A session's result as the legacy interface tells it."""
    if result.error is None:
        return succeeded(result.response, arguments.agent_type, arguments.session_name)
    if result.error.category is Category.BAD_REQUEST:
        return fatal(result.error.message)
    return failed(result.error.message)


def _outcome(argv: Sequence[str]) -> Outcome:
    try:
        arguments = parse_arguments(argv)
        result = _run(parse_request(arguments.as_request()))
    except (ArgumentsError, RequestError) as mistake:
        return fatal(mistake)
    return outcome_of(result, arguments)


def _run(request: SessionRequest) -> SessionResult:
    return anyio.run(run_until_signalled, request, Limits(), inherited_environment(os.environ))
