"""The legacy interface without a guard, as a function and as a file to be run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pytest

from agentcell_protocol.legacy import Outcome
from agentcell_worker import agent_subprocess
from agentcell_worker.agent_subprocess import main, run_agent_session

BOUND_SECONDS = 60.0
"""For the file to run; it takes a second."""

FILE = Path(agent_subprocess.__file__)

OPTIONS = ["--project-dir", ".", "--spec-dir", "spec", "--agent-type", "coder", "--message", "hi"]


class FakeClient:
    """An async context that remembers whether it is open."""

    def __init__(self) -> None:
        self.is_open = False

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False


class Session:
    """Takes the place of the worker's own, and keeps what it was asked for."""

    def __init__(self, ending: Callable[[], tuple[Any, ...]]) -> None:
        self.ending = ending
        self.client = FakeClient()
        self.created: tuple[Any, ...] = ()
        self.asked: tuple[Any, ...] = ()
        self.was_open = False

    def create_client(self, *arguments: Any) -> FakeClient:
        self.created = arguments
        return self.client

    async def run(self, client: FakeClient, message: str, spec_dir: object, **options: Any) -> tuple[Any, ...]:
        self.asked = (message, spec_dir, options)
        self.was_open = client.is_open
        return self.ending()


@pytest.fixture
def anyio_backend() -> str:
    """The SDK's side of the wire runs on asyncio."""
    return "asyncio"


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], tuple[Any, ...]]], Session]:
    def install(ending: Callable[[], tuple[Any, ...]]) -> Session:
        session = Session(ending)
        monkeypatch.setattr(agent_subprocess, "create_client", session.create_client)
        monkeypatch.setattr(agent_subprocess, "run_sdk_session", session.run)
        return session

    return install


Play = Callable[[Callable[[], tuple[Any, ...]]], Session]


@pytest.mark.anyio
@pytest.mark.parametrize("status", ["complete", "continue"])
async def test_a_session_that_ends_well_is_a_success(play: Play, status: str) -> None:
    session = play(lambda: (status, "done", {}, None))
    outcome = await run_agent_session("p", "s", "qa_fixer", "m", "do it", "a role", 5, "n")
    output = {"response": "done", "agent_type": "qa_fixer", "session_name": "n"}
    assert outcome == {"success": True, "output": output, "error": None}
    assert session.created == ("p", "s", "m", "qa_fixer", 5)
    assert session.asked == ("a role\n\ndo it", "s", {"phase": "validation"})
    assert (session.was_open, session.client.is_open) == (True, False)


@pytest.mark.anyio
async def test_without_a_system_prompt_the_message_goes_as_it_is(play: Play) -> None:
    session = play(lambda: ("complete", "done", {}, None))
    outcome = await run_agent_session("p", "s", "coder", None, "do it")
    assert outcome["output"] == {"response": "done", "agent_type": "coder", "session_name": "agent-session"}
    assert session.asked == ("do it", "s", {"phase": "coding"})


@pytest.mark.anyio
async def test_a_session_that_fails_gives_its_own_text(play: Play) -> None:
    play(lambda: ("error", "no credit", {}, None))
    assert await run_agent_session("p", "s", "coder", "m", "x") == _failed("no credit")


@pytest.mark.anyio
async def test_an_exception_is_told_as_a_failed_session(play: Play) -> None:
    def ending() -> tuple[Any, ...]:
        raise ConnectionError("the line is dead")

    session = play(ending)
    assert await run_agent_session("p", "s", "coder", "m", "x") == _failed("Agent session failed: the line is dead")
    assert not session.client.is_open


@pytest.mark.anyio
async def test_an_unknown_agent_type_is_told_as_a_failed_session() -> None:
    outcome = await run_agent_session("p", "s", "nobody", "m", "x")
    assert outcome["error"] is not None
    assert outcome["error"].startswith("Agent session failed: agent_type: 'nobody' is not known; use one of planner, ")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "Fatal error: the following arguments are required: --project-dir, --spec-dir, --agent-type"),
        (
            [*OPTIONS, "--message-file", "x"],
            "Fatal error: argument --message-file: not allowed with argument",
        ),
        (
            [*OPTIONS, "--agent-type", "nobody"],
            "Fatal error: agent_type: 'nobody' is not known; use one of ",
        ),
        ([*OPTIONS, "--project-dir", "nowhere"], "Fatal error: project_dir: "),
    ],
)
def test_bad_arguments_give_the_line_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    error: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    written = capfd.readouterr()
    answer = json.loads(written.out)
    assert (written.out.count("\n"), written.err) == (1, "")
    assert list(answer) == ["success", "output", "error", "execution_time"]
    assert (answer["success"], answer["output"]) == (False, None)
    assert answer["error"].startswith(error)


def test_the_file_gives_the_line_and_the_exit_code(tmp_path: Path) -> None:
    ended = _run([str(FILE)], tmp_path)
    assert (ended.returncode, ended.stdout.count(b"\n"), ended.stderr) == (1, 1, b"")
    assert json.loads(ended.stdout)["error"].startswith("Fatal error: the following arguments are required: ")


def test_the_file_shadows_nothing_when_it_is_run_by_its_path(tmp_path: Path) -> None:
    for name in ("session.py", "argparse.py"):
        (tmp_path / name).write_text("raise SystemExit('the project was imported')")
    look = b"import sys; print([folder for folder in sys.path if folder.endswith('agentcell_worker')])\n"
    ended = _run(["-i", "-q", str(FILE)], tmp_path, stdin=look)
    assert ended.stdout.splitlines()[-1] == b"[]"


def test_a_reader_that_has_left_causes_no_traceback(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nowhere:
        ended = _run([str(FILE), "--bad"], tmp_path, stdout=nowhere)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_the_file_says_how_it_is_used(tmp_path: Path) -> None:
    ended = _run([str(FILE), "--help"], tmp_path)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"--message-file FILE" in ended.stdout


def test_importing_it_does_not_import_the_sdk(tmp_path: Path) -> None:
    code = "import sys, agentcell_worker.agent_subprocess; print('claude_agent_sdk' in sys.modules)"
    assert _run(["-c", code], tmp_path).stdout == b"False\n"


def _failed(error: str) -> Outcome:
    return {"success": False, "output": None, "error": error}


def _run(
    arguments: list[str], home: Path, stdin: bytes = b"", stdout: int | IO[bytes] = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        cwd=home,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=BOUND_SECONDS,
        check=False,
    )
