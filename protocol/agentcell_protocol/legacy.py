"""The legacy interface of `agentcell-worker`: options in, one line out. Both doors, guarded and bare, speak it."""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from typing_extensions import TypedDict

DEFAULT_SESSION_NAME = "agent-session"


class ArgumentsError(ValueError):
    """Options that the legacy interface does not know, or that do not fit together."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the options ask for; the message is already read."""

    project_dir: str
    spec_dir: str
    agent_type: str
    starting_message: str
    model: str | None = None
    system_prompt: str | None = None
    max_thinking_tokens: int | None = None
    session_name: str = DEFAULT_SESSION_NAME

    def as_members(self) -> dict[str, Any]:
        """All members by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def as_request(self) -> dict[str, Any]:
        """The same, as a request of the protocol."""
        return {name: value for name, value in self.as_members().items() if value is not None}


class Output(TypedDict):
    """What a session that ended well delivers."""

    response: str
    agent_type: str
    session_name: str


class Outcome(TypedDict):
    """How a session ended. `output` is null exactly when `success` is false, `error` exactly when it is true."""

    success: bool
    output: Output | None
    error: str | None


class Answer(Outcome):
    """The line: the outcome, and the seconds it took."""

    execution_time: float


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """What the options (without the program's name) ask for.

    Raises ArgumentsError, also when the message file cannot be read. `--help` prints and raises SystemExit(0).
    """
    options = vars(_parser().parse_args(argv))
    message, message_file = options.pop("message"), options.pop("message_file")
    return Arguments(starting_message=message if message_file is None else _read(message_file), **options)


def succeeded(response: str, agent_type: str, session_name: str) -> Outcome:
    """A session that ended well."""
    output = Output(response=response, agent_type=agent_type, session_name=session_name)
    return Outcome(success=True, output=output, error=None)


def failed(error: str) -> Outcome:
    """A session that ended with an error."""
    return Outcome(success=False, output=None, error=error)


def fatal(reason: object) -> Outcome:
    """No session could be run at all."""
    return failed(f"Fatal error: {reason}")


def answer(outcome: Outcome, execution_time: float) -> Answer:
    """The line of an outcome; the time is rounded to milliseconds."""
    return Answer({**outcome, "execution_time": round(execution_time, 3)})


def exit_code(outcome: Outcome) -> int:
    """0 or 1, as the outcome says."""
    return 0 if outcome["success"] else 1


class _Parser(ArgumentParser):
    """Raises where argparse would print its usage and exit with 2."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentsError(message)


def _parser() -> ArgumentParser:
    parser = _Parser(
        prog="agentcell-worker",
        allow_abbrev=False,
        description="Run one agent session; print one line.",
        epilog="Without options, agentcell-worker reads a request from stdin, one line of JSON: docs/protocol.md.",
    )
    parser.add_argument("--project-dir", required=True, metavar="DIR")
    parser.add_argument("--spec-dir", required=True, metavar="DIR")
    parser.add_argument("--agent-type", required=True, metavar="TYPE")
    parser.add_argument("--model", metavar="MODEL")
    message = parser.add_mutually_exclusive_group(required=True)
    message.add_argument("--message", metavar="TEXT")
    message.add_argument("--message-file", metavar="FILE")
    parser.add_argument("--system-prompt", metavar="TEXT")
    parser.add_argument("--max-thinking-tokens", type=int, metavar="N")
    parser.add_argument("--session-name", default=DEFAULT_SESSION_NAME, metavar="NAME")
    return parser


def _read(message_file: str) -> str:
    try:
        return Path(message_file).read_bytes().decode("utf-8-sig", "replace")
    except OSError as unreadable:
        reason = unreadable.strerror or str(unreadable)
        raise ArgumentsError(f"argument --message-file: {message_file} cannot be read: {reason}") from None
