"""A stand-in for the worker: it does what a test says, without SDK, CLI or network, and starts in a moment.

    with stand_in([{"text": "halfway"}, {"die": "SIGKILL"}], [{"text": "done"}]) as command:
        async with Host(worker_command=command) as host:
            assert (await host.run(request)).error.category == "crashed"
            assert (await host.run(request)).response == "done"

Each argument is one run: the n-th start for a request's id does the n-th, later starts the last. A request
with `context: {"stand_in": [...]}` brings its own. A run is a list of steps, each a dict with one of

    text     a block of the answer; the last one is the response
    tool     {name, input}: a tool call and its result
    emit     any object, written as a line whatever events were asked for
    stdout   raw text into the protocol stream, "\\udcff" being the byte 0xFF; `stderr` likewise
    wait     so many seconds
    hang     (true) until it is cancelled or, with a lifeline, its stdin ends
    ignore   a list of signals such as SIGTERM, and of EOF (of stdin, for `hang`), to be ignored from now on
    spawn    an argv: a child that is left behind and holds our stdout and stderr
    result   writes the result now, with these members in place of its own
    fail     {category, message, ...}: writes the result of a session that failed so
    exit     ends with this exit code, at once
    die      ends by this signal

and, if it is to be done more than once, `times`. What is left out is done as a worker does it: it reads the
request (a wrong one gives `bad_request`), greets, writes the message into the conversation where the host keeps it
(`unknown_session` when it is to resume one that is not there), and ends with a result and the exit code that goes
with it; SIGTERM, SIGINT and SIGHUP give a `cancelled` one.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any
from uuid import uuid4

from agentcell.writing import write_all
from agentcell_protocol.codec import encode
from agentcell_protocol.credentials import CONFIG_DIRECTORY
from agentcell_protocol.errors import Category, RequestError, SessionError, session_error
from agentcell_protocol.events import is_wanted
from agentcell_protocol.exitcodes import CANCEL_SIGNALS, exit_code
from agentcell_protocol.intake import read_message
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult, refused
from agentcell_protocol.version import PROTOCOL, __version__

NAME = "stand-in"
"""What it calls its model and its SDK."""

STEPS = frozenset(
    {"text", "tool", "emit", "stdout", "stderr", "wait", "hang", "ignore", "spawn", "result", "fail", "exit", "die"}
)

RUNS_FILE = "runs.json"

STDIN, STDOUT, STDERR = 0, 1, 2

Step = Mapping[str, Any]


@contextmanager
def stand_in(*runs: Sequence[Step]) -> Iterator[tuple[str, ...]]:
    """The command of a stand-in worker that does these runs, for as long as the context lasts.

    Raises ValueError for a step that is none.
    """
    for run in runs:
        _check(run)
    with TemporaryDirectory(prefix="agentcell-stand-in-") as folder:
        Path(folder, RUNS_FILE).write_text(json.dumps(runs), "utf-8")
        yield (sys.executable, "-P", "-m", "agentcell.testing", folder)


def main() -> int:
    """Be the worker: one request on stdin, its run's steps, the exit code."""
    message: dict[str, Any] = {}
    try:
        message = read_message().message
        request = parse_request(message)
        steps = _steps(request)
    except RequestError as mistake:
        result = refused(mistake, message)
        write_all(STDOUT, encode(result.to_message(hosted=False)))
        return exit_code(result.error)
    worker = _StandIn(request)
    try:
        worker.greet()
        for step in steps:
            worker.do(step)
        worker.finish()
    except _Ended as ended:
        worker.finish(ended.error)
    return worker.exit_code


class _Ended(Exception):  # noqa: N818 - it is how a run ends, not a mistake
    def __init__(self, error: SessionError) -> None:
        self.error = error


class _StandIn:
    def __init__(self, request: SessionRequest) -> None:
        self._request = request
        self._session_id = request.session_id or request.resume or str(uuid4())
        self._started = time.monotonic()
        self._response = ""
        self._tool_calls = 0
        self._minds_eof = request.lifeline
        self._has_result = False
        self.exit_code = 0
        for name in CANCEL_SIGNALS:
            signal.signal(signal.Signals[name], _cancel)

    def greet(self) -> None:
        """Say hello and have a session, which is kept where the host wants it."""
        versions = {"agentcell": __version__, "sdk": NAME, "cli": None}
        self._event({"type": "hello", "protocol": PROTOCOL, "pid": os.getpid(), **versions, "start": "cold"})
        self._keep()
        self._event({"type": "session_started", "session_id": self._session_id, "model": NAME})

    def do(self, step: Step) -> None:
        for _ in range(step.get("times", 1)):
            for verb in STEPS & step.keys():
                getattr(self, f"_{verb}")(step[verb])

    def finish(self, error: SessionError | None = None) -> None:
        """Write the result, unless a step has; its `outcome` comes first."""
        if not self._has_result:
            result = self._so_far() if error is None else self._so_far().as_error(error)
            self._event({"type": "outcome", "result": result.to_message(hosted=False)})
            self._write_result(result.to_message(hosted=False))

    def _event(self, event: dict[str, Any]) -> None:
        if is_wanted(event["type"], self._request.events):
            write_all(STDOUT, encode(event))

    def _keep(self) -> None:
        """Add to the session's conversation, if the host has made it a place; what is resumed must be there."""
        projects = Path(os.environ.get(CONFIG_DIRECTORY, ""), "projects")
        if not projects.is_symlink():
            return
        file = projects / NAME / f"{self._session_id}.jsonl"
        if self._request.resume is not None and not file.exists():
            raise _Ended(session_error(Category.UNKNOWN_SESSION, "the session to resume is not known here"))
        file.parent.mkdir(exist_ok=True)
        with file.open("ab") as conversation:
            conversation.write(encode({"type": "user", "content": self._request.starting_message}))

    def _text(self, block: str) -> None:
        self._response = block
        self._event({"type": "text", "text": block})

    def _tool(self, call: Mapping[str, Any]) -> None:
        self._tool_calls += 1
        tool_id = f"toolu_{self._tool_calls}"
        self._event({"type": "tool_use", "id": tool_id, "name": call["name"], "input": call.get("input", {})})
        self._event({"type": "tool_result", "id": tool_id, "is_error": False, "bytes": 0})

    def _emit(self, message: Mapping[str, Any]) -> None:
        write_all(STDOUT, encode(message))

    def _stdout(self, text: str) -> None:
        write_all(STDOUT, text.encode(errors="surrogateescape"))

    def _stderr(self, text: str) -> None:
        write_all(STDERR, text.encode(errors="surrogateescape"))

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def _hang(self, _true: bool) -> None:
        while self._minds_eof and os.read(STDIN, 4096):
            pass
        if self._minds_eof:
            raise _Ended(session_error(Category.HOST_LOST, "the host is gone: stdin has ended"))
        while True:
            signal.pause()

    def _ignore(self, names: Sequence[str]) -> None:
        for name in names:
            if name == "EOF":
                self._minds_eof = False
            else:
                signal.signal(signal.Signals[name], signal.SIG_IGN)

    def _spawn(self, argv: Sequence[str]) -> None:
        subprocess.Popen(argv, stdin=subprocess.DEVNULL)

    def _result(self, members: Mapping[str, Any]) -> None:
        self._write_result({**self._so_far().to_message(hosted=False), **members})

    def _fail(self, members: Mapping[str, Any]) -> None:
        error = session_error(**{**members, "category": Category(members["category"])})
        self._write_result(self._so_far().as_error(error).to_message(hosted=False))

    def _exit(self, code: int) -> None:
        os._exit(code)

    def _die(self, name: str) -> None:
        number = signal.Signals[name]
        if number is not signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _so_far(self) -> SessionResult:
        seconds = time.monotonic() - self._started
        return SessionResult(
            status="complete",
            response=self._response,
            session_name=self._request.session_name,
            id=self._request.identity,
            agent_type=self._request.agent_type,
            session_id=self._session_id,
            model=NAME,
            cost_usd=0.0,
            num_turns=1,
            stop_reason="end_turn",
            execution_time=seconds,
            working_time=seconds,
            tool_calls=self._tool_calls,
        )

    def _write_result(self, message: dict[str, Any]) -> None:
        self._has_result = True
        error = message.get("error")
        self.exit_code = exit_code(None if error is None else SessionError.model_validate(error))
        line = encode(message)
        if self._request.result_file is not None:
            Path(self._request.result_file).write_bytes(line)
        write_all(STDOUT, line)


def _steps(request: SessionRequest) -> Sequence[Step]:
    own = (request.context or {}).get("stand_in")
    if own is not None:
        _check(own)
        return list(own)
    if len(sys.argv) < 2:
        return []
    folder = Path(sys.argv[1])
    runs = json.loads((folder / RUNS_FILE).read_text("utf-8"))
    return list(runs[min(_number_of_start(folder, request.identity), len(runs) - 1)]) if runs else []


def _number_of_start(folder: Path, identity: str) -> int:
    """How often a worker was started for this id before; each start leaves an empty file."""
    digest = hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()
    for number in count():
        try:
            (folder / f"{digest}.{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return number
    raise AssertionError


def _check(run: Sequence[Step]) -> None:
    for step in run:
        verbs = step.keys() - {"times"}
        if len(verbs) != 1 or not verbs <= STEPS:
            raise ValueError(f"{dict(step)} is no step; a step has one of {', '.join(sorted(STEPS))}")


def _cancel(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    name = signal.Signals(number).name
    raise _Ended(session_error(Category.CANCELLED, f"the session was cancelled by {name}", signal=name))


if __name__ == "__main__":
    sys.exit(main())
