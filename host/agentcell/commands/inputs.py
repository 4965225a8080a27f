"""What `agentcell run` is to run: the request, made of options and of what is piped in."""

import fcntl
import os
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from agentcell.commands.options import RunOptions, option_of
from agentcell.commands.output import tell
from agentcell_protocol.codec import decode
from agentcell_protocol.errors import WireError

STDIN = "-"

FALLBACK_NAME = "session"
"""The session's name where the project's folder has none that can be shown."""

BESIDE_THE_REQUEST = frozenset({"request", "timeout", "env", "pass_env", "as_json", "no_keep", "offline", "verbose"})
"""Options that go together with `--request`: they are not about what the agent is to do."""

MEMBERS = (
    "agent_type",
    "agents_dir",
    "project_dir",
    "spec_dir",
    "model",
    "system_prompt",
    "max_turns",
    "max_budget_usd",
    "permission_mode",
    "session_id",
    "resume",
    "context",
)
"""Members of a request that have an option of the same name, given once."""


def request_data(options: RunOptions) -> dict[str, Any]:
    """The request, not yet validated; raises click.UsageError where the options do not fit together."""
    if options.request is None:
        return _from_options(options)
    if clash := sorted(options.given - BESIDE_THE_REQUEST):
        names = ", ".join("MESSAGE" if name == "message" else option_of(name) for name in clash)
        raise click.UsageError(
            f"--request is the whole request, it cannot go with {names}; write that into the request"
        )
    return _from_file(options.request)


def _from_options(options: RunOptions) -> dict[str, Any]:
    members = {name: value for name in MEMBERS if (value := getattr(options, name)) is not None}
    members["session_name"] = options.session_name or _default_name(options.project_dir)
    if (message := _message(options)) is not None:
        members["starting_message"] = message
    if options.mcp_config is not None:
        members["mcp_servers"] = options.mcp_config
    for name in ("tools", "allowed_tools", "disallowed_tools", "setting_sources"):
        if name in options.given:
            members[name] = [value for value in getattr(options, name) if value]
    return members


def _message(options: RunOptions) -> str | None:
    """The message; None when there is none and the agent type, which only the worker knows, may need none."""
    if options.message not in {None, STDIN}:
        return options.message
    if options.message is None and (options.context is not None or _needs_no_message(options)):
        _tell_of_what_is_not_read()
        return None
    if options.message is None and (sys.stdin is None or sys.stdin.isatty()):
        mistake = "there is no message; give one, pipe one in, or give a whole --request"
    else:
        message = _read_stdin().decode("utf-8-sig", "replace")
        if message.strip():
            return message
        mistake = "the message on stdin is blank; say what the agent is to do"
    if options.message is None and "agent_type" in options.given:
        return None
    raise click.UsageError(mistake)


def _needs_no_message(options: RunOptions) -> bool:
    """Whether the worker would refuse the agent type that was named, or runs it without a message."""
    from agentcell.agents import ListingError, known_agents

    if "agent_type" not in options.given:
        return False
    try:
        types = known_agents(options.agents_dir, os.environ).types
    except ListingError:
        return False
    return not any(agent["name"] == options.agent_type and agent["needs_message"] for agent in types)


def _tell_of_what_is_not_read() -> None:
    """Say so when something waits on stdin: who piped it in thinks that it is the message."""
    with suppress(OSError, ValueError):
        if sys.stdin is not None and not sys.stdin.isatty():
            waiting = fcntl.ioctl(sys.stdin.fileno(), termios.FIONREAD, bytes(4))
            if any(waiting):
                tell("note: stdin is not read; give - as the message to have it read")


def _from_file(source: str) -> dict[str, Any]:
    try:
        return decode(_read_stdin() if source == STDIN else Path(source).read_bytes())
    except OSError as unreadable:
        reason = f"{source} cannot be read: {unreadable.strerror}; name a file, or '-' for stdin"
    except WireError as invalid:
        reason = f"{invalid}; write one JSON object"
    raise click.BadParameter(reason, param_hint="--request")


def _read_stdin() -> bytes:
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


def _default_name(project_dir: str) -> str:
    name = Path(project_dir).resolve().name
    return name if name and name.isprintable() else FALLBACK_NAME
