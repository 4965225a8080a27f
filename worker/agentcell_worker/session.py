"""One prompt handed to an open client, and everything that comes of it until it is answered."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import anyio
from claude_agent_sdk import ClaudeSDKClient, ClaudeSDKError

from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import Status
from agentcell_worker.account import Account
from agentcell_worker.client import drain_seconds_of, end_now, expectations, explained, session_id_of
from agentcell_worker.outcome import failure, partial_of
from agentcell_worker.plan import plan_status
from agentcell_worker.sdk_errors import BROKEN
from agentcell_worker.trace import Trace

PARSE_ERROR = "MessageParseError"
"""The SDK's exception for a message that lacks something; it is not exported."""


async def run_agent_session(
    client: ClaudeSDKClient,
    message: str,
    spec_dir: str | Path | None,
    verbose: bool = False,
    phase: str = "coding",
    *,
    subtask_id: str | None = None,
    on_event: Callable[[dict[str, Any]], object] | None = None,
) -> tuple[Status, str, dict[str, int], Trace]:
    """Send `message` verbatim and wait until it is answered: (status, response text, token counts, trace).

    `client` has been entered. The status is `error` when the session failed (the response is then the
    error's message), `complete` without a spec or with a plan that is done, else `continue`.
    `verbose` writes the text to stderr, headed by `phase` and `subtask_id`. `on_event` takes the events.
    """
    listeners = [on_event] if on_event else []
    if verbose:
        listeners.append(_speaker(phase, subtask_id))
    account = Account(str(uuid4()), expectations(client), _tell(listeners))
    prompt_id = account.prompt_id
    try:
        await client.query(_prompt(message, prompt_id))
        if not await _read(client, account, lambda: account.has_ended):
            account.fail(failure(Category.NO_RESULT, account.seen()))
        await _drain(client, account)
    except BROKEN as broken:
        account.fail(explained(broken, client, account.seen()))
        account.must_end_now = True
    if account.must_end_now:
        end_now(client)
    return _conclude(account, spec_dir, session_id_of(client))


def _conclude(
    account: Account, spec_dir: str | Path | None, session_id: str | None
) -> tuple[Status, str, dict[str, int], Trace]:
    status: Status = "error"
    response = account.error.message if account.error else account.response
    if account.error is None:
        status, notice = plan_status(spec_dir)
        if notice is not None:
            account.warn(notice.code, notice.message)
    return status, response, account.progress.usage.model_dump(), account.trace(session_id)


async def _prompt(message: str, prompt_id: str) -> AsyncIterator[dict[str, Any]]:
    content = {"role": "user", "content": message}
    yield {"type": "user", "message": content, "parent_tool_use_id": None, "uuid": prompt_id}


async def _read(client: ClaudeSDKClient, account: Account, is_done: Callable[[], bool]) -> bool:
    """Take messages until that is done; False when the CLI's output ended first."""
    while not is_done():
        try:
            if not await _read_turn(client, account, is_done):
                return is_done()
        except ClaudeSDKError as broken:
            if type(broken).__name__ != PARSE_ERROR:
                raise
            _pass_over(account, getattr(broken, "data", None), str(broken))
    return True


async def _read_turn(client: ClaudeSDKClient, account: Account, is_done: Callable[[], bool]) -> bool:
    """Take the messages up to a result; False when the output ended without one."""
    has_result = False
    async with aclosing(cast("AsyncGenerator[Any]", client.receive_response())) as messages:
        async for message in messages:
            account.take(message)
            if is_done():
                return True
            has_result = type(message).__name__ == "ResultMessage"
    return has_result


def _pass_over(account: Account, data: Mapping[str, Any] | None, reason: str) -> None:
    if (data or {}).get("type") != "result":
        account.warn("unreadable_message", f"a message of the CLI was passed over: {reason}")
        return
    message = f"the CLI's result cannot be read: {reason}"
    account.fail(session_error(Category.PROTOCOL, message, partial_response=partial_of(account.seen())))


async def _drain(client: ClaudeSDKClient, account: Account) -> None:
    """Wait a bounded time for background work, and for the turns that its end causes."""
    if account.is_settled:
        return
    with anyio.move_on_after(drain_seconds_of(client)):
        await _read(client, account, lambda: account.is_settled)
    if not account.is_settled:
        account.must_end_now = True
        work = ", ".join(account.live_tasks.values()) or "a turn that followed from it"
        account.warn("background_cut", f"background work was cut off: {work}")


def _tell(listeners: list[Callable[[dict[str, Any]], object]]) -> Callable[[dict[str, Any]], None]:
    def tell(event: dict[str, Any]) -> None:
        for listen in listeners:
            listen(event)

    return tell


def _speaker(phase: str, subtask_id: str | None) -> Callable[[dict[str, Any]], None]:
    head = f"[{phase} {subtask_id}]" if subtask_id else f"[{phase}]"

    def speak(event: dict[str, Any]) -> None:
        if event["type"] == "text":
            print(head, event["text"], file=sys.stderr, flush=True)

    return speak
