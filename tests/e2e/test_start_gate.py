"""Many sessions at once start a few at a time, and so all of them start."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcell import Host
from agentcell.offline import Endpoint, offline_environment, offline_model
from agentcell_protocol.result import SessionResult

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 600

SESSIONS = 40


class Starts:
    """Counts the sessions that have greeted and not yet started."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def hear(self, event: dict[str, Any]) -> None:
        self.now += {"hello": 1, "session_started": -1}.get(event["type"], 0)
        self.most = max(self.most, self.now)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with offline_model({"turns": [{"text": "Hello.", "times": "always"}]}) as endpoint:
        yield endpoint


def test_forty_sessions_all_start_in_time(tmp_path: Path, endpoint: Endpoint) -> None:
    request = {"session_name": "a", "agent_type": "coder", "project_dir": str(tmp_path), "starting_message": "hi"}
    environment = {**offline_environment(endpoint, tmp_path), "TMPDIR": str(tmp_path)}
    starts = Starts()

    async def main() -> list[SessionResult]:
        results: list[SessionResult] = []

        async def run(host: Host) -> None:
            results.append(await host.run(request, env=environment, on_event=starts.hear))

        with anyio.fail_after(BOUND_SECONDS):
            async with Host(max_sessions=SESSIONS) as host, anyio.create_task_group() as tasks:
                for _ in range(SESSIONS):
                    tasks.start_soon(run, host)
        return results

    results = anyio.run(main)
    assert [result.status for result in results] == ["complete"] * SESSIONS
    assert (starts.now, 0 < starts.most <= (os.cpu_count() or 1)) == (0, True)
    assert max(result.execution_time for result in results) < 60
    assert sorted(path.name for path in tmp_path.iterdir()) == [".local"]
