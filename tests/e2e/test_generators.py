"""Flows whose agents write real files into a scratch repository, through `agentcell-worker`."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentcell.offline import ModelRequest, offline_environment, offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 120

GUARD = Path(sys.executable).with_name("agentcell-worker")

GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_NAME": "A. Tester" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "tester@example.org" for who in ("AUTHOR", "COMMITTER")},
}
"""Makes git work the same for everybody."""

CODE = '''def area(width: float, height: float) -> float:
    """What lies within."""
    return width * height


def edge(width, height):
    return 2 * (width + height)
'''


@dataclass(frozen=True)
class Served:
    """What a request came to: the lines, the last of which is the result, and what the model was asked."""

    exit_code: int
    lines: Sequence[dict[str, Any]]
    requests: Sequence[ModelRequest]

    @property
    def result(self) -> dict[str, Any]:
        """The result."""
        return self.lines[-1]

    @property
    def prompt(self) -> str:
        """What was asked first."""
        return next(asked.prompt for asked in self.requests if asked.kind == "turn")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shape.py").write_text(CODE)
    (folder / "NOTES.md").write_text("# Notes\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def git(folder: Path, *arguments: str) -> str:
    """What git prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **GIT}
    ended = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, capture_output=True, timeout=BOUND_SECONDS, check=True
    )
    return ended.stdout.decode().strip()


def serve(home: Path, turns: Sequence[Mapping[str, Any]], **members: Any) -> Served:
    """What `agentcell-worker` gives for the request while the model takes these turns."""
    line = json.dumps({"session_name": "a", "events": "summary", **members}) + "\n"
    with offline_model({"turns": turns}) as endpoint:
        ended = subprocess.run(
            [GUARD],
            input=line.encode(),
            env={**offline_environment(endpoint, home), **GIT},
            cwd=home,
            capture_output=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
        requests = list(endpoint.requests)
    return Served(ended.returncode, [json.loads(each) for each in ended.stdout.splitlines()], requests)


def tool(name: str, **given: Any) -> dict[str, Any]:
    """A turn that calls one tool."""
    return {"tools": [{"name": name, "input": given}]}


def test_documentation_is_asked_for_written_and_checked(tmp_path: Path, project: Path) -> None:
    turns = [
        tool("Read", file_path=str(project / "shape.py")),
        tool(
            "Write", file_path="docs/index.md", content="# Shapes\n\nSee [the code](../shape.py) and [more](more.md).\n"
        ),
        tool("Write", file_path=str(project / "node_modules" / "README.md"), content="no heading\n"),
        tool(
            "Edit",
            file_path=str(project / "shape.py"),
            old_string="def edge(width, height):\n",
            new_string='def edge(width, height):\n    """What lies around."""\n',
        ),
        {"text": "I have documented it."},
    ]
    served = serve(
        tmp_path,
        turns,
        agent_type="documentation_generator",
        project_dir=str(project),
        starting_message="Write in French.",
    )
    assert (served.exit_code, served.result["status"]) == (0, "complete")
    assert served.result["flow"] == {
        "generated_files": ["docs/index.md", "node_modules/README.md", "shape.py"],
        "success": True,
        "error": None,
        "validation": {
            "valid": False,
            "issues": [
                "docs/index.md: links to more.md, which does not exist",
                "node_modules/README.md: has no heading",
            ],
        },
        "session_ids": [served.result["session_id"]],
    }
    assert served.result["response"] == "I have documented it."
    assert (project / "shape.py").read_text().count('"""') == 4
    assert served.prompt.startswith("# Role\n")
    assert f"`{project}`" in served.prompt
    assert served.prompt.endswith("\n\nWrite in French.")
    told = json.loads(served.prompt.partition("```json\n")[2].rpartition("\n```")[0])
    assert {"name": "edge", "file": "shape.py", "line": 6} in told["missing_docstrings"]
    kinds = [line["type"] for line in served.lines]
    assert (kinds[0], kinds[-2:], kinds.count("outcome")) == ("hello", ["outcome", "result"], 1)
    checks = [(line["name"], line["state"]) for line in served.lines if line["type"] == "check"]
    assert checks == [(name, state) for name in ("analyse", "validate") for state in ("started", "ended")]


MIGRATE = """
set -eu
mkdir -p .migration-checkpoints/rollback
echo .migration-checkpoints/ >> .git/info/exclude
git rev-parse HEAD > .migration-checkpoints/checkpoint-001-commit.txt
printf '#!/bin/sh\\nset -eu\\ngit restore --source=%s -- .\\n' "$(git rev-parse HEAD)" \
  > .migration-checkpoints/rollback/checkpoint-001.sh
chmod +x .migration-checkpoints/rollback/checkpoint-001.sh
sed -i 's/area/surface/' shape.py
git commit --quiet --all --message 'Rename area'
git rev-parse HEAD > .migration-checkpoints/checkpoint-002-commit.txt
"""


def test_a_migration_leaves_checkpoints_that_lead_back(tmp_path: Path, project: Path) -> None:
    spec = tmp_path / "spec"
    spec.mkdir()
    turns = [
        tool("Write", file_path=str(spec / "migration_plan.md"), content="# Plan\n"),
        tool("Bash", command=MIGRATE),
        {"text": "It is migrated."},
    ]
    served = serve(
        tmp_path,
        turns,
        agent_type="migration_assistant",
        project_dir=str(project),
        spec_dir=str(spec),
        context={"migration_context": {"from": "area", "to": "surface"}},
    )
    assert (served.exit_code, served.result["permission_denials"]) == (0, [])
    commit = git(project, "rev-parse", "HEAD")
    folder = ".migration-checkpoints"
    assert served.result["flow"] == {
        "checkpoints_created": 2,
        "success": True,
        "migration_plan_path": str(spec / "migration_plan.md"),
        "validation": {
            "valid": True,
            "issues": [],
            "checkpoint_info": {
                "file": f"{folder}/checkpoint-002-commit.txt",
                "commit": commit,
                "commit_exists": True,
                "count": 2,
                "rollback_scripts": [f"{folder}/rollback/checkpoint-001.sh"],
            },
        },
        "session_ids": [served.result["session_id"]],
    }
    assert '```json\n{"from":"area","to":"surface"}\n```' in served.prompt
    assert "surface" in (project / "shape.py").read_text()
    subprocess.run(
        [project / folder / "rollback" / "checkpoint-001.sh"],
        cwd=project,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **GIT},
        timeout=BOUND_SECONDS,
        check=True,
    )
    assert (project / "shape.py").read_text() == CODE


def test_the_command_line_takes_a_context_from_a_file_and_works_in_the_project_it_names(
    tmp_path: Path, project: Path
) -> None:
    (tmp_path / "context.json").write_text('{"analysis_results": {"functions": [{"name": "edge"}]}}')
    where = ["--context", "context.json", "-C", "project"]
    turns = [tool("Write", file_path="docs/index.md", content="# Shapes\n"), {"text": "I have documented it."}]
    with offline_model({"turns": turns}) as endpoint:
        ended = subprocess.run(
            [GUARD.with_name("agentcell"), "run", "--json", "--agent-type", "documentation_generator", *where],
            env=offline_environment(endpoint, tmp_path),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
        prompt = endpoint.requests[0].prompt
    result = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr, result["flow"]["generated_files"]) == (0, b"", ["docs/index.md"])
    assert prompt.endswith('```json\n{"functions":[{"name":"edge"}]}\n```')
    assert (project / "docs" / "index.md").read_text() == "# Shapes\n"


def test_fixtures_are_written_and_listed(tmp_path: Path, project: Path) -> None:
    conftest = "import pytest\n\n\n@pytest.fixture\ndef square():\n    return 2, 2\n"
    turns = [
        tool("Write", file_path="tests/conftest.py", content=conftest),
        tool("Bash", command="cp shape.py tests/shapes.txt"),
        {"text": "I have written fixtures."},
    ]
    served = serve(
        tmp_path,
        turns,
        agent_type="fixture_generator",
        project_dir=str(project),
        context={"analysis_results": {"functions": [{"name": "area", "file": "shape.py", "line": 1}]}},
    )
    assert (served.exit_code, served.result["status"], served.result["permission_denials"]) == (0, "complete", [])
    assert served.result["flow"] == {
        "generated_files": ["tests/conftest.py", "tests/shapes.txt"],
        "success": True,
        "error": None,
        "framework": "pytest-fixtures",
        "session_ids": [served.result["session_id"]],
    }
    assert '```json\n{"functions":[{"name":"area","file":"shape.py","line":1}]}\n```' in served.prompt
    assert (project / "tests" / "conftest.py").read_text() == conftest
