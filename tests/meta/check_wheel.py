"""Builds the wheel, installs it alone in a new environment, and runs it there as a user would.

Run by `make wheel`. Nothing of the source tree can help: the commands run in an empty directory, with an
environment that knows only where to look for programs.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[2]

KINDS = ("request", "event", "result", "serve-input", "serve-output")

PROMPTS = ROOT / "worker" / "agentcell_worker" / "prompts"

PACKAGES = {"agentcell", "agentcell_protocol", "agentcell_worker"}

BUILD_SECONDS = 120
INSTALL_SECONDS = 600
"""The SDK's wheel is 178 MB: a first download takes its time, and later ones come from pip's cache."""
COMMAND_SECONDS = 60


class WheelError(Exception):
    """What the wheel should have done, and what it did."""


def main() -> int:
    """Check it in a directory that is removed afterwards; 0 when all is well, 1 with the reason otherwise."""
    try:
        with TemporaryDirectory(prefix="agentcell-wheel-") as folder:
            check(Path(folder))
    except WheelError as reason:
        print(f"wheel: {reason}", file=sys.stderr)
        return 1
    print("wheel: built, installed alone and run")
    return 0


def check(folder: Path) -> None:
    """Raises WheelError at the first thing that is not as it should be."""
    wheel = build(folder / "dist")
    holds_the_rooms_and_nothing_else(wheel)
    programs = install(wheel, folder / "installed")
    project = folder / "project"
    project.mkdir()
    user = User(programs, project, home=folder)
    the_command_answers(user)
    a_bad_request_is_refused(user)
    a_session_runs(user)


def build(target: Path) -> Path:
    """The wheel, built by the hatchling of the environment that runs this."""
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), str(ROOT), seconds=BUILD_SECONDS)
    return next(target.glob("agentcell-*.whl"))


def holds_the_rooms_and_nothing_else(wheel: Path) -> None:
    """The three packages with their data, and the metadata."""
    names = ZipFile(wheel).namelist()
    folders = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    expect(f"three packages in the wheel, not {sorted(folders)}", folders == PACKAGES)
    typed = {f"{package}/py.typed" for package in PACKAGES}
    schemas = {f"agentcell_protocol/schema/v1/{kind}.json" for kind in KINDS}
    prompts = {f"agentcell_worker/prompts/{path.name}" for path in PROMPTS.glob("*.md")}
    data = typed | schemas | prompts
    expect(f"the data files {sorted(data - set(names))}", bool(prompts) and data <= set(names))


def install(wheel: Path, target: Path) -> Path:
    """The directory of the programs in a new environment that holds the wheel and what it needs."""
    venv.create(target, with_pip=False, symlinks=True)
    python = target / "bin" / "python"
    constraints = str(ROOT / "constraints.txt")
    pip("--python", str(python), "install", "--constraint", constraints, str(wheel), seconds=INSTALL_SECONDS)
    return python.parent


def pip(*arguments: str, seconds: float) -> None:
    """Run this environment's pip, quietly."""
    argv = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", *arguments]
    subprocess.run(argv, check=True, timeout=seconds, stdin=subprocess.DEVNULL)


class User:
    """Somebody who installed the wheel and types commands in a directory of their own."""

    def __init__(self, programs: Path, directory: Path, home: Path) -> None:
        self._programs = programs
        self._directory = directory
        self._environment = {"PATH": f"{programs}{os.pathsep}{os.defpath}", "HOME": str(home), "LANG": "C.UTF-8"}

    def types(self, *argv: str, stdin: str = "", code: int = 0) -> str:
        """What the command prints on stdout; WheelError when it exits with another code."""
        ended = subprocess.run(
            [str(self._programs / argv[0]), *argv[1:]],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
            cwd=self._directory,
            env=self._environment,
        )
        if ended.returncode != code:
            raise WheelError(f"{argv} exited {ended.returncode}, not {code}:\n{ended.stdout}{ended.stderr}")
        return ended.stdout


def the_command_answers(user: User) -> None:
    """Its version, its help and its schema."""
    version = user.types("python", "-c", "from importlib.metadata import version; print(version('agentcell'))").strip()
    expect("agentcell --version", version in user.types("agentcell", "--version"))
    expect("agentcell --help", "run" in user.types("agentcell", "--help"))
    schema = json.loads(user.types("agentcell", "schema", "request"))
    expect("agentcell schema request", schema["required"] == ["session_name", "agent_type", "project_dir"])


def a_bad_request_is_refused(user: User) -> None:
    """One result line that names the member, and exit 2, from either door."""
    for argv in (["agentcell-worker"], ["python", "-P", "-m", "agentcell_worker"]):
        result = one_line(user.types(*argv, stdin='{"agent_type":"coder","project_dir":"."}\n', code=2))
        member = result["error"]["details"]["member"]
        expect(" ".join(argv), (result["status"], member) == ("error", "session_name"))


def a_session_runs(user: User) -> None:
    """A whole session of the real CLI on the offline endpoint."""
    result = one_line(user.types("agentcell", "run", "--offline", "--json", "Say hello."))
    expect("agentcell run --offline", result["status"] in {"complete", "continue"} and bool(result["response"]))


def one_line(output: str) -> dict[str, Any]:
    """The message that is all of the output."""
    expect(f"one line, not {output!r}", output.count("\n") == 1 and output.endswith("\n"))
    message: dict[str, Any] = json.loads(output)
    return message


def expect(what: str, holds: bool) -> None:
    """Raises WheelError unless it holds."""
    if not holds:
        raise WheelError(f"expected: {what}")


if __name__ == "__main__":
    raise SystemExit(main())
