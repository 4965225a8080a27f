"""A batch of stand-ins: every row has its result, whatever its cell did, and what is cut goes on another time."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from agentcell import Host
from agentcell.batch.batch import BatchEnd, run_batch
from agentcell.batch.directory import RunDirectory
from agentcell.batch.rows import Problem, Row, read_rows
from agentcell.batch.settings import Settings
from agentcell.testing import stand_in

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 60.0


class Rows:
    """Rows that are there already."""

    def __init__(self, rows: list[Row | Problem]) -> None:
        self._rows = iter(rows)

    async def next(self) -> Row | Problem | None:
        return next(self._rows, None)


class Room:
    """A project, an environment and a run directory, for one batch after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_dir = path / "rows.run"
        (path / "project").mkdir()
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": str(path), "ANTHROPIC_API_KEY": "sk-ant-test"}

    def row(self, name: str, *steps: dict[str, Any], **members: Any) -> dict[str, Any]:
        context = {"context": {"stand_in": list(steps)}} if steps else {}
        common = {"agent_type": "coder", "project_dir": str(self.path / "project"), "starting_message": f"Do {name}."}
        return {"session_name": name, **common, **context, **members}

    async def batch(self, *rows: dict[str, Any], width: int = 4, command: tuple[str, ...], **settings: Any) -> BatchEnd:
        text = b"".join(orjson.dumps(row) + b"\n" for row in rows)
        source = Rows(list(read_rows(BytesIO(text))))
        chosen = Settings(environment=self.environment, **{"min_free_mb": 0.0, **settings})
        with RunDirectory.open(self.run_dir, {}) as run:
            with anyio.fail_after(BOUND_SECONDS):
                async with Host(max_sessions=width, worker_command=command) as host:
                    return await run_batch(source, host, run, chosen)

    def results(self) -> dict[str, dict[str, Any]]:
        lines = [orjson.loads(line) for line in (self.run_dir / "results.jsonl").read_bytes().splitlines()]
        assert len({line["id"] for line in lines}) == len(lines)
        return {line["id"]: line for line in lines}

    def statuses(self) -> dict[str, str]:
        """Of each row that has a result: the status, or the error's category."""
        return {id_: (line["error"] or {}).get("category", line["status"]) for id_, line in self.results().items()}


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@pytest.fixture
def command() -> Iterator[tuple[str, ...]]:
    with stand_in([{"text": "done"}]) as argv:
        yield argv


async def test_every_row_has_its_own_ending(room: Room, command: tuple[str, ...]) -> None:
    end = await room.batch(
        room.row("well", {"text": "fine"}),
        room.row("killed", {"die": "SIGKILL"}),
        room.row("torn", {"stdout": '{"type": "res'}, {"exit": 3}),
        room.row("refused", {"fail": {"category": "refusal", "message": "no"}}),
        command=command,
        retries=0,
    )
    assert (end.exit_code, end.reason, end.snapshot.done, end.snapshot.failed) == (1, None, 1, 3)
    assert room.statuses() == {"well": "complete", "killed": "crashed", "torn": "crashed", "refused": "refusal"}
