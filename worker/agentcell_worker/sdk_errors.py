"""The border where the SDK's exceptions become errors of the wire."""

import errno

from claude_agent_sdk import ClaudeSDKError, CLIJSONDecodeError, CLINotFoundError, ProcessError, ResultError

from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_worker.outcome import Seen, TurnEnd, cli_ended, judge, partial_of

BROKEN = (ClaudeSDKError, UnicodeDecodeError, RecursionError)
"""What reading the CLI's output can raise: the CLI died, or wrote what is no message."""

MISREAD = (AttributeError, LookupError, TypeError)
"""What the SDK raises for a member of another type than it takes for granted."""

CLI_HINT = "leave cli_path out to use the CLI that comes with the SDK, or name an executable file"

EXHAUSTED_HINT = "check the limits on processes, memory and open files"

START_HINTS = {
    errno.EMFILE: EXHAUSTED_HINT,
    errno.ENFILE: EXHAUSTED_HINT,
    errno.ENOMEM: EXHAUSTED_HINT,
    errno.EAGAIN: EXHAUSTED_HINT,
    errno.E2BIG: "make what the request gives the CLI smaller, its env above all",
}
"""What to do where the CLI could be run, but no process be started."""


def explain(broken: Exception, seen: Seen, *, exit_code: int | None = None, stderr_tail: str = "") -> SessionError:
    """The error that an exception of the SDK means, given how the CLI ended (None: it runs) and what it wrote."""
    match broken:
        case ResultError():
            return judge(_turn_end_of(broken), seen).error or cli_ended(broken.exit_code, stderr_tail, seen)
        case ProcessError():
            return cli_ended(broken.exit_code, stderr_tail, seen)
        case CLINotFoundError():
            return session_error(Category.CLI_NOT_FOUND, str(broken), hint=CLI_HINT)
        case CLIJSONDecodeError() | UnicodeDecodeError() | RecursionError() | AttributeError():
            message = f"the CLI wrote what is no message: {broken}"
            return session_error(Category.PROTOCOL, message, partial_response=partial_of(seen), stderr_tail=stderr_tail)
        case _ if isinstance(broken.__cause__, OSError) and exit_code is None and not seen.has_started:
            return not_started(broken.__cause__)
        case _:
            return cli_ended(exit_code, stderr_tail or str(broken), seen)


def not_started(problem: OSError) -> SessionError:
    """The error of a CLI that was found and could not be started."""
    hint = START_HINTS.get(problem.errno or 0)
    if hint is not None:
        message = f"the CLI could not be started: {problem.strerror}"
    elif isinstance(problem, FileNotFoundError):  # a CLI that is missing is a CLINotFoundError
        message = f"the project directory is gone: {problem.filename}"
    else:
        return session_error(Category.CLI_NOT_FOUND, f"the CLI cannot be run: {problem}", hint=CLI_HINT)
    return session_error(Category.SPAWN_FAILED, message, hint=hint, errno=problem.errno)


def _turn_end_of(ended: ResultError) -> TurnEnd:
    return TurnEnd(
        subtype=ended.subtype or "",
        is_error=True,
        num_turns=0,
        terminal_reason=ended.terminal_reason,
        http_status=ended.api_error_status,
        text=ended.result,
        errors=tuple(ended.errors),
    )
