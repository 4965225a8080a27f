"""Tests written into a scratch repository by an agent on the real CLI, through `agentcell-worker`."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.ending import ending
from tests.worker.shop import SHOP, put_quick_python

from agentcell.offline import offline_environment, offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 240
"""For three sessions and two rounds of checks, which take some fifteen seconds on an idle machine."""

GUARD = Path(sys.executable).with_name("agentcell-worker")

CONFTEST = """\
import os
import pathlib

import pytest

pathlib.Path({record!r}).write_text("\\n".join(os.environ))


@pytest.fixture
def pair():
    return 3, 2
"""

ADDS = "from shop import add\n\n\ndef test_adds(pair):\n    assert add(*pair) == 5\n"

TAKES = """\
import pytest
from shop import take


def test_takes(pair):
    assert take(*pair) == 1


def test_takes_no_more_than_there_is():
    with pytest.raises(ValueError, match="too little"):
        take(1, 2)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with code and no tests."""
    folder = tmp_path / "a project"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": os.devnull}
    identity = ["-c", "user.name=A. Tester", "-c", "user.email=tester@example.org"]
    for arguments in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message", "Begin"]):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, timeout=BOUND_SECONDS, check=True)
    return folder


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter for the checks."""
    return put_quick_python(tmp_path / "python")


def writes(**files: str) -> list[dict[str, Any]]:
    """The turns of a session that writes these files below tests/."""
    calls = [
        {"name": "Write", "input": {"file_path": f"tests/{name}.py", "content": text}} for name, text in files.items()
    ]
    return [{"tools": calls}, {"text": "Done."}]


def serve(home: Path, *sessions: list[dict[str, Any]], **members: Any) -> tuple[int, list[dict[str, Any]], list[str]]:
    """The exit code, the lines that `agentcell-worker` gives, and what each session was asked."""
    script = [{"session": number, "turns": turns} for number, turns in enumerate(sessions, 1)]
    request = {"session_name": "a", "agent_type": "test_generator", "events": "summary", **members}
    with offline_model({"sessions": script}) as endpoint:
        ended = subprocess.run(
            [GUARD],
            input=json.dumps(request).encode() + b"\n",
            env=offline_environment(endpoint, home),
            cwd=home,
            capture_output=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
        prompts = {asked.session_id: asked.prompt for asked in endpoint.requests[::-1] if asked.kind == "turn"}
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()], list(prompts.values())[::-1]


def test_tests_are_written_checked_measured_and_improved(tmp_path: Path, project: Path, python: str) -> None:
    record = tmp_path / "environment.txt"
    exit_code, lines, prompts = serve(
        tmp_path,
        writes(conftest=CONFTEST.format(record=str(record))),
        writes(test_add=ADDS),
        writes(test_take=TAKES),
        project_dir=str(project),
        context={"python": python, "minimum_coverage": 90},
    )
    result = lines[-1]
    ids = [line["session_id"] for line in lines if line["type"] == "session_started"]
    assert (exit_code, result["status"], result["error"], result["warnings"]) == (0, "complete", None, [])
    assert result["flow"] == {
        "generated_files": ["tests/test_add.py", "tests/test_take.py"],
        "success": True,
        "error": None,
        "framework": "pytest",
        "coverage_analyzed": True,
        "coverage_percent": 100.0,
        "coverage_percent_before": 50.0,
        "coverage_gaps": 0,
        "gaps": [],
        "improved": True,
        "fixture_files": ["tests/conftest.py"],
        "validation": {"valid": True, "issues": [], "warnings": []},
        "session_ids": ids,
    }
    assert (len(set(ids)), result["session_id"], result["num_turns"]) == (3, ids[1], 6)
    roles = [prompt.splitlines()[2].partition(" for ")[0] for prompt in prompts]
    assert roles == ["You write pytest fixtures", "You write tests", "You write tests"]
    assert "- shop.py: 6-8 (50 % covered)\n" in prompts[2]
    checks = [line["name"] for line in lines if line["type"] == "check" and line["state"] == "ended"]
    assert checks == ["analyse", "validate", "coverage", "validate", "coverage"]
    variables = record.read_text().split()
    assert "AGENTCELL_CELL" in variables
    assert [name for name in variables if name.startswith(("ANTHROPIC", "CLAUDE"))] == []
    left = sorted(path.relative_to(project).as_posix() for path in project.rglob("*") if ".git" not in path.parts)
    assert left == ["shop.py", "tests", "tests/conftest.py", "tests/test_add.py", "tests/test_take.py"]


HANGS = """\
import os
import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
os.write(os.open({pipe!r}, os.O_WRONLY), b"here")
time.sleep(600)
"""


def test_a_check_ends_with_the_session_that_is_cancelled(tmp_path: Path, project: Path, python: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (project / "tests").mkdir()
    (project / "tests" / "conftest.py").write_text(HANGS.format(pipe=str(pipe)))
    context = {"python": python, "generate_fixtures_first": False}
    request = {"session_name": "a", "agent_type": "test_generator", "project_dir": str(project), "context": context}
    life = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with (
            offline_model({"turns": writes(test_add=ADDS)}) as endpoint,
            ending(
                subprocess.Popen(
                    [GUARD],
                    env=offline_environment(endpoint, tmp_path),
                    cwd=tmp_path,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                ),
                BOUND_SECONDS,
            ) as guard,
        ):
            assert guard.stdin is not None
            guard.stdin.write(json.dumps(request).encode() + b"\n")
            guard.stdin.flush()
            assert select.select([life], [], [], BOUND_SECONDS)[0] == [life]
            guard.send_signal(signal.SIGTERM)
            out, _ = guard.communicate(timeout=BOUND_SECONDS)
        said = b"here"
        while said:  # the end comes when nobody holds the other end
            assert select.select([life], [], [], BOUND_SECONDS)[0] == [life]
            said = os.read(life, 100)
    finally:
        os.close(life)
    result = json.loads(out.splitlines()[-1])
    assert (result["error"]["category"], result["error"]["details"]["signal"]) == ("cancelled", "SIGTERM")
