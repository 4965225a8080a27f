"""Batches that are killed, and what their run directories tell afterwards."""

from collections import defaultdict
from pathlib import Path
from typing import IO, Any, Protocol

import orjson
import psutil
from tests.e2e.scenes import living

BOUND_SECONDS = 120.0
"""A multiple of what a batch takes on an idle machine."""

GONE_SECONDS = 15.0
"""From the death of the batch's process to that of the last of its cells: three times what a quiet machine may take."""

Lines = list[dict[str, Any]]


class Killable(Protocol):
    """A process that runs a batch."""

    def kill(self) -> None: ...

    def wait(self, timeout: float) -> int: ...


def wait_for_rows(progress: IO[bytes], count: int) -> None:
    """Until so many more have finished than had at first, by what `--progress json` says, or all have."""
    seen = (orjson.loads(line) for line in progress if line.startswith(b"{"))
    finished = (line["done"] + line["failed"] for line in seen)
    first = next(finished)
    next((now for now in finished if now >= first + count), None)


def kill(process: Killable, home: Path) -> None:
    """Kill the batch; all of it is gone soon afterwards."""
    process.kill()
    process.wait(BOUND_SECONDS)
    _, alive = psutil.wait_procs(living(home), timeout=GONE_SECONDS)
    assert (alive, living(home)) == ([], [])


def lines(file: Path) -> Lines:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def outcomes(run_dir: Path) -> dict[str, tuple[str, str, str | None]]:
    """What each row has come to; there is one line of each."""
    results = lines(run_dir / "results.jsonl")
    assert len({line["id"] for line in results}) == len(results)
    return {line["id"]: (line["status"], line["response"], (line["error"] or {}).get("category")) for line in results}


def check_attempts(run_dir: Path, most: int) -> None:
    """Of each row: they follow each other, each ends once, the last is the result's, and at most so many count."""
    journeys: dict[str, Lines] = defaultdict(list)
    for line in lines(run_dir / "journal.jsonl"):
        if line["event"] in {"started", "ended"}:
            journeys[line["id"]].append(line)
    results = {result["id"]: result for result in lines(run_dir / "results.jsonl")}
    assert journeys.keys() == results.keys()
    for row_id, journey in journeys.items():
        _check_journey(journey, results[row_id]["attempts"], most)


def _check_journey(journey: Lines, attempts: Lines, most: int) -> None:
    count = len(journey) // 2
    assert [(line["event"], line["attempt"]) for line in journey] == [
        (event, number + 1) for number in range(count) for event in ("started", "ended")
    ]
    ended = journey[1::2]
    assert [(one["number"], one["status"]) for one in attempts] == [(one["attempt"], one["status"]) for one in ended]
    assert [line["attempt"] for line in ended if line["status"] == "complete"] in ([], [count])
    assert 1 <= sum(line["counted"] for line in ended) <= most
    assert ended[-1]["counted"]
