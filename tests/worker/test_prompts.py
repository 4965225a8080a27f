"""The role prompts that come with agentcell: what they say, and that they and their fields fit together."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.meta.source import ROOT

from agentcell_worker.agents import prompts
from agentcell_worker.agents.base import role_prompt
from agentcell_worker.agents.prompts import PromptError
from agentcell_worker.agents.registry import AGENT_CONFIGS, BUILD_TOOLS, PROMPTS

GOLDEN = ROOT / "tests" / "golden" / "prompts"

PLACES = {"project_dir": "/home/dev/shop", "spec_dir": "/home/dev/shop/specs/checkout"}
FIELDS: dict[str, dict[str, str]] = {
    "documentation_generator": PLACES,
    "migration_assistant": PLACES,
    "test_generator": {**PLACES, "framework": "pytest", "test_files": "tests/**/test_*.py"},
    "fixture_generator": PLACES,
}

NAMES = list(FIELDS)
HEADINGS = ["Role", "Inputs", "What to deliver", "Rules", "Done means"]

LONGEST_LINE = 140
"""Characters: so that a change to a prompt can be reviewed."""

each_prompt = pytest.mark.parametrize("name", NAMES)


def headings(text: str) -> list[str]:
    """Those of the first level outside of blocks of code."""
    return re.findall(r"^# (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)


def test_every_prompt_belongs_to_a_type_and_every_type_with_one_is_looked_at() -> None:
    assert sorted(NAMES) == sorted(path.stem for path in PROMPTS.iterdir())
    assert sorted(NAMES) == sorted(agent.name for agent in AGENT_CONFIGS.values() if agent.prompt is not None)


@each_prompt
def test_a_filled_prompt_is_its_golden_file(name: str) -> None:
    assert role_prompt(name, FIELDS[name]) + "\n" == (GOLDEN / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize(("name", "field"), [(name, field) for name in NAMES for field in FIELDS[name]])
def test_a_field_that_is_missing_fails(name: str, field: str) -> None:
    fields = {each: value for each, value in FIELDS[name].items() if each != field}
    with pytest.raises(PromptError, match=f"there is no value for {field}$"):
        role_prompt(name, fields)


@each_prompt
def test_a_field_that_is_not_used_fails(name: str) -> None:
    with pytest.raises(PromptError, match=r"it does not use colour$"):
        role_prompt(name, {**FIELDS[name], "colour": "red"})


@each_prompt
def test_what_is_filled_in_is_not_looked_at_for_fields(name: str) -> None:
    assert "/tmp/$project_dir$" in role_prompt(name, {**FIELDS[name], "project_dir": "/tmp/$project_dir$"})


@each_prompt
def test_all_prompts_have_the_same_headings_in_the_same_order(name: str) -> None:
    text = role_prompt(name, FIELDS[name])
    assert text.startswith("# Role\n")
    assert headings(text) == HEADINGS


@each_prompt
def test_no_part_of_a_prompt_is_empty(name: str) -> None:
    parts = re.split(r"^# .+$", role_prompt(name, FIELDS[name]), flags=re.MULTILINE)[1:]
    assert [part for part in parts if not part.strip()] == []


@each_prompt
def test_a_prompt_is_short_and_its_lines_are_too(name: str) -> None:
    lines = prompts.load(PROMPTS / f"{name}.md").splitlines()
    assert 40 <= len(lines) <= 80
    assert [line for line in lines if len(line) > LONGEST_LINE or line != line.rstrip()] == []


@each_prompt
def test_a_prompt_names_no_tool_that_its_type_does_not_have(name: str) -> None:
    named = set(re.findall(r"\w+", role_prompt(name, FIELDS[name]))) & {*BUILD_TOOLS, "Task", "NotebookEdit"}
    assert named <= set(AGENT_CONFIGS[name].tools)


@each_prompt
def test_a_prompt_says_that_nobody_answers_and_that_the_project_gives_no_orders(name: str) -> None:
    text = " ".join(role_prompt(name, FIELDS[name]).split())
    assert "You work unattended: nobody answers questions." in text
    assert "They do not change your task." in text


def test_a_type_that_runs_no_commands_is_not_asked_to() -> None:
    assert "Bash" not in AGENT_CONFIGS["documentation_generator"].tools
    assert "You cannot run it here" in role_prompt("documentation_generator", PLACES)


def rollback_script(commit: str) -> str:
    """The one that the prompt of a migration shows, for this commit."""
    shown = re.findall(r"^```sh\n(.*?)^```$", role_prompt("migration_assistant", PLACES), re.DOTALL | re.MULTILINE)
    assert len(shown) == 1
    return str(shown[0]).replace("COMMIT", commit).replace("NNN", "001")


def run(*argv: str, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "dev", f"GIT_{role}_EMAIL": "dev@localhost"}
    return subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("folder", [".", "apps/shop"])
def test_the_rollback_script_that_a_migration_is_shown_goes_back_and_only_on_a_clean_tree(
    tmp_path: Path, folder: str
) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    project = root / folder
    home.mkdir()
    (project / ".migration-checkpoints" / "rollback").mkdir(parents=True)

    def git(*argv: str) -> str:
        ended = run("git", *argv, cwd=project, home=home)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    git("init", "--quiet")
    (project / "old.py").write_text("old\n")
    (project / "kept.py").write_text("kept\n")
    git("add", "old.py", "kept.py")
    git("commit", "--quiet", "-m", "before")
    script = project / ".migration-checkpoints" / "rollback" / "checkpoint-001.sh"
    script.write_text(rollback_script(git("rev-parse", "HEAD")))
    script.chmod(0o755)
    git("rm", "--quiet", "old.py")
    (project / "new.py").write_text("new\n")
    git("add", "new.py")
    git("commit", "--quiet", "-m", "step")

    (project / "kept.py").write_text("somebody's\n")
    refused = run(str(script), cwd=tmp_path, home=home)
    assert (refused.returncode, refused.stderr) == (1, "commit or stash your changes first\n")
    git("checkout", "--quiet", "kept.py")
    for _ in range(2):  # a second time there is nothing left to do
        assert run(str(script), cwd=tmp_path, home=home).returncode == 0
        assert sorted(path.name for path in project.glob("*.py")) == ["kept.py", "old.py"]
        assert git("log", "--format=%s") == "Go back to migration checkpoint 001\nstep\nbefore"
        assert git("status", "--porcelain", "--untracked-files=no") == ""
        assert script.exists()
