"""Opening the run directory of a finished batch against parsing the lines of its files."""

import tempfile
from pathlib import Path

import orjson

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.directory import RunDirectory
from agentcell.batch.repair import put_whole
from agentcell_protocol.codec import encode
from agentcell_protocol.result import Attempt, SessionResult, Usage
from benchmarks.row import Row, compare

ROWS = 2_000
ROUNDS = 15
BOUND = 3.0

ANSWER = "The tests pass now: the index was off by one in two places, and the docstring said so. " * 5
"""What a session says at its end; a longer one only makes both sides slower."""


def run() -> list[Row]:
    """A batch of some thousand rows, each of which took one attempt."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        _finish(path)
        ratio, mine, bare = compare(lambda: _open(path), lambda: _parse(path), rounds=ROUNDS)
    detail = f"{mine * 1000:.1f} ms, bare orjson.loads {bare * 1000:.1f} ms"
    return [Row("resume", f"opening {ROWS:,} results", ratio, BOUND, detail)]


def _finish(path: Path) -> None:
    """Make the directory what a batch leaves."""
    with RunDirectory.open(path) as run:
        run.begin({})
    lines = [(path / "journal.jsonl").read_bytes()]
    results = []
    for number in range(ROWS):
        lines += map(encode, _attempt(number))
        results.append(encode({**_result(number).to_message(), "digest": "1:0123456789abcdef", "line": number}))
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


def _attempt(number: int) -> tuple[journal.Message, journal.Message]:
    started = journal.started(
        1.0,
        id=f"row-{number}",
        digest="1:0123456789abcdef",
        line=number,
        attempt=1,
        mode="fresh",
        session_id="0c4989bf-3a27-495f-bd3f-2db89ed162d9",
        marker="7bcc0501-f587-40ed-a00f-8d939baf96ee",
        host_pid=1,
        boot_id="7bcc0501-f587-40ed-a00f-8d939baf96ee",
    )
    return started, journal.ended(2.0, id=f"row-{number}", tried=Tried(_result(number).attempts[0]))


def _open(path: Path) -> int:
    with RunDirectory.open(path) as run:
        run.begin({})
        assert sum(1 for _ in run.history.pending()) == 0
        return len(run.results.index)


def _parse(path: Path) -> None:
    for name in ("run.json", "journal.jsonl", "results.jsonl"):
        content = (path / name).read_bytes()
        for line in [content] if name == "run.json" else content.splitlines():
            orjson.loads(line)
