"""Whether generated tests can be used: what pytest, tsc and vitest make of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker.node_tools import IT, install_node_tools, put
from tests.worker.shop import ADDS, FIRST, SECOND, SECONDS, TAKES, VALID, interpreter_without

from agentcell_worker.checks import collecting
from agentcell_worker.checks.collecting import culprits
from agentcell_worker.checks.frameworks import detect_test_framework, only_tests
from agentcell_worker.checks.tests import validate_generated_tests
from agentcell_worker.checks.vitest import types_of

pytestmark = pytest.mark.anyio


async def validated(project: Path, *files: str) -> dict[str, Any]:
    with anyio.fail_after(SECONDS):
        return await validate_generated_tests(files, project)


async def test_no_files_are_not_valid(project: Path) -> None:
    found = await validated(project)
    assert found == {"valid": False, "issues": ["no test files were generated"], "warnings": []}


async def test_three_good_files_are_valid(project: Path) -> None:
    files = {FIRST: ADDS, SECOND: TAKES, "tests/deep/down_test.py": "def test_it():\n    assert True\n"}
    for name, content in files.items():
        put(project, name, content)
    with anyio.fail_after(SECONDS):
        assert await validate_generated_tests([FIRST, *map(Path, files)], project) == VALID


SYNTAX = "has a syntax error"

UNUSABLE: dict[str, tuple[str | bytes | None, str]] = {
    "tests/test_missing.py": (None, "there is no such file"),
    "tests/test_empty.py": ("", "is empty"),
    "tests/test_blank.py": (" \n\n", "is empty"),
    "tests/test_null.py": ("x = 1\0\n", SYNTAX),
    "tests/test_bytes.py": (b"x = '\xff'\n", SYNTAX),
    "tests/test_nested.py": ("(" * 10_000, f"{SYNTAX} in line 1: too many nested parentheses"),
    "tests/test_deep.py": ("x = " + "-" * 100_000 + "1\n", ""),
}
"""Content, and what is wrong with it."""


async def test_files_that_cannot_be_used_are_named(project: Path) -> None:
    put(project, FIRST, ADDS)
    for name, (content, _) in UNUSABLE.items():
        if content is not None:
            put(project, name, content)
    found = await validated(project, FIRST, *UNUSABLE)
    assert (found["valid"], len(found["issues"])) == (False, len(UNUSABLE))
    for issue, name in zip(found["issues"], sorted(UNUSABLE), strict=True):
        assert issue.startswith(f"{name}: {UNUSABLE[name][1]}")


async def test_files_that_are_not_collected_are_named(project: Path) -> None:
    odd = {
        "tests/test_import.py": "import nothing_of_that_name\n",
        "tests/test_none.py": "x = 1\n",
        "tests/test_skipped.py": "import pytest\n\npytest.skip('no', allow_module_level=True)\n",
    }
    for name, content in {FIRST: ADDS, **odd}.items():
        put(project, name, content)
    issues = [
        "tests/test_import.py: is not collected: ModuleNotFoundError: No module named 'nothing_of_that_name'",
        "tests/test_none.py: has no tests",
        "tests/test_skipped.py: has no tests",
    ]
    assert await validated(project, FIRST, *odd) == {"valid": False, "issues": issues, "warnings": []}


async def test_files_that_collect_alone_but_not_together_are_named(project: Path) -> None:
    same = ["tests/a/test_same.py", "tests/b/test_same.py"]
    for name in same:
        put(project, name, "def test_it():\n    assert True\n")
    with anyio.fail_after(SECONDS):
        found = await validate_generated_tests(same, project)
    assert found["valid"] is False
    assert found["issues"][0].startswith("tests/b/test_same.py: is not collected: ")


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ({"a"}, {"a": "is broken"}),
        ({"a", "b"}, {"a": "is broken", "b": "is broken"}),
        (set(), dict.fromkeys("abc", "they do not go together")),
    ],
)
async def test_of_files_that_all_fail_together_those_are_named_that_fail_alone(
    broken: set[str], named: dict[str, str]
) -> None:
    async def collect(files: Sequence[str]) -> dict[str, str]:
        if len(files) > 1:
            return dict.fromkeys(files, "they do not go together")
        return {file: "is broken" for file in files if file in broken}

    assert await culprits(collect, ["a", "b", "c"]) == named


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("addopts = --nonsense", "pytest.main(): error: unrecognized arguments: --nonsense"),
        ("addopts = -p nonsense", "ERROR: Error importing plugin \"nonsense\": No module named 'nonsense'"),
    ],
)
async def test_settings_that_pytest_refuses_are_named(project: Path, settings: str, reason: str) -> None:
    put(project, "pytest.ini", f"[pytest]\n{settings}\n")
    put(project, FIRST, ADDS)
    found = await validated(project, FIRST)
    assert found["issues"] == [f"{FIRST}: is not collected: pytest ended with exit code 4 ({reason})"]


@pytest.mark.parametrize(
    "report", ["[]", "{}", '{"exit_code": 0, "failed": 0, "items": [], "problems": {}}', '{"exit_code": NaN}']
)
async def test_a_report_of_another_shape_is_none(project: Path, report: str) -> None:
    write = f"pathlib.Path(sys.argv[1], 'report.json').write_text({report!r})"
    lines = ["import atexit, pathlib, sys", f"atexit.register(lambda: {write})"]
    put(project, FIRST, ADDS)
    put(project, "tests/conftest.py", "\n".join(lines))
    found = await validated(project, FIRST)
    assert found["issues"][0].startswith(f"{FIRST}: is not collected: pytest came to no end (exit code 0")


@pytest.mark.slow
@pytest.mark.parametrize(
    "conftest",
    [
        "import os\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
        "import time\ntime.sleep(600)\n",
        "raise RuntimeError('no')\n",
        "import os\nos.unlink(__file__)\n",
    ],
    ids=["leaves", "exits", "hangs", "raises", "vanishes"],
)
async def test_what_keeps_pytest_from_its_end_makes_the_tests_invalid(
    project: Path, monkeypatch: pytest.MonkeyPatch, conftest: str
) -> None:
    monkeypatch.setattr(collecting, "COLLECT_SECONDS", 1.0 if "sleep" in conftest else SECONDS)
    put(project, FIRST, ADDS)
    put(project, "tests/conftest.py", conftest)
    found = await validated(project, FIRST)
    assert found["valid"] is False
    assert found["issues"][0].startswith(f"{FIRST}: is not collected")


async def test_a_conftest_that_misbehaves_quietly_is_survived(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = project.parent / "environment.txt"
    lines = [
        "import os, pathlib, time",
        f"pathlib.Path({str(seen)!r}).write_text(repr(dict(os.environ)))",
        "print('flood ' * 100_000)",
        "if os.fork() == 0:",
        "    os.setsid()",
        "    time.sleep(600)",
    ]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("SOME_TOKEN", "some-secret")
    put(project, FIRST, ADDS)
    put(project, "tests/conftest.py", "\n".join(lines))
    with anyio.fail_after(SECONDS):
        assert await validate_generated_tests([FIRST], project) == VALID
    environment = seen.read_text()
    assert "secret" not in environment
    assert "PYTHONDONTWRITEBYTECODE" in environment


async def test_an_interpreter_that_does_not_run_leaves_the_syntax_to_this_one(project: Path) -> None:
    python = interpreter_without(project)
    put(project, ".venv/bin/python", "#!/bin/sh\nexit 3\n")
    put(project, FIRST, ADDS)
    put(project, SECOND, "def (\n")
    found = await validate_generated_tests([FIRST], project)
    text = f"{python} does not run (exit code 3): only the syntax was checked"
    assert found == {**VALID, "warnings": [text]}
    assert (await validate_generated_tests([SECOND], project))["issues"] == [
        f"{SECOND}: has a syntax error in line 1: invalid syntax"
    ]


async def test_an_interpreter_without_pytest_checks_the_syntax(project: Path) -> None:
    python = interpreter_without(project, "pytest")
    put(project, FIRST, "import nothing_of_that_name\n")
    text = f"pytest is not installed for {python}: only the syntax was checked"
    assert await validated(project, FIRST) == {**VALID, "warnings": [text]}


@pytest.mark.parametrize(
    ("analysis", "framework"),
    [
        ({}, "pytest"),
        ({"components": [], "hooks": []}, "pytest"),
        ({"components": ["Button"]}, "vitest"),
        ({"hooks": [{"name": "useCart"}]}, "vitest"),
        ({"functions": [{"name": "f", "file": "a.py"}], "notes": "nothing in TypeScript"}, "pytest"),
        ({"functions": [{"name": "f", "file": "src/a.ts"}]}, "vitest"),
        ({"files": {"src/Cart.TSX": 1}}, "vitest"),
        ({"files": (("a.py", ("b.tsx",)),)}, "vitest"),
    ],
)
def test_the_framework_follows_from_the_analysis(analysis: dict[str, Any], framework: str) -> None:
    assert detect_test_framework(analysis) == framework


def test_files_of_tests_are_told_by_their_names() -> None:
    files = ["a_test.py", "src/a.test.ts", "tests/a.py", "tests/a.test.tsx", "tests/b/c_test.py", "tests/test_a.py"]
    assert only_tests(files, "pytest") == ["tests/b/c_test.py", "tests/test_a.py"]
    assert only_tests(files, "vitest") == ["src/a.test.ts", "tests/a.test.tsx"]


@pytest.mark.parametrize(
    ("written", "issue"),
    [
        ({"a.test.ts": IT, "b.test.ts": "broken"}, "b.test.ts: is not collected (exit code 1: no)"),
        ({"a.test.ts": IT, "b.test.ts": "const x = 1"}, "b.test.ts: has no tests"),
        ({"b.test.ts": ""}, "b.test.ts: is empty"),
        ({"b.test.ts": b"\xff"}, "b.test.ts: is not UTF-8"),
    ],
)
async def test_what_vitest_does_not_collect_is_named(project: Path, written: dict[str, Any], issue: str) -> None:
    install_node_tools(project, tsc="exit 0")
    for name, content in written.items():
        put(project, name, content)
    found = await validate_generated_tests(list(written), project, "vitest")
    assert found == {"valid": False, "issues": [issue], "warnings": []}


@pytest.mark.parametrize("version", [None, "1.6.0"])
async def test_without_a_vitest_that_lists_only_the_files_are_checked(project: Path, version: str | None) -> None:
    install_node_tools(project, tsc="exit 0", version=version)
    put(project, "a.test.ts", "broken")
    found = await validate_generated_tests(["a.test.ts"], project, "vitest")
    text = "vitest is not installed, or too old to list tests: only existence and encoding were checked"
    assert found == {**VALID, "warnings": [text]}


async def test_without_settings_types_are_not_known(project: Path) -> None:
    install_node_tools(project, tsc="exit 0")
    assert await types_of(project) == "sound"
    (project / "tsconfig.json").unlink()
    assert await types_of(project) == "unknown"
