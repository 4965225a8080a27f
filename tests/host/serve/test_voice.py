"""What a run has to say is said in order, and what was left out is said once, where it was left out."""

import json
import os
from pathlib import Path

import anyio
import pytest

from agentcell import outlet
from agentcell.outlet import ROOM_BYTES, Outlet
from agentcell.serve.voice import Voice

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 30


async def say(voice: Voice, number: int) -> None:
    if (rest := voice.tell({"type": "text", "number": number})) is not None:
        await rest


async def test_what_was_left_out_is_told_once_before_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "WAIT_SECONDS", 0.01)
    with (tmp_path / "out").open("wb") as file, anyio.fail_after(BOUND_SECONDS):
        lines = Outlet(file.fileno())
        voice, other = Voice("r1", lines), Voice("r2", lines)
        await say(voice, 1)
        lines.put({"type": "filler", "x": "x" * ROOM_BYTES})
        for number in (2, 3):
            await say(voice, number)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lines.run)
            await lines.drained()
            await say(other, 1)
            for number in (4, 5):
                await say(voice, number)
            await lines.drained()
            tasks.cancel_scope.cancel()
    written = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert [line for line in written if line["type"] != "filler"] == [
        {"type": "text", "id": "r1", "number": 1},
        {"type": "text", "id": "r2", "number": 1},
        {"type": "thinned", "id": "r1", "dropped": 2},
        {"type": "text", "id": "r1", "number": 4},
        {"type": "text", "id": "r1", "number": 5},
    ]


async def test_an_event_whose_wait_is_cancelled_is_told_as_left_out(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    lines = Outlet(writes)
    voice = Voice("r1", lines)
    lines.put({"type": "filler", "x": "x" * ROOM_BYTES})
    with anyio.move_on_after(0.01):
        await say(voice, 1)
    with (tmp_path / "out").open("wb") as file:
        os.dup2(file.fileno(), writes)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lines.run)
            await lines.drained()
            await say(voice, 2)
            await lines.drained()
            tasks.cancel_scope.cancel()
    os.close(reads)
    os.close(writes)
    assert [json.loads(line)["type"] for line in (tmp_path / "out").read_bytes().splitlines()][1:] == [
        "thinned",
        "text",
    ]
