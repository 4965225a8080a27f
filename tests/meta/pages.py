"""The pages that people read, and what they tell them to type."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.meta.source import ROOT

RUN_SECONDS = 120
"""For what takes seconds; a busy machine may need ten times that."""


def page(name: str) -> str:
    """The text of a page, by its path in the project."""
    return (ROOT / name).read_text("utf-8")


def blocks(text: str) -> list[tuple[str, str]]:
    """Its blocks of code, each with its language."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def installed(home: Path) -> dict[str, str]:
    """The environment of somebody who has installed it, and has nothing else."""
    programs = Path(sys.executable).parent
    return {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}


def run_block(language: str, block: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a `python` or `bash` block as it is, in the `project` below `folder`; its stdout. It must succeed."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    script = folder / "block"
    script.write_text(block, "utf-8")
    argv = [sys.executable, str(script)] if language == "python" else ["bash", "-euo", "pipefail", str(script)]
    ended = subprocess.run(
        argv,
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_SECONDS,
    )
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"
    return ended.stdout
