"""The SDK's client as a cell uses it: entered again and again, and ended in bounded time."""

import os
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

import anyio
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIJSONDecodeError,
    Message,
    ProcessError,
    ResultMessage,
)

from agentcell_protocol.cell import DRAIN_SECONDS
from agentcell_protocol.codec import encode
from agentcell_protocol.errors import SessionError
from agentcell_protocol.masking import Mask
from agentcell_protocol.result import Notice
from agentcell_worker.agents.registry import AgentType, agent_named
from agentcell_worker.carried import carried_cost
from agentcell_worker.cli_process import CLOSE_SECONDS, CliProcess, cli_of, until
from agentcell_worker.options import outside, with_defaults
from agentcell_worker.outcome import Seen, cli_ended
from agentcell_worker.private_file import remove_private, write_private
from agentcell_worker.sdk_errors import BROKEN, MISREAD, explain
from agentcell_worker.sdk_log import SdkLogHandler
from agentcell_worker.tail import Tail, write_stderr

LAST_WORDS_SECONDS = 1.0
"""From the CLI's death to giving up on its first answer: its last words are read meanwhile."""

START_LOOK_SECONDS = 0.1
"""Between two looks whether the CLI has died before its first answer, which takes it the better part of a second."""

BOM = "\ufeff"


class CannotStart(Exception):  # noqa: N818 - it reads as what it says
    """The CLI did not come up; `error` says why."""

    def __init__(self, error: SessionError) -> None:
        self.error = error
        super().__init__(error.message)


class AgentClient(ClaudeSDKClient):
    """A client that can be entered again, each time with a session of its own, and that ends its CLI in bounded time.

    Entering raises CannotStart. `notices` say what was odd about the end of the CLI.
    """

    def __init__(self, options: ClaudeAgentOptions, *, tail: Tail, drain_seconds: float = DRAIN_SECONDS) -> None:
        super().__init__(options)
        self.tail = tail
        self.drain_seconds = drain_seconds
        self.exit_code: int | None = None
        self.notices: list[Notice] = []
        self.must_end_now = False
        self.broken_line: str | None = None
        self._log = SdkLogHandler(partial(self._note, "sdk_warning"), self._take_passed_over)
        self._asked = options
        self._has_been_entered = False
        self._is_connected = False
        self._mcp_file: str | None = None

    async def connect(self, prompt: str | AsyncIterable[dict[str, Any]] | None = None) -> None:
        """Start the CLI and wait until it answers."""
        self._prepare()
        self._log.open()
        error: SessionError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_start, tasks.cancel_scope)
            try:
                await super().connect(prompt)
                self._is_connected = True
            except Exception as broken:  # noqa: BLE001 - the SDK raises bare Exceptions here
                error = self.explain(broken, expectations(self))
            tasks.cancel_scope.cancel()
        if not self._is_connected:
            raise CannotStart(error or cli_ended(self.exit_code, self.tail.text(), expectations(self)))

    async def receive_messages(self) -> AsyncIterator[Message]:
        """What the CLI says. Raises CLIJSONDecodeError, too, for a member of another type than the SDK expects."""
        try:
            async for message in super().receive_messages():
                yield message
        except MISREAD as odd:
            raise CLIJSONDecodeError(str(odd), odd) from odd

    async def disconnect(self) -> None:
        """End the CLI, within a few seconds."""
        with anyio.CancelScope(shield=True):
            try:
                if (cli := cli_of(self)) is not None:
                    await self._end(cli)
                await super().disconnect()
            finally:
                self._is_connected = False
                self._log.close()
                remove_private(self._mcp_file)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool:
        self.must_end_now |= exc_type is not None
        return await super().__aexit__(exc_type, exc_val, exc_tb)

    def explain(self, broken: Exception, seen: Seen) -> SessionError:
        """The error that an exception of this client means."""
        if self.broken_line is not None:
            broken = CLIJSONDecodeError(self.broken_line, ValueError("it begins with a byte order mark"))
        cli = cli_of(self)
        exit_code = self.exit_code if cli is None else cli.exit_code
        return explain(broken, seen, exit_code=exit_code, stderr_tail=self.tail.text())

    def _prepare(self) -> None:
        self.options, self.notices = self._asked, []
        self.exit_code, self.broken_line, self.must_end_now = None, None, False
        if self._has_been_entered:
            self.options = replace(self.options, session_id=str(uuid4()), resume=None)
        self._has_been_entered = True
        if isinstance(self._asked.mcp_servers, dict) and self._asked.mcp_servers:
            content = encode({"mcpServers": self._asked.mcp_servers})
            self._mcp_file = write_private(content, suffix=".mcp.json")
            self.options = replace(self.options, mcp_servers=self._mcp_file)

    async def _watch_start(self, scope: anyio.CancelScope) -> None:
        """The SDK waits a minute for the first answer of a CLI that has exited with code 0."""
        await until(lambda: cli_of(self) is not None)
        if (cli := cli_of(self)) is not None:
            cli.read_leniently()
        await until(lambda: (cli := cli_of(self)) is None or cli.exit_code is not None, look_seconds=START_LOOK_SECONDS)
        await anyio.sleep(LAST_WORDS_SECONDS)
        scope.cancel()

    async def _end(self, cli: CliProcess) -> None:
        is_asked = self._is_connected and not self.must_end_now
        if is_asked:
            await cli.close_input()
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._hear_last_words()
                await cli.is_dead_within(CLOSE_SECONDS)
        has_hung = cli.exit_code is None
        await cli.end()
        await cli.finish_stderr()
        self.exit_code = cli.exit_code
        if is_asked and has_hung:
            self._note("cli_hung", f"the CLI did not end within {CLOSE_SECONDS:g} s of its input and was ended")
        elif is_asked and self.exit_code:
            self._note("cli_exit", f"the CLI ended with exit code {self.exit_code}")

    async def _hear_last_words(self) -> None:
        try:
            async for message in self.receive_messages():
                if isinstance(message, ResultMessage) and message.is_error:
                    self._note("late_failure", f"after the session had succeeded, a turn ended with {message.subtype}")
        except ProcessError:
            pass  # the exit code tells
        except BROKEN as broken:
            self._note("cli_output", f"after the session, the CLI wrote what is no message: {broken}")

    def _take_passed_over(self, line: str) -> None:
        """The SDK does not read what stands behind a byte order mark, and would wait for it without end."""
        if self.broken_line is None and line.startswith(BOM):
            self.broken_line = line
            if (cli := cli_of(self)) is not None and cli.exit_code is None:
                cli.process.terminate()

    def _note(self, code: str, message: str) -> None:
        self.notices.append(Notice(code=code, message=message))


def create_client(
    project_dir: str | Path,
    spec_dir: str | Path | None,
    model: str | None,
    agent_type: str | AgentType = "coder",
    max_thinking_tokens: int | None = None,
    **options: Any,
) -> AgentClient:
    """A client for one agent in `project_dir`, with what its type brings where `options` say nothing else.

    `options` are those of `ClaudeAgentOptions`, and `drain_seconds`. A `spec_dir` outside the project may be
    worked in as well. MCP servers go through a private file that lives as long as the client is open.
    """
    drain_seconds = options.pop("drain_seconds", DRAIN_SECONDS)
    tail = Tail(Mask(os.environ, options.get("env") or {}), write_stderr)
    agent = agent_type if isinstance(agent_type, AgentType) else agent_named(agent_type)
    options = with_defaults(agent, {"stderr": tail.add, **options})
    if max_thinking_tokens is not None:
        options["max_thinking_tokens"] = max_thinking_tokens
    options["add_dirs"] = [*options.get("add_dirs", []), *outside(spec_dir, project_dir)]
    asked = ClaudeAgentOptions(**{**options, "cwd": str(project_dir), "model": model or agent.model})
    return AgentClient(asked, tail=tail, drain_seconds=drain_seconds)


def expectations(client: ClaudeSDKClient) -> Seen:
    """What the client's options ask for, as judging its session needs it."""
    options = client.options
    return Seen(
        asked_structure=options.output_format is not None,
        asked_max_turns=options.max_turns,
        asked_max_budget_usd=options.max_budget_usd,
        asked_resume=options.resume,
        carried_cost_usd=carried_cost(options.resume, {**os.environ, **options.env}) if options.resume else 0.0,
    )


def explained(broken: Exception, client: ClaudeSDKClient, seen: Seen) -> SessionError:
    """The error that an exception of the client means."""
    return client.explain(broken, seen) if isinstance(client, AgentClient) else explain(broken, seen)


def session_id_of(client: ClaudeSDKClient) -> str | None:
    """The id that the client's session has or will have."""
    return client.options.session_id or client.options.resume


def drain_seconds_of(client: ClaudeSDKClient) -> float:
    """How long the client waits for background work."""
    return client.drain_seconds if isinstance(client, AgentClient) else DRAIN_SECONDS


def end_now(client: ClaudeSDKClient) -> None:
    """Have the client end its CLI at once instead of asking it to finish."""
    if isinstance(client, AgentClient):
        client.must_end_now = True


def closing_notices(client: ClaudeSDKClient) -> list[Notice]:
    """What was odd about the end of the client's CLI."""
    return client.notices if isinstance(client, AgentClient) else []
