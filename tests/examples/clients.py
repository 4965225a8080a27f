"""The examples in other languages, and how a user starts them."""

import os
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.e2e.scenes import living
from tests.ending import ending
from tests.examples import serving
from tests.faults import guarded
from tests.faults.harness import WORKERS
from tests.meta.pages import installed
from tests.meta.source import ROOT

from agentcell.offline import Endpoint

EXAMPLES = ROOT / "examples"

BOUND_SECONDS = 240.0
"""For a client and its sessions, which take some seconds on an idle machine, and a minute on a busy one."""

GONE_SECONDS = 30.0
"""For everything to be gone after a death, which takes a few on an idle machine."""

INTERPRETERS = {"shell": ("sh", "sh"), "node": ("node", "mjs"), "perl": ("perl", "pl")}
"""Of each language: what runs it, and how its files end."""

LANGUAGES = tuple(INTERPRETERS)

STAND_IN = str(WORKERS / "answers_by_question.py")

LIVES = "tail -f /dev/null"

STALLS: dict[str, Any] = {"stall": "start", "times": "always"}

WORKS: dict[str, Any] = {"tools": [{"name": "Bash", "input": {"command": f"{LIVES} & echo up > up; wait"}}]}
"""A tool that does not end, and says by the pipe `up` that it has begun."""


def interpreter(language: str) -> str:
    """The program that runs it; the test is skipped where there is none."""
    program = INTERPRETERS[language][0]
    if (found := shutil.which(program)) is None:
        pytest.skip(f"{program} is not installed here")
    return found


def client(language: str, name: str, *arguments: str) -> list[str]:
    """The command of an example."""
    return [interpreter(language), str(EXAMPLES / language / f"{name}.{INTERPRETERS[language][1]}"), *arguments]


def python(name: str, *arguments: str) -> list[str]:
    """The command of a Python example."""
    return [sys.executable, str(EXAMPLES / "python" / f"{name}.py"), *arguments]


@dataclass(frozen=True)
class User:
    """Somebody who has installed agentcell, with a home, an empty project, and a place for temporary files."""

    home: Path
    environment: Mapping[str, str]

    @classmethod
    def at(cls, home: Path, endpoint: Endpoint | None) -> "User":
        """The model is what the endpoint plays; without one there is neither a model nor a key."""
        user = cls(
            home, {**installed(home), **(endpoint.environment() if endpoint else {}), "TMPDIR": str(home / "tmp")}
        )
        user.project.mkdir()
        (home / "tmp").mkdir()
        return user

    @property
    def project(self) -> Path:
        return self.home / "project"

    def run(self, command: Sequence[str], stdin: bytes = b"") -> "subprocess.CompletedProcess[str]":
        """Run it in the project to its end, after which nothing is left of it."""
        with self.starting(command, stdin=subprocess.PIPE) as process:
            out, err = process.communicate(stdin, BOUND_SECONDS)
        self.nothing_is_left()
        return subprocess.CompletedProcess(list(command), process.returncode, out.decode(), err.decode())

    @contextmanager
    def starting(
        self, command: Sequence[str], *, stdin: int = subprocess.DEVNULL
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Start it in the project."""
        process = subprocess.Popen(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        with ending(process, BOUND_SECONDS):
            yield process

    def without(self, variable: str) -> "User":
        """The same one with that variable not set."""
        return User(self.home, {name: value for name, value in self.environment.items() if name != variable})

    def on_a_machine_without(self, program: str) -> "User":
        """The same one, where that program is not installed."""
        programs = self.home / "programs"
        programs.mkdir()
        for folder in map(Path, self.environment["PATH"].split(os.pathsep)):
            for found in folder.iterdir() if folder.is_dir() else ():
                if found.name != program and not (programs / found.name).is_symlink():
                    (programs / found.name).symlink_to(found)
        return User(self.home, {**self.environment, "PATH": str(programs)})

    def with_stand_ins(self) -> "User":
        """The same one, whose sessions run without SDK, CLI and model."""
        programs = self.home / "stand-ins"
        programs.mkdir()
        for name, file in {"agentcell-worker": guarded.__file__, "agentcell": serving.__file__}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, file, STAND_IN])} "$@"\n')
            (programs / name).chmod(0o700)
        return User(self.home, {**self.environment, "PATH": f"{programs}{os.pathsep}{self.environment['PATH']}"})

    def living(self) -> list[psutil.Process]:
        """All that runs for this user."""
        return living(self.home)

    def nothing_runs(self) -> None:
        """At most a moment from now."""
        _, alive = psutil.wait_procs(self.living(), timeout=GONE_SECONDS)
        assert (alive, self.living()) == ([], [])

    def nothing_is_left(self) -> None:
        """The same, and no temporary file."""
        self.nothing_runs()
        assert list((self.home / "tmp").iterdir()) == []


@contextmanager
def at_work(user: User) -> Iterator[int]:
    """A pipe that is readable once a tool has begun that does not end; see `wait_for_tool`."""
    os.mkfifo(user.project / "up")
    reader = os.open(user.project / "up", os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield reader
    finally:
        os.close(reader)


def wait_for_tool(up: int) -> None:
    """Wait until it has begun."""
    assert select.select([up], [], [], BOUND_SECONDS)[0], "the tool did not start"
