"""A Python that will not do is named before anything is made with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.meta.source import ROOT

MAKE_SECONDS = 60

OLD = """#!/bin/sh
exec '{python}' -c 'import sys; sys.version_info = (3, 9, 18); exec(sys.argv[1])' "$2"
"""
"""Runs what comes after -c, as a Python 3.9 would."""


def makes_demo(folder: Path, python: Path) -> subprocess.CompletedProcess[str]:
    """`make demo` where there is no environment yet."""
    return subprocess.run(
        ["make", "demo", f"VENV={folder}/venv", f"PYTHON={python}"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},  # and nothing of a make that runs the tests
        capture_output=True,
        text=True,
        check=False,
        timeout=MAKE_SECONDS,
    )


@pytest.mark.parametrize(("name", "what"), [("old", "is Python 3.9"), ("none", "cannot be run")])
def test_a_python_that_will_not_do_is_told_what_it_is(tmp_path: Path, name: str, what: str) -> None:
    old = tmp_path / "old"
    old.write_text(OLD.format(python=sys.executable))
    old.chmod(0o755)
    ended = makes_demo(tmp_path, tmp_path / name)
    needs = "and agentcell needs Python 3.11 or newer: make demo PYTHON=/path/to/python3.11"
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[0] == f"{tmp_path / name} {what}, {needs}"
    assert not (tmp_path / "venv").exists()
