"""Deciding that a finished batch has nothing to do, against parsing the lines of its files."""

import tempfile
from pathlib import Path
from typing import Any

import orjson

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.directory import RunDirectory
from agentcell.batch.repair import put_whole
from agentcell.batch.rows import Row, read_rows
from agentcell.batch.survey import survey
from agentcell_protocol.codec import encode
from agentcell_protocol.result import Attempt, SessionResult, Usage
from benchmarks.measure import Figure, compare, wall

ROWS = 2_000
PAIRS = 15
GOAL = 3.0

ANSWER = "The tests pass now: the index was off by one in two places, and the docstring said so. " * 5
"""What a session says at its end; a longer one only makes both sides slower."""

TASK = "Make the tests pass, and say what was wrong. " * 5
"""What a row asks for."""


def run() -> list[Figure]:
    """A batch of some thousand rows, each of which took one attempt."""
    with tempfile.TemporaryDirectory() as folder:
        requests, path = Path(folder) / "rows.jsonl", Path(folder) / "rows.run"
        requests.write_bytes(b"".join(encode(_request(number)) for number in range(ROWS)))
        with requests.open("rb") as file:
            digests = [row.digest for row in read_rows(file) if isinstance(row, Row)]
        _finish(path, digests)
        seen = compare(wall(lambda: _decide(requests, path)), wall(lambda: _parse(requests, path)), pairs=PAIRS)
    detail = f"{seen.ours.median * 1000:.1f} ms, bare {seen.theirs.median * 1000:.1f} ms"
    what = f"deciding that {ROWS:,} rows are finished"
    return [Figure("resume", what, "orjson.loads of the files", seen.ratio, GOAL, noise=seen.noise, detail=detail)]


def _request(number: int) -> dict[str, Any]:
    return {
        "session_name": f"row-{number}",
        "agent_type": "coder",
        "project_dir": "/",
        "starting_message": f"{number}: {TASK}",
    }


def _finish(path: Path, digests: list[str]) -> None:
    """Make the directory what a batch leaves."""
    with RunDirectory.open(path) as run:
        run.begin({})
    lines = [(path / "journal.jsonl").read_bytes()]
    results = []
    for number, digest in enumerate(digests):
        lines += map(encode, _attempt(number, digest))
        results.append(encode({**_result(number).to_message(), "digest": digest, "line": number + 1}))
    put_whole(path / "journal.jsonl", iter(lines))
    put_whole(path / "results.jsonl", iter(results))


def _result(number: int) -> SessionResult:
    usage = Usage(input_tokens=1_000, output_tokens=200)
    attempt = Attempt(number=1, status="complete", usage=usage, cost_usd=0.01, exit_code=0)
    return SessionResult(
        status="complete",
        response=ANSWER,
        session_name=f"row-{number}",
        id=f"row-{number}",
        usage=usage,
        cost_usd=0.01,
        attempts=[attempt],
        exit_code=0,
    )


def _attempt(number: int, digest: str) -> tuple[journal.Message, journal.Message]:
    started = journal.started(
        1.0,
        id=f"row-{number}",
        digest=digest,
        line=number + 1,
        attempt=1,
        mode="fresh",
        session_id="0c4989bf-3a27-495f-bd3f-2db89ed162d9",
        marker="7bcc0501-f587-40ed-a00f-8d939baf96ee",
        host_pid=1,
        boot_id="7bcc0501-f587-40ed-a00f-8d939baf96ee",
    )
    return started, journal.ended(2.0, id=f"row-{number}", tried=Tried(_result(number).attempts[0]))


def _decide(requests: Path, path: Path) -> None:
    with RunDirectory.open(path) as run, requests.open("rb") as file:
        found = survey(file, run.history)
        assert found.plans == {"finished": ROWS}


def _parse(requests: Path, path: Path) -> None:
    for file in (path / "journal.jsonl", path / "results.jsonl", requests):
        for line in file.read_bytes().splitlines():
            orjson.loads(line)
