"""A run directory tells of its batch, whoever has it, and is left as it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.host.batch.run_directory import begun

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.boot import boot_id
from agentcell.batch.identity import slug
from agentcell.batch.lock import Holder, holder, locked
from agentcell.batch.reading import Reading, read_batch
from agentcell.batch.repair import read_whole
from agentcell.batch.summary import Failure, Failures
from agentcell.batch.tally import Running, Snapshot
from agentcell.errors import RunDirectoryError
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import Attempt, SessionResult, Usage, failed

NOW = 1_800_000_000.0

LEFT = orjson.dumps({"pid": 4, "since": 1.0, "started": 1.0, "host": "there"})
"""What is in the lock of a process that died."""

DIGEST = "1:0123456789abcdef"


def attempt(number: int = 1, **members: Any) -> Attempt:
    return Attempt(**{"number": number, "status": "complete", "cost_usd": 0.25, "execution_time": 2.0, **members})


def done(*attempts: Attempt) -> SessionResult:
    return SessionResult(status="complete", response="the agent's words", session_name="a", attempts=list(attempts))


class Batch:
    """A run directory that is written as a batch writes it, at times of the test's own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with begun(path, {"rows": 5}):
            pass
        (path / "journal.jsonl").unlink()
        self.write("journal", journal.opened(NOW, host_pid=1, boot_id=boot_id(), config={"rows": 5}))

    def write(self, name: str, *messages: dict[str, Any], end: bytes = b"\n") -> None:
        with (self.path / f"{name}.jsonl").open("ab") as file:
            for message in messages:
                file.write(orjson.dumps(message) + end)

    def starts(self, id_: str, at: float, number: int = 1) -> None:
        members: dict[str, Any] = {
            "digest": DIGEST,
            "line": 1,
            "mode": "fresh",
            "session_id": "s",
            "marker": "m",
            "host_pid": 1,
        }
        self.write("journal", journal.started(at, id=id_, attempt=number, boot_id=boot_id(), **members))

    def ends(self, id_: str, at: float, attempt: Attempt, *, retry_at: float | None = None) -> None:
        tried = Tried(attempt, tool_calls=0, has_transcript=False)
        self.write("journal", journal.ended(at, id=id_, tried=tried, retry_at=retry_at))

    def finishes(self, id_: str, result: SessionResult) -> None:
        self.write("results", {**result.to_message(), "id": id_, "digest": DIGEST, "line": 1})

    def hears(self, id_: str, *events: bytes) -> None:
        folder = self.path / "cells" / slug(id_) / "1"
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_bytes(b"".join(events))

    def content(self) -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in self.path.rglob("*") if file.is_file()}


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    return Batch(tmp_path / "rows.run")


@pytest.fixture
def held(batch: Batch) -> Iterator[Holder]:
    with locked(batch.path):
        mine = holder(batch.path)
        assert mine is not None
        yield mine


def half_way(batch: Batch) -> None:
    """One row well, one failed after two attempts, one runs, one waits for its second attempt, one was not begun."""
    crash = session_error(Category.CRASHED, "it died")
    twice = [attempt(1, status="error", error=crash, cost_usd=None), attempt(2, status="error", error=crash)]
    for id_ in ("well", "bad", "waits", "runs"):
        batch.starts(id_, NOW + 1)
    well = attempt(usage=Usage(output_tokens=7))
    batch.finishes("well", done(well))
    batch.ends("well", NOW + 4, well)
    batch.ends("waits", NOW + 5, attempt(status="error", error=crash, cost_usd=0.5), retry_at=NOW + 99)
    batch.ends("bad", NOW + 5, twice[0], retry_at=NOW + 5)
    batch.starts("bad", NOW + 5, 2)
    batch.finishes("bad", failed(crash, session_name="bad", attempts=twice))
    batch.ends("bad", NOW + 6, twice[1])
    batch.hears("runs", b'{"type":"text","text":"words"}\n', b'{"type":"tool_use","name":"Bash"}\n', b'{"type":"te')


COUNTED: dict[str, Any] = {
    "total": 5,
    "done": 1,
    "failed": 1,
    "retries": 1,
    "usage": Usage(output_tokens=7),
    "cost_usd": 1.0,
    "unknown_costs": 1,
    "by_status": {"complete": 1, "error": 1},
    "by_category": {"crashed": 1},
    "slowest": (("bad", 4.0), ("well", 2.0)),
}


def test_a_batch_that_runs_is_read_as_it_is_and_left_so(batch: Batch, held: Holder) -> None:
    half_way(batch)
    batch.write("journal", journal.paused(NOW + 7, reason="the account's rate limit", until=NOW + 60))
    before = batch.content()
    reading = read_batch(batch.path, NOW + 10)
    assert reading == Reading(
        "running",
        Snapshot(
            **COUNTED,
            running=(Running("runs", 1, NOW + 1, {"type": "tool_use", "name": "Bash"}),),
            pending=2,
            elapsed=10.0,
            rate=0.2,
            eta=15.0,
            paused="the account's rate limit",
            paused_until=NOW + 60,
        ),
        Failures((Failure("bad", "crashed", reading.failures.first[0].offset, None),), 1),
        held,
    )
    assert batch.content() == before


def test_a_batch_whose_process_died_was_interrupted(batch: Batch) -> None:
    half_way(batch)
    (batch.path / "lock").write_bytes(LEFT)
    reading = read_batch(batch.path, NOW + 1000)
    assert (reading.state, reading.snapshot) == (
        "interrupted",
        Snapshot(**COUNTED | {"unknown_costs": 2}, pending=3, elapsed=6.0),
    )


def test_what_a_dead_process_had_under_way_has_an_unknown_cost_and_not_none(batch: Batch) -> None:
    for id_ in ("a", "b"):
        batch.starts(id_, NOW + 1)
    seen = read_batch(batch.path, NOW + 10).snapshot
    assert (seen.cost_usd, seen.unknown_costs) == (None, 2)


def test_one_that_gave_its_lock_back_could_only_not_write_why_it_ended(batch: Batch) -> None:
    half_way(batch)
    reading = read_batch(batch.path, NOW + 1000)
    assert (reading.state, reading.reason, reading.holder) == ("stopped", "it ended without writing why", None)


def test_a_batch_that_ended_with_rows_left_says_why(batch: Batch) -> None:
    half_way(batch)
    batch.write("journal", journal.closed(NOW + 8, reason="the deadline is reached. 3 rows are pending"))
    reading = read_batch(batch.path, NOW + 1000)
    assert (reading.state, reading.reason, reading.snapshot.elapsed) == (
        "stopped",
        "the deadline is reached. 3 rows are pending",
        8.0,
    )


def test_the_time_of_a_batch_is_that_of_all_its_runs_and_not_what_lies_between(batch: Batch) -> None:
    batch.starts("a", NOW + 1)
    batch.ends("a", NOW + 19, attempt(execution_time=18.0))
    batch.write("journal", journal.closed(NOW + 20, reason="finished"))
    batch.write("journal", journal.opened(NOW + 1000, host_pid=1, boot_id=boot_id(), config={"rows": 5}))
    batch.write("journal", journal.closed(NOW + 1000.5, reason="finished"))
    assert read_batch(batch.path, NOW + 2000).snapshot.elapsed == 20.5


def test_of_a_run_that_died_no_time_counts_after_the_last_it_is_known_to_have_done(batch: Batch, held: Holder) -> None:
    for id_ in ("a", "b"):
        batch.starts(id_, NOW + 1)
    batch.ends("a", NOW + 1000, attempt(execution_time=7.0))  # noted by the next one, which found its result
    batch.ends("b", NOW + 1000, attempt(status="error", execution_time=0.0))
    batch.write("journal", journal.opened(NOW + 1000, host_pid=1, boot_id=boot_id(), config={"rows": 5}))
    assert read_batch(batch.path, NOW + 1002).snapshot.elapsed == 8.0 + 2.0


def test_a_batch_that_did_all_is_finished(batch: Batch) -> None:
    batch.write("journal", journal.closed(NOW + 8, reason="finished"))
    reading = read_batch(batch.path, NOW + 1000)
    assert (reading.state, reading.reason) == ("finished", None)


def test_what_was_spent_on_a_row_that_runs_again_stays_counted(batch: Batch) -> None:
    half_way(batch)
    with begun(batch.path, {"rows": 5}) as run:
        run.reopen(["bad", "well"])
        run.reopen(["bad"])
        assert run.history.spending.cost_usd == 1.0
    seen = read_batch(batch.path, NOW + 10).snapshot
    assert (seen.done, seen.failed, seen.cost_usd, seen.usage) == (0, 0, 1.0, Usage(output_tokens=7))


def test_torn_tails_are_passed_over_and_left(batch: Batch) -> None:
    half_way(batch)
    for name in ("results", "journal"):
        with (batch.path / f"{name}.jsonl").open("ab") as file:
            file.write(b'{"id": "x", "status": "comp\xff')
    before = batch.content()
    assert read_batch(batch.path, NOW).snapshot.done == 1
    assert batch.content() == before


def test_a_last_line_without_its_end_counts(batch: Batch) -> None:
    message = {**done(attempt()).to_message(), "id": "a", "digest": DIGEST, "line": 1}
    batch.write("results", message, end=b"")
    assert read_batch(batch.path, NOW).snapshot.done == 1


def test_what_finishes_while_it_is_read_is_not_lost(
    batch: Batch, held: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch.starts("a", NOW + 1)

    def read_and_finish(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        yield from read_whole(path)
        batch.finishes("a", done(attempt()))

    monkeypatch.setattr("agentcell.batch.reading.read_whole", read_and_finish)
    seen = read_batch(batch.path, NOW + 2).snapshot
    assert (seen.done, seen.running, seen.pending) == (1, (), 4)


def test_a_line_that_makes_no_sense_stops_nobody(batch: Batch) -> None:
    batch.write("results", {"id": "a", "status": "complete", "attempts": 7}, {"id": 5}, {"status": "complete"})
    batch.write("journal", {"event": "ended"}, {"event": 5, "at": "now"}, {"no": "event"})
    assert read_batch(batch.path, NOW).snapshot.done == 1


def test_of_a_stream_nobody_knows_how_many_rows_there_are(tmp_path: Path) -> None:
    with begun(tmp_path / "stdin.run", {"rows": None}):
        pass
    seen = read_batch(tmp_path / "stdin.run", NOW).snapshot
    assert (seen.total, seen.pending) == (None, None)


def test_what_is_no_run_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError):
        read_batch(tmp_path, NOW)
