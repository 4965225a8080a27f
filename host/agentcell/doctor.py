"""Whether sessions can run here: small checks, each with what it found and what to do about it."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import anyio
import psutil

from agentcell.environment import cell_environment
from agentcell.limits import Limits
from agentcell.offline.rehearsal import rehearsal
from agentcell.signals import run_until_signalled
from agentcell.transcripts import state_directory
from agentcell_protocol.credentials import credential_variables, login_file
from agentcell_protocol.request import parse_request
from agentcell_protocol.sdk import SDK, bundled_cli

Grade = Literal["ok", "warning", "problem"]

TESTED_SDK = "0.2."
"""Releases of the SDK that start so are the ones this version is made for."""

VERSION_SECONDS = 30.0
"""For `claude --version`: it takes 0.7 s, many times that on a machine that is busy or has a cold disk."""

SESSION_SECONDS = 60.0
"""For the offline session: it takes 2 s, many times that on a machine that is busy."""

LAST_LINES = 5
"""Of the stderr of a cell that failed and gave no hint."""

REHEARSAL = {"session_name": "doctor", "agent_type": "coder", "starting_message": "Say that all is well."}

SESSION_MB = 300
"""Resident memory of one small session: the CLI has 200 MB, its worker 70."""

ROOMY_MB = 1024
"""Below this much free memory a session with tools of its own gets tight."""

CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report; `remedy` is empty exactly when the grade is ok."""

    subject: str
    grade: Grade
    found: str
    remedy: str = ""


def examine(environment: Mapping[str, str]) -> Iterator[Finding]:
    """All findings, each as soon as it is known; the last takes as long as a session does."""
    cli = find_cli(environment)
    yield check_python()
    yield check_sdk()
    yield check_cli(cli, environment)
    yield check_credentials(environment)
    yield check_user(environment)
    yield check_bubblewrap(environment)
    yield check_memory()
    yield check_temp_directory()
    yield check_state_directory(environment)
    yield check_session(environment)


def check_python() -> Finding:
    """Which interpreter runs, and whether it is new enough."""
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < (3, 11):  # noqa: UP036 - a copied tree may be run by any Python
        return Finding("Python", "problem", found, "install Python 3.11 or newer")
    return Finding("Python", "ok", found)


def check_sdk() -> Finding:
    """The SDK's version, looked up without importing it."""
    try:
        version = importlib.metadata.version(SDK)
    except importlib.metadata.PackageNotFoundError:
        return Finding("SDK", "problem", f"{SDK} is not installed", f"pip install {SDK}")
    if not version.startswith(TESTED_SDK):
        return Finding("SDK", "warning", f"{SDK} {version}", f"this version is made for {TESTED_SDK}*")
    return Finding("SDK", "ok", f"{SDK} {version}")


def find_cli(environment: Mapping[str, str]) -> Path | None:
    """The CLI that a session would start: the SDK's own, else the one on the PATH."""
    if (bundled := bundled_cli()) is not None:
        return bundled
    on_path = shutil.which("claude", path=environment.get("PATH"))
    return Path(on_path) if on_path else None


def check_cli(cli: Path | None, environment: Mapping[str, str]) -> Finding:
    """Whether there is a CLI, whether it runs, and its version."""
    if cli is None:
        remedy = f"pip install --force-reinstall {SDK}, or install Claude Code"
        return Finding("CLI", "problem", "neither with the SDK nor on the PATH", remedy)
    remedy = f"run {cli} --version by hand; reinstall {SDK} if it fails"
    try:
        answer = subprocess.run(
            [cli, "--version"],
            env=cell_environment(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Finding("CLI", "problem", f"{cli} gave no version within {VERSION_SECONDS:.0f} s", remedy)
    except OSError as failure:
        return Finding("CLI", "problem", f"{cli} does not start: {failure.strerror}", remedy)
    if answer.returncode != 0:
        return Finding("CLI", "problem", f"{cli} --version ended with {answer.returncode}", remedy)
    return Finding("CLI", "ok", f"{answer.stdout.decode(errors='replace').strip()} at {cli}")


def check_credentials(environment: Mapping[str, str]) -> Finding:
    """Where credentials would come from: names, never values."""
    sources = list(credential_variables(environment))
    if (login := login_file(environment)).is_file():
        sources.append(f"the login in {login}")
    if not sources:
        remedy = "set ANTHROPIC_API_KEY, or log in by calling claude; --offline needs none"
        return Finding("credentials", "warning", "none found", remedy)
    if len(sources) > 1:
        remedy = "keep one; auth_source in each result says which was used"
        return Finding("credentials", "warning", ", ".join(sources), remedy)
    return Finding("credentials", "ok", sources[0])


def check_user(environment: Mapping[str, str]) -> Finding:
    """Which permission modes this user may use."""
    if os.geteuid() != 0:
        return Finding("user", "ok", "not root: every permission mode works")
    if environment.get("IS_SANDBOX") == "1":
        return Finding("user", "ok", "root, declared as a sandbox: every permission mode works")
    remedy = "use acceptEdits with --allowed-tools; in a container of its own set IS_SANDBOX=1"
    return Finding("user", "warning", "root: permission mode bypassPermissions is refused", remedy)


def check_bubblewrap(environment: Mapping[str, str]) -> Finding:
    """Whether tools could be kept from seeing credentials."""
    if sys.platform != "linux":
        return Finding("bubblewrap", "ok", "not used on this system")
    if path := shutil.which("bwrap", path=environment.get("PATH")):
        return Finding("bubblewrap", "ok", path)
    remedy = "install the package bubblewrap"
    if environment.get("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"):
        return Finding("bubblewrap", "problem", "missing, and CLAUDE_CODE_SUBPROCESS_ENV_SCRUB needs it", remedy)
    return Finding("bubblewrap", "warning", "missing: what an agent's tools run can read the credentials", remedy)


def check_memory() -> Finding:
    """For how many small sessions at once there is room."""
    free = min(psutil.virtual_memory().available, _container_bytes()) // MIB
    found = f"{free:,.0f} MB free: room for about {free // SESSION_MB:.0f} small sessions at once"
    if free < SESSION_MB:
        return Finding("memory", "problem", found, f"free {SESSION_MB} MB, which one session needs")
    if free < ROOMY_MB:
        return Finding("memory", "warning", found, "run one session at a time")
    return Finding("memory", "ok", found)


def check_temp_directory() -> Finding:
    """Whether a file can be written where temporary files go."""
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"x")
    except OSError as failure:
        return Finding("temp directory", "problem", str(failure), "set TMPDIR to a directory that can be written")
    return Finding("temp directory", "ok", tempfile.gettempdir())


def check_state_directory(environment: Mapping[str, str]) -> Finding:
    """Whether transcripts could be kept; nothing is created."""
    state = state_directory(environment)
    existing = next(folder for folder in (state, *state.parents) if folder.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        remedy = "set XDG_STATE_HOME to a directory that can be written"
        return Finding("state directory", "warning", f"{existing} cannot be written", remedy)
    return Finding("state directory", "ok", str(state))


def check_session(environment: Mapping[str, str]) -> Finding:
    """Whether a whole session runs, on a scripted model on this machine."""
    with TemporaryDirectory(prefix="agentcell-doctor-") as project, rehearsal(environment) as (_, cell):
        request = parse_request({**REHEARSAL, "project_dir": project})
        limits = Limits(max_execution_seconds=SESSION_SECONDS)
        result = anyio.run(run_until_signalled, request, limits, cell, None, False)
    if result.error is not None:
        last_words = (result.stderr_tail or "").split("\n")[-LAST_LINES:]
        remedy = result.error.hint or "\n".join(["look at the end of the cell's stderr:", *last_words])
        return Finding("session", "problem", f"{result.error.category}: {result.error.message}", remedy)
    return Finding("session", "ok", f"one offline session: {result.status} in {result.execution_time:.1f} s")


def _container_bytes() -> float:
    """The memory that a container may have in all; infinite outside of one."""
    try:
        return int(CONTAINER_LIMIT.read_text())
    except (OSError, ValueError):  # no cgroup v2 here, or the word for no limit
        return inf
