"""Where a program is checked: a scripted model, an empty project, a home; and what was seen of it there."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from agentcell.conformance.program import Line, Program
from agentcell.offline import Endpoint, ModelRequest, offline_environment, offline_model
from agentcell_protocol import cell

PATIENCE_SECONDS = 30.0
"""For whatever a program has to do: many times what a session takes."""

LEFT_SECONDS = 2.0
"""From the program's exit until nothing of it runs: the kernel takes a moment."""

LOOK_SECONDS = 0.05
"""Between two looks at what there is."""

MARK = "HOME"
"""The environment variable by which processes are found: it has another value on each stage."""

SHOWN_CHARACTERS = 120
"""Of the command of a process that was left running."""


class CommandError(ValueError):
    """The command is none that can be started."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The program's command, what its environment has besides, and how long anything may take, in seconds."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    patience: float = PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a program in a scene.

    `code` is its exit code, negative for a signal, None if it did not end; `seconds` it took to end once there was
    reason to; `left` what ran on; `asked` the turns that the model was asked for; `told` what else was found out.
    """

    scene: str
    lines: tuple[Line, ...]
    code: int | None
    seconds: float
    left: tuple[str, ...]
    asked: tuple[ModelRequest, ...]
    told: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The objects among its lines."""
        return [line.message for line in self.lines if line.message is not None]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Its messages of a type."""
        return [message for message in self.messages if message.get("type") == kind]

    @property
    def result(self) -> dict[str, Any]:
        """The last result; empty if there is none."""
        return next(reversed(self.of_type("result")), {})

    def result_of(self, run_id: str) -> dict[str, Any]:
        """The first result of a run of a host; empty if there is none."""
        return next((result for result in self.of_type("result") if result.get("id") == run_id), {})

    @property
    def last(self) -> str:
        """Its last line, shortened, and how it ended, for people."""
        said = shown(self.lines[-1].raw) if self.lines else "nothing"
        return f"{said}, and {ended(self.code)}"


class Stage:
    """One program's surroundings: `project` is empty, `told` for what is found out on the way."""

    def __init__(self, name: str, setting: Setting, folder: Path, endpoint: Endpoint) -> None:
        self.told: dict[str, Any] = {}
        self.endpoint = endpoint
        self.project = folder / "project"
        self._name = name
        self._setting = setting
        self._home = folder / "home"
        self._stderr = folder / "stderr"
        self._programs: list[Program] = []
        self._is_over = False
        self._environment = {**offline_environment(endpoint, self._home), **setting.env, MARK: str(self._home)}
        self.project.mkdir()
        self._home.mkdir()

    def request(self, **members: Any) -> dict[str, Any]:
        """A request whose project is this stage's."""
        least = {"session_name": "a", "agent_type": "coder", "project_dir": str(self.project)}
        return {**least, "starting_message": "hi", **members}

    def start(self) -> Program:
        """Start the program. Raises CommandError."""
        command = self._setting.command
        try:
            program = Program(command, self._environment, self._stderr, self._setting.patience)
        except OSError as failure:
            raise CommandError(f"{command[0]} does not start: {failure.strerror}; see that it runs by itself") from None
        self._programs.append(program)
        if self._is_over:
            program.kill()
        return program

    def given(self, data: bytes, *, ends: bool = True) -> Seen:
        """What is seen of a program whose stdin holds these bytes, and then ends, or stays open."""
        program = self.start()
        program.send(data)
        if ends:
            program.end_input()
        return self.seen(program)

    def wait_until(self, is_so: Callable[[], object], program: Program) -> bool:
        """Wait for something outside the program, which is to live until then; whether it came in time."""
        deadline = time.monotonic() + self._setting.patience
        while not is_so():
            if program.has_exited() or time.monotonic() > deadline:
                return bool(is_so())
            time.sleep(LOOK_SECONDS)
        return True

    def asked(self, text: str = "") -> list[ModelRequest]:
        """The turns that the model was asked for in sessions whose prompt has this text."""
        return [one for one in self.endpoint.requests if one.kind == "turn" and text in one.prompt]

    def seen(self, program: Program) -> Seen:
        """Wait until it has ended; what was seen of it, and of what it left running."""
        since = time.monotonic()
        code = program.ended()
        seconds = time.monotonic() - since
        left = () if code is None else tuple(map(_described, self._left()))
        self._end()
        return Seen(self._name, program.lines, code, seconds, left, tuple(self.asked()), dict(self.told))

    def owns(self, pid: object) -> bool:
        """Whether that is a process that was started here."""
        return any(process.pid == pid for process in self._marked())

    def stderr(self) -> str:
        """What it wrote there."""
        return self._stderr.read_text("utf-8", errors="replace")

    def break_off(self) -> None:
        """Kill what was started, or just is, so that nobody waits for it; from another thread."""
        self._is_over = True
        for program in self._programs:
            program.kill()

    def close(self) -> None:
        """End whatever still runs."""
        for program in self._programs:
            program.close()
        self._end()

    def _left(self) -> list[psutil.Process]:
        """What still runs a moment after its exit."""
        deadline = time.monotonic() + LEFT_SECONDS
        while (left := self._marked()) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        return left

    def _end(self) -> None:
        cell.end(self._marked, term_seconds=0.0)

    def _marked(self) -> list[psutil.Process]:
        return cell.marked(str(self._home), MARK)


@contextmanager
def stage(name: str, setting: Setting, script: Mapping[str, Any]) -> Iterator[Stage]:
    """A stage whose model follows `script`; at the end everything that was started there is ended."""
    prefix = "agentcell-conformance-"
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder, offline_model(script) as endpoint:
        surroundings = Stage(name, setting, Path(os.path.realpath(folder)), endpoint)
        try:
            yield surroundings
        finally:
            surroundings.close()


def line(message: Mapping[str, Any]) -> bytes:
    """The line of a message."""
    return json.dumps(message).encode() + b"\n"


def shown(raw: bytes) -> str:
    """A line for people."""
    text = raw.decode(errors="replace")
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")


def ended(code: int | None) -> str:
    """How a program ended, for people."""
    match code:
        case None:
            return "it did not end"
        case int() if code < 0:
            return f"it was killed by signal {-code}"
        case _:
            return f"exit code {code}"


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.pid} ({' '.join(process.cmdline())[:SHOWN_CHARACTERS]})"
    except psutil.Error:
        return str(process.pid)
