"""Sessions on the real SDK and the real CLI that share one scripted endpoint."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psutil

from agentcell import Host, Limits
from agentcell.offline import Endpoint, ModelRequest, offline_environment, offline_model
from agentcell_protocol.errors import SessionError
from agentcell_protocol.result import SessionResult

BOUND_SECONDS = 120
"""For one session, which takes two seconds on an idle machine."""

AT_ONCE = 2
"""Sessions that run side by side."""

QUICK = {"CLAUDE_CODE_MAX_RETRIES": "1"}
"""Lets the CLI give up on a failing API at its second try."""


@dataclass(frozen=True)
class Scene:
    """What the model does in one session, and what is asked of the host. `files` lie in the project before."""

    turns: Sequence[Mapping[str, Any]]
    members: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    home_files: Mapping[str, str] = field(default_factory=dict)
    message: str = "Go on."


@dataclass(frozen=True)
class Played:
    """How a scene ended: the result, what the model was asked, and what was heard.

    `moments` has when each event was heard, and last when the result came.
    """

    result: SessionResult
    requests: Sequence[ModelRequest]
    events: Sequence[Mapping[str, Any]]
    moments: Sequence[float]
    project: Path

    @property
    def error(self) -> SessionError:
        """The error, without what the CLI tells about it in words of its own."""
        assert self.result.error is not None
        return self.result.error.model_copy(update={"details": {}})

    @property
    def kinds(self) -> set[str]:
        """The types of the events."""
        return {event["type"] for event in self.events}

    @property
    def warnings(self) -> list[str]:
        """The codes of the result's warnings."""
        return [notice.code for notice in self.result.warnings]

    def seconds_after(self, kind: str) -> float:
        """From the last event of that kind to the result."""
        heard = [at for at, event in zip(self.moments, self.events, strict=False) if event["type"] == kind]
        return self.moments[-1] - heard[-1]


def living(home: Path) -> list[psutil.Process]:
    """Every living process whose HOME is this directory, or one below it."""
    found = []
    for process in psutil.process_iter():
        try:
            is_there = Path(process.environ().get("HOME", "/")).is_relative_to(home)
            if is_there and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def play(scenes: Mapping[str, Scene], folder: Path, *, backend: str = "asyncio") -> dict[str, Played]:
    """Play all scenes in one host, a few at a time, each with a project and a home of its own below `folder`."""
    sessions = [{"match": _mark(name), "turns": list(scene.turns)} for name, scene in scenes.items()]
    with offline_model({"sessions": sessions}) as endpoint:
        return anyio.run(_play, endpoint, scenes, folder, backend=backend)


async def _play(endpoint: Endpoint, scenes: Mapping[str, Scene], folder: Path) -> dict[str, Played]:
    played: dict[str, Played] = {}
    places = anyio.CapacityLimiter(AT_ONCE)

    async def one(name: str, scene: Scene) -> None:
        async with places:
            played[name] = await _play_one(host, endpoint, name, scene, folder / name)

    async with Host(AT_ONCE) as host, anyio.create_task_group() as tasks:
        for name, scene in scenes.items():
            tasks.start_soon(one, name, scene)
    return played


async def _play_one(host: Host, endpoint: Endpoint, name: str, scene: Scene, folder: Path) -> Played:
    project, home = _filled(folder / "project", scene.files), _filled(folder / "home", scene.home_files)
    request = {
        "session_name": name,
        "agent_type": "coder",
        "project_dir": str(project),
        "starting_message": scene.message + _mark(name),
        **scene.members,
    }
    events: list[Mapping[str, Any]] = []
    moments: list[float] = []

    def listen(event: Mapping[str, Any]) -> None:
        events.append(event)
        moments.append(time.monotonic())

    env = {**offline_environment(endpoint, home), **scene.env}
    with anyio.fail_after(BOUND_SECONDS):
        result = await host.run(request, limits=scene.limits, on_event=listen, env=env)
    moments.append(time.monotonic())
    requests = [asked for asked in endpoint.requests if asked.session_id == result.session_id]
    return Played(result, requests, events, moments, project)


def _mark(name: str) -> str:
    """What the endpoint knows a scene by."""
    return f" [{name}]"


def _filled(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder
