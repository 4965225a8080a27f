"""The coder phase of an autonomous app: one call, one isolated session, tried again when that may help."""

import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike, environ, fspath
from typing import Any

import anyio

from agentcell.attempts import Tried, combined, following, next_attempt
from agentcell.environment import cell_environment
from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.orders import Order
from agentcell.resources import Resources, sharing
from agentcell.retry import RetryPolicy
from agentcell.run import checked, run_attempt
from agentcell_protocol.cell import new_marker
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import SessionResult, Status


async def run_agent_session_isolated(  # noqa: PLR0917 - its callers pass them by position
    project_dir: str | PathLike[str],
    spec_dir: str | PathLike[str] | None,
    agent_type: str,
    model: str | None,
    starting_message: str,
    system_prompt: str | None = None,
    max_thinking_tokens: int | None = None,
    session_name: str = "agent-session",
    limits: Limits | None = None,
    subtask_id: str | None = None,
    max_retries: int = 3,
    *,
    env: Mapping[str, str] | None = None,
    pass_env: Iterable[str] = (),
    on_event: OnEvent | None = None,
) -> tuple[Status, str, dict[str, int]]:
    """Run one agent session in a worker process of its own; `(status, response_text, usage)`.

    `status` is `complete`, `continue` or `error`; `response_text` is then the error's message. `usage` holds the
    four token counts, summed over all attempts. With a `subtask_id`, what may end better is tried again, at most
    `max_retries` attempts in all, and goes on with its conversation once a tool has run; without one there is one
    attempt. Raises RequestError, ValueError for a `max_retries` under one, and whatever `on_event` raises.
    """
    if max_retries < 1:
        raise ValueError("max_retries must be positive")
    members = {
        "session_name": session_name,
        "agent_type": agent_type,
        "project_dir": fspath(project_dir),
        "spec_dir": None if spec_dir is None else fspath(spec_dir),
        "model": model,
        "starting_message": starting_message,
        "system_prompt": system_prompt,
        "max_thinking_tokens": max_thinking_tokens,
    }
    request = parse_request({name: value for name, value in members.items() if value is not None})
    environment = cell_environment(environ, env=env, pass_env=pass_env)

    order = Order(request, environment=environment, limits=limits or Limits(), on_event=on_event)
    policy = RetryPolicy(max_attempts=max_retries if subtask_id is not None else 1)
    async with sharing() as resources:
        result = checked(await run_attempts(order, resources, policy))
    return result.status, result.response, result.usage.model_dump()


async def run_attempts(
    order: Order,
    resources: Resources,
    policy: RetryPolicy,
    *,
    pause: Callable[[float], Awaitable[Any]] = anyio.sleep,
    clock: Callable[[], float] = time.time,
    chance: Callable[[], float] = random.random,
) -> SessionResult:
    """Run the session of the order as often as the policy allows and it may help; the last result, with all attempts.

    An attempt begins when nothing of the one before is left. Raises what `run_attempt` raises.
    """
    past: list[Tried] = []
    upcoming = following(order.request, past)
    while True:
        attempt = replace(order, request=upcoming.request, marker=new_marker())
        result = await run_attempt(attempt, resources)
        past.append(Tried.of(result, upcoming.number, upcoming.mode))
        after = next_attempt(order.request, past, policy, now=clock(), chance=chance())
        if after is None:
            return combined(result, [one.attempt for one in past])
        await pause(after.delay)
        upcoming = after
