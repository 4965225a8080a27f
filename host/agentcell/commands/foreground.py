"""One session from a command line: run it, show it, end it when the user says so."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import click

from agentcell.commands.inputs import request_data
from agentcell.commands.options import RunOptions, option_of
from agentcell.commands.output import silence_stdout, tell
from agentcell.commands.views import View, view_for
from agentcell.environment import cell_environment
from agentcell.errors import request_error
from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.signals import run_until_signalled
from agentcell_protocol.errors import Category, RequestError, SessionError
from agentcell_protocol.exitcodes import ERROR, exit_code
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult, refused


def run_in_foreground(options: RunOptions) -> int:
    """Run the session that the options ask for; the exit code. Raises click.UsageError for the caller's mistakes."""
    data = request_data(options)
    view = view_for(sys.stdout, as_json=options.as_json, verbose=options.verbose)
    try:
        limits = _limits(data.pop("limits", None), options.timeout)
        result = _run(parse_request(data), limits, options, view)
    except RequestError as mistake:
        result = refused(mistake, data)
    if result.error is not None and _is_usage_error(result.error, options):
        raise _as_usage_error(result.error)
    return _close(view, result)


def _run(request: SessionRequest, limits: Limits, options: RunOptions, view: View) -> SessionResult:
    request = request.model_copy(update={"events": view.detail})
    listener = _listener(view)
    if not options.offline:
        environment = cell_environment(os.environ, env=options.env, pass_env=options.pass_env)
        return anyio.run(run_until_signalled, request, limits, environment, listener, not options.no_keep)
    from agentcell.offline.rehearsal import rehearsal, rehearsed

    with rehearsal(os.environ, env=options.env, pass_env=options.pass_env) as (_, environment):
        return anyio.run(run_until_signalled, rehearsed(request), limits, environment, listener, False)


def _listener(view: View) -> OnEvent | None:
    """Shows events beside the loop: a terminal that is held must not stop the clocks."""
    if view.detail == "none":
        return None

    async def show(event: Mapping[str, Any]) -> None:
        await anyio.to_thread.run_sync(view.on_event, event, abandon_on_cancel=True)

    return show


def _limits(members: object, timeout: float | None) -> Limits:
    """The limits beside a request, and the one that is an option."""
    limits = Limits.from_mapping(members)
    return limits if timeout is None else replace(limits, max_execution_seconds=timeout)


def _is_usage_error(error: SessionError, options: RunOptions) -> bool:
    """Whether the request that is at fault was made of options, by a person."""
    return error.category is Category.BAD_REQUEST and options.request is None and not options.as_json


def _as_usage_error(error: SessionError) -> click.UsageError:
    """The same, with the option's name in place of the member's."""
    mistake = request_error(error)
    if mistake is None or mistake.member is None:
        return click.UsageError(error.message)
    within = mistake.member.partition(".")[2]
    reason = f"{within}: {mistake.reason}" if within else mistake.reason
    return click.BadParameter(f"{reason}; {mistake.remedy}", param_hint=option_of(mistake.member))


def _close(view: View, result: SessionResult) -> int:
    """Show the end; the exit code of the result, unless it could not be written."""
    try:
        view.close(result)
    except BrokenPipeError:
        silence_stdout()  # who closed it does not want the answer; the exit code still tells how the session ended
    except OSError as failure:
        silence_stdout()
        tell(f"error: the result cannot be written: {failure.strerror}")
        return ERROR
    return exit_code(result.error)
