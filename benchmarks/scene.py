"""Where real sessions are measured: a scripted model in this process, a project, a home, and nothing of the user's."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentcell.offline import Endpoint, offline_environment, offline_model
from benchmarks.plain_sdk import MODEL, PROMPT

SCRIPT: Mapping[str, Any] = {"turns": [{"text": "It is done."}]}
"""One short answer: the less a session does, the more of it is what is around it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A folder for one comparison, and the model that its sessions ask."""

    endpoint: Endpoint
    folder: Path

    @property
    def project(self) -> Path:
        """Where the sessions work; it stays empty."""
        return self.folder / "project"

    def environment(self, home: str = "home") -> dict[str, str]:
        """The whole environment of what runs sessions; `home` is made in the folder."""
        path = self.folder / home
        path.mkdir(exist_ok=True)
        return offline_environment(self.endpoint, path)

    @property
    def answered(self) -> int:
        """How many turns of sessions the model has been asked for."""
        return sum(asked.kind == "turn" for asked in self.endpoint.requests)


@contextmanager
def scene() -> Iterator[Scene]:
    """It is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, offline_model(SCRIPT) as endpoint:
        place = Scene(endpoint, Path(folder))
        place.project.mkdir()
        yield place


def request(project: str | Path, name: str = "session") -> dict[str, Any]:
    """The session that all sides run, as agentcell is asked for it."""
    return {
        "session_name": name,
        "agent_type": "coder",
        "project_dir": str(project),
        "starting_message": PROMPT,
        "model": MODEL,
    }
