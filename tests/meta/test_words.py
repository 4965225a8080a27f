"""Nothing in the project points at one machine, at one registry, or at work that is left to do."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.meta.source import ROOT

SKIPPED = {".git", ".venv", "dist", "build", "__pycache__"}
SUFFIXES = {"", ".cfg", ".json", ".jsonl", ".md", ".mjs", ".pl", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}

FILES = sorted(
    path
    for path in ROOT.rglob("*")
    if path.is_file()
    and path.suffix in SUFFIXES
    and not any(part in SKIPPED or part.endswith("_cache") for part in path.relative_to(ROOT).parts)
    and ".hypothesis" not in path.parts
    and path != Path(__file__).resolve()
)

UNWANTED = re.compile(
    r"""
    \b(?:TODO|FIXME|XXX|HACK)\b        # work that is left
    | (?<![\w.])/(?:work|root)/        # one machine
    | \b(?:pypi|pythonhosted|artifactory|nexus)\.[a-z] | /simple/   # a registry
    | \b(?:CASES|FACTS|STYLE|DESIGN)(?:\.md)?\b   # papers that are not in the project
    """,
    re.VERBOSE,
)

PIN = re.compile(r"^[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*$")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_no_word_that_means_something_elsewhere_only(path: Path) -> None:
    found = [(number, line) for number, line in enumerate(lines(path), 1) if UNWANTED.search(line)]
    assert found == []


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8", errors="replace").splitlines()


def test_the_constraints_are_names_and_versions_only() -> None:
    assert [line for line in lines(ROOT / "constraints.txt") if not PIN.match(line)] == []


def test_everything_that_is_installed_for_the_project_is_constrained() -> None:
    pinned = {canonical(line.partition("==")[0]): line.partition("==")[2] for line in lines(ROOT / "constraints.txt")}
    needed = closure("agentcell", {"dev", "test"})
    assert {name: distribution(name).version for name in sorted(needed)} == dict(sorted(pinned.items()))


def closure(name: str, extras: set[str]) -> set[str]:
    """The canonical names of all distributions that `name` needs, however far down."""
    found: set[str] = set()
    waiting = [(name, frozenset(extras))]
    done = set()
    while waiting:
        item = waiting.pop()
        if item in done:
            continue
        done.add(item)
        for text in distribution(item[0]).requires or []:
            requirement = Requirement(text)
            environments = [{"extra": extra} for extra in (*item[1], "")]
            if requirement.marker is None or any(requirement.marker.evaluate(each) for each in environments):
                found.add(canonical(requirement.name))
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return found - {canonical(name)}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_extras_have_no_name_twice() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for names in project["optional-dependencies"].values():
        assert names == sorted(set(names), key=str.lower)
