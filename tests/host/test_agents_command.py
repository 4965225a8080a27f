"""`agentcell agents`: which agent types there are, for people and for programs."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agentcell import agents
from agentcell.cli import agentcell
from agentcell_worker.agents.registry import AGENT_CONFIGS, BUILD_TOOLS

REVIEWER = """---
name: reviewer
description: Reads "{title}", changes nothing.
tools: Read, Grep
disallowedTools: WebFetch
model: opus
permissionMode: plan
---
You review.
"""

CODER: dict[str, Any] = {
    "name": "coder",
    "description": AGENT_CONFIGS["coder"].description,
    "phase": "coding",
    "tools": list(BUILD_TOOLS),
    "disallowed_tools": [],
    "permission_mode": "acceptEdits",
    "model": None,
    "context": {},
    "needs_message": True,
    "source": "built-in",
    "notes": [],
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(agentcell, ["agents", *arguments])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "agents"
    directory.mkdir()
    (directory / "reviewer.md").write_text(REVIEWER.format(title="code"))
    return directory


def test_each_built_in_type_is_a_line_of_json() -> None:
    ended = run("--json")
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert [line["name"] for line in lines] == list(AGENT_CONFIGS)
    assert lines[1] == CODER
    contexts = {line["name"]: line["context"] for line in lines}
    assert contexts["test_generator"] == {
        "analysis_results": "object",
        "generate_fixtures_first": "boolean",
        "python": "string",
        "minimum_coverage": "number",
    }
    assert [line["name"] for line in lines if not line["needs_message"]] == list(AGENT_CONFIGS)[4:]


def test_a_type_of_the_user_comes_after_them(directory: Path) -> None:
    ended = run("--json", "--agents-dir", str(directory))
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert (ended.exit_code, ended.stderr, len(lines)) == (0, "", len(AGENT_CONFIGS) + 1)
    assert lines[-1] == {
        "name": "reviewer",
        "description": 'Reads "code", changes nothing.',
        "phase": "coding",
        "tools": ["Read", "Grep"],
        "disallowed_tools": ["WebFetch"],
        "permission_mode": "plan",
        "model": "opus",
        "context": {},
        "needs_message": True,
        "source": str(directory / "reviewer.md"),
        "notes": [],
    }


def test_the_table_has_every_type_and_its_tools(directory: Path) -> None:
    ended = run("--agents-dir", str(directory))
    rows = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert ended.exit_code == 0
    assert [line for line in ended.stdout.splitlines() if line.endswith(" ")] == []
    assert [row.split()[0] for row in rows if row.split()[0] in {*AGENT_CONFIGS, "reviewer"}] == [
        *AGENT_CONFIGS,
        "reviewer",
    ]
    assert rows[-6:] == [
        'reviewer coding Reads "code", changes nothing.',
        "tools: Read, Grep",
        "refused: WebFetch",
        "permission mode: plan",
        "model: opus",
        f"from: {directory / 'reviewer.md'}",
    ]
    assert "context: migration_context (object)" in rows
    assert rows.count("message: not needed") == 4


def test_what_is_odd_about_a_definition_is_a_note(directory: Path) -> None:
    (directory / "reviewer.md").write_text(REVIEWER.format(title="code").replace("Read, Grep", "Raed\ncolor: red"))
    ended = run("--agents-dir", str(directory))
    rows = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert rows[-2:] == [
        "note: reviewer.md sets what has no effect here: color",
        "note: reviewer.md names Raed, which is no known tool; did you mean Read?",
    ]


def test_the_table_is_on_one_line_each_and_drives_no_terminal(directory: Path) -> None:
    (directory / "reviewer.md").write_text(REVIEWER.format(title="\\e[31m" + "long " * 200))
    ended = run("--agents-dir", str(directory))
    assert (ended.exit_code, "\x1b" in ended.stdout) == (0, False)
    [row] = [line for line in ended.stdout.splitlines() if line.startswith("reviewer")]
    assert row.rstrip().endswith("…")


def test_a_definition_that_cannot_be_used_is_told_and_the_others_are_listed(directory: Path) -> None:
    (directory / "broken.md").write_text("You are nobody.\n")
    ended = run("--json", "--agents-dir", str(directory))
    assert ended.exit_code == 1
    assert json.loads(ended.stdout.splitlines()[-1])["name"] == "reviewer"
    assert ended.stderr == (
        "broken.md: it has no front matter; begin the file with a line ---, then name: NAME and further members, "
        "then a line ---, then the role prompt\n"
    )


def test_a_directory_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    ended = run("--agents-dir", str(tmp_path / "nowhere"))
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"Invalid value for --agents-dir: {tmp_path}/nowhere is not a directory; name the " in ended.stderr


def test_a_directory_that_cannot_be_read_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.isdir", lambda _: True)
    missing = tmp_path / "nowhere"
    ended = run("--json", "--agents-dir", str(missing))
    assert (ended.exit_code, len(ended.stdout.splitlines())) == (1, len(AGENT_CONFIGS))
    remedy = "name the directory that holds the definitions of agent types"
    assert ended.stderr == f"agents_dir: {missing} cannot be read: No such file or directory; {remedy}\n"


def test_the_listing_is_not_what_lies_in_the_directory_it_is_asked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "yaml.py").write_text("raise SystemExit('imported from the project')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run().exit_code == 0


@dataclass(frozen=True)
class Trouble:
    """What the worker's place is taken by, and what is said of it."""

    program: str
    told: str


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble("import sys; sys.exit('first\\nno module')", "the worker ended with 1: no module"),
        Trouble("print('hello')", "the worker did not list them in lines of JSON: "),
        Trouble("import signal; signal.pause()", "the worker did not list them within "),
    ],
    ids=["ends", "babbles", "hangs"],
)
def test_a_worker_that_does_not_list_them_is_an_error(trouble: Trouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "LISTING", (sys.executable, "-I", "-S", "-c", trouble.program))
    monkeypatch.setattr(agents, "LISTING_SECONDS", 1.0 if "pause" in trouble.program else agents.LISTING_SECONDS)
    ended = run()
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"Error: {trouble.told}")
    assert ended.stderr.endswith("; agentcell doctor says what is wrong\n")


def test_a_worker_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "LISTING", ("/nonexistent/python",))
    ended = run()
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr == (
        "Error: the worker does not start: No such file or directory; agentcell doctor says what is wrong\n"
    )


def test_the_worker_prints_the_same_without_its_host(directory: Path) -> None:
    argv = [sys.executable, "-P", "-m", "agentcell_worker.agents", "--agents-dir"]
    missing = directory / "nowhere"
    ended = subprocess.run([*argv, missing], capture_output=True, timeout=60, check=True)
    *types, problem = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["name"] for line in types] == list(AGENT_CONFIGS)
    assert problem == {
        "file": "agents_dir",
        "reason": f"{missing} cannot be read: No such file or directory",
        "remedy": "name the directory that holds the definitions of agent types",
    }
