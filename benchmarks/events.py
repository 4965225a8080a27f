"""A host that reads a cell's events against a bare loop of orjson.loads over the same lines.

The events come from a file in place of a pipe, so that no writer takes part; the path is the host's own otherwise:
bytes are counted and framed, messages decoded and learned from, the listener told. In CPU seconds of this process,
whose reading never waits: that is as long as it takes, without what else the machine does.
"""

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from io import FileIO
from pathlib import Path
from signal import Signals
from typing import Any

import anyio
import orjson
from anyio.lowlevel import checkpoint

from agentcell.limits import Limits
from agentcell.listener import Listener, OnEvent
from agentcell.log import Log
from agentcell.meter import Meter
from agentcell.orders import Order
from agentcell.record import Record
from agentcell.spawn import Child, Status
from agentcell.supervise import Supervision
from agentcell_protocol.codec import encode
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult
from benchmarks.measure import Compared, Figure, Measured, compare

EVENTS = 200_000
MILLION = 1_000_000
PAIRS = 15
TOLD_PAIRS = 5
LONG_PAIRS = 3
GOAL = 0.5

LINEAR = 1.2
"""A million of what a tenth of it takes, ten times."""

TURN: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "The index was off by one in two places."},
    {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "Bash", "input": {"command": "pytest -q"}},
    {"type": "tool_result", "id": "toolu_01A09q90qw90lq917835lq9", "is_error": False, "bytes": 1234},
    {
        "type": "usage",
        "input_tokens": 1_000,
        "output_tokens": 200,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 50_000,
    },
)
"""What a session says at each step of its work."""

REQUEST = SessionRequest(session_name="a", agent_type="coder", project_dir="/", starting_message="Do it.")

RESULT = SessionResult(status="complete", response="It is done.", session_name="a", id="a")


class Played(Child):
    """A child whose stdout is a file, and which lives until that has been read."""

    start = "cold"

    def __init__(self, file: Path) -> None:
        self._file = FileIO(file)
        self._size = file.stat().st_size
        super().__init__(stdin=FileIO(os.devnull, "wb"), stdout=self._file, stderr=FileIO(os.devnull))

    @property
    def pid(self) -> None:
        """There is no process."""

    @property
    def status(self) -> Status:
        """It ends well."""
        return 0

    async def exited(self) -> Status:
        """Wait until all is read."""
        while self._file.tell() < self._size:
            await checkpoint()
        return 0

    def send(self, number: Signals) -> None:
        """Nobody is there."""


def run() -> list[Figure]:
    """Without a listener, with one, and whether a million take ten times as long as a tenth of that."""
    with tempfile.TemporaryDirectory() as folder:
        lines = _lines(EVENTS)
        file = _file(Path(folder) / "events", lines)
        peer, reading = _bare(lines), _reading(file, len(lines), None)
        alone = compare(peer, reading, pairs=PAIRS)
        told = compare(peer, _reading(file, len(lines), _ignore), pairs=TOLD_PAIRS)
        long_file = _file(Path(folder) / "million", _lines(MILLION))
        long_reading = _reading(long_file, MILLION + len(lines) - EVENTS, None)
        grown = compare(long_reading, _times(reading, MILLION // EVENTS), pairs=LONG_PAIRS)
    return [
        _figure("events read by the host", alone, GOAL),
        _figure("events read by the host, each told to on_event", told, None),
        Figure(
            "events",
            f"{MILLION:,} events read",
            f"{MILLION // EVENTS} times {EVENTS:,}",
            grown.ratio,
            LINEAR,
            noise=grown.noise,
        ),
    ]


def _figure(what: str, seen: Compared, goal: float | None) -> Figure:
    """Of rates: what the bare loop takes of what the host takes; so the host stands where the peer usually does."""
    microseconds = [1e6 / EVENTS * spread.median for spread in (seen.theirs, seen.ours)]
    detail = "{:.2f} µs an event, bare {:.2f} µs".format(*microseconds)
    return Figure(
        "events", what, "orjson.loads of its lines", seen.ratio, goal, at_least=True, noise=seen.noise, detail=detail
    )


def _times(work: Measured, times: int) -> Measured:
    return lambda: sum(work() for _ in range(times))


def _lines(count: int) -> list[bytes]:
    """As they come from a cell, the result at the end."""
    started = {"type": "session_started", "session_id": "0c4989bf-3a27-495f-bd3f-2db89ed162d9", "model": "opus"}
    events = (TURN[number % len(TURN)] for number in range(count))
    return [*map(encode, (started, *events, RESULT.to_message(hosted=False)))]


def _file(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def _bare(lines: list[bytes]) -> Measured:
    def measured() -> float:
        began = time.process_time()
        for line in lines:
            orjson.loads(line)
        return time.process_time() - began

    return measured


def _reading(file: Path, lines: int, on_event: OnEvent | None) -> Measured:
    def measured() -> float:
        return anyio.run(partial(_read, file, lines, on_event))

    return measured


async def _read(file: Path, lines: int, on_event: OnEvent | None) -> float:
    record = Record("a", "a")
    child = Played(file)
    order = Order(REQUEST, environment={}, limits=Limits())
    log, meter = Log(None, str), Meter()
    listener = Listener(on_event, "summary")
    supervision = Supervision(child, record, listener, order, log=log, meter=meter, on_started=_nothing)
    began = time.process_time()
    await supervision.run(b"")
    took = time.process_time() - began
    child.close()
    assert record.result == RESULT
    assert record.problems == 0
    assert record.tool_calls == (lines - 2) // len(TURN)
    return took


def _ignore(_event: dict[str, Any]) -> None:
    pass


_nothing: Callable[[], None] = lambda: None  # noqa: E731 - takes nothing, does nothing
