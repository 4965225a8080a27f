"""`agentcell status` says what a run directory knows, without what agents wrote unless that is asked for."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import orjson
import pytest
from click.testing import CliRunner, Result
from tests.host.batch.run_directory import begun
from tests.host.command_line import batch_line, run_command, write_rows

from agentcell.batch.identity import slug
from agentcell.batch.lock import locked
from agentcell.cli import agentcell
from agentcell.commands.no_batch import MADE
from agentcell.testing import stand_in

STATUS = [sys.executable, "-c", "import sys; from agentcell.cli import main; sys.exit(main())", "status"]

FAILS = {"fail": {"category": "refusal", "message": "the agent's own \x1b[2Jwords"}}


@pytest.fixture
def worker() -> Iterator[tuple[str, ...]]:
    with stand_in([{"text": "done"}]) as argv:
        yield argv


def status(*arguments: str | Path) -> Result:
    return CliRunner().invoke(agentcell, ["status", *map(str, arguments)])


def cell_line(shown: Result) -> str:
    return next(line for line in shown.output.splitlines() if line.startswith("running: a"))


def run_batch(worker: tuple[str, ...], home: Path, *options: str) -> CompletedProcess[bytes]:
    rows = write_rows(home / "rows.jsonl", ("a", [{"text": "secret"}]), ("b", [FAILS]))
    return run_command(batch_line(worker, rows.name, *options), home)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A batch of one row, which was begun."""
    path = tmp_path / "rows.run"
    with begun(path, {"rows": 1}) as run:
        folder = run.folder("a", 1)
        run.record(
            {"at": 1.0, "event": "started", "id": "a", "attempt": 1, "digest": "1:a", "marker": "m", "boot_id": "b"}
            | {"mode": "fresh"}
        )
    (folder / "events.jsonl").write_bytes(orjson.dumps({"type": "text", "text": "a secret"}) + b"\n")
    return path


@pytest.mark.slow
def test_the_end_of_a_batch_and_its_status_say_the_same(worker: tuple[str, ...], tmp_path: Path) -> None:
    batch = run_batch(worker, tmp_path, "--progress", "none")
    assert (batch.returncode, batch.stdout) == (1, b""), batch.stderr
    run_dir = Path("rows.run")
    shown = run_command([*STATUS, str(run_dir)], tmp_path)
    assert (shown.returncode, shown.stderr) == (0, b"")
    lines = shown.stdout.decode().splitlines()
    assert lines[0] == "state: finished"
    told = [line for line in batch.stderr.decode().splitlines() if not line.startswith("warning")]
    assert told == lines[1:]
    assert [line for line in lines if not line.startswith(("time", "slowest"))] == [
        "state: finished",
        "rows: 2: 1 done, 1 failed",
        "complete: 1",
        "error (refusal): 1",
        "cost: $0.00",
        "tokens: 0 in, 0 out",
        "results: rows.run/results.jsonl",
        f"failed: b (refusal): rows.run/cells/{slug('b')}/1/result.json",
        "messages: agentcell status rows.run --content shows them",
    ]
    content = run_command([*STATUS, "--content", str(run_dir)], tmp_path).stdout.decode()
    assert content.splitlines()[-1] == "b: the agent's own words"


@pytest.mark.slow
def test_progress_as_json_is_on_stderr_and_results_on_stdout(worker: tuple[str, ...], tmp_path: Path) -> None:
    batch = run_batch(worker, tmp_path, "--progress", "json", "--json")
    lines = [line for line in batch.stderr.splitlines() if line.startswith(b"{")]
    last = json.loads(lines[-1])
    assert (last["type"], last["done"], last["failed"], last["pending"]) == ("progress", 1, 1, 0)
    assert b"secret" not in batch.stderr
    assert sorted(json.loads(line)["status"] for line in batch.stdout.splitlines()) == ["complete", "error"]


def test_what_an_agent_wrote_is_shown_only_when_it_is_asked_for(run_dir: Path) -> None:
    with locked(run_dir):
        plain, whole = status(run_dir), status(run_dir, "--content")
        as_json, whole_json = status(run_dir, "--json"), status(run_dir, "--json", "--content")
    assert plain.output.startswith(f"state: running: process {os.getpid()} on ")
    assert cell_line(plain).endswith(": text")
    assert "secret" not in plain.output + as_json.output
    assert cell_line(whole).endswith(": a secret")
    assert json.loads(as_json.output)["running"][0]["last_event"] == {"type": "text"}
    assert json.loads(whole_json.output)["running"][0]["last_event"] == {"type": "text", "text": "a secret"}


def test_a_batch_that_was_cut_is_told_from_one_that_runs(run_dir: Path) -> None:
    (run_dir / "lock").write_bytes(orjson.dumps({"pid": 4, "since": 1.0, "started": 1.0, "host": "there"}))
    shown = status(run_dir)
    assert shown.output.splitlines()[:2] == [
        "state: interrupted: process 4 on there died",
        "rows: 1: 0 done, 0 failed, 1 pending",
    ]
    assert shown.output.splitlines()[-1] == "1 row is pending: run the same command again to go on"
    message = json.loads(status(run_dir, "--json").output)
    assert (message["state"], message["pid"], message["pending"], message["running"]) == ("interrupted", 4, 1, [])


def test_of_a_stream_that_was_cut_nobody_knows_what_is_left(tmp_path: Path) -> None:
    with begun(tmp_path / "stdin.run", {"rows": None}):
        pass
    (tmp_path / "stdin.run" / "lock").write_bytes(b"torn")
    lines = status(tmp_path / "stdin.run").output.splitlines()
    assert lines[:2] == ["state: interrupted: its process died", "rows: 0 done, 0 failed"]
    assert lines[-1] == "rows may be left: run the same command again to go on"


def test_one_that_could_not_write_why_it_ended_is_told_from_one_that_died(run_dir: Path) -> None:
    lines = status(run_dir).output.splitlines()
    assert (lines[0], lines[-1]) == (
        "state: stopped: it ended without writing why",
        "1 row is pending: run the same command again to go on",
    )
    message = json.loads(status(run_dir, "--json").output)
    assert (message["state"], message["reason"]) == ("stopped", "it ended without writing why")


def test_why_one_ended_with_rows_left_stands_first_and_how_to_go_on_last(run_dir: Path) -> None:
    reason = "the deadline is reached. 1 row is pending: run the same command again to go on"
    with (run_dir / "journal.jsonl").open("ab") as journal:
        journal.write(orjson.dumps({"at": 2.0, "event": "closed", "reason": reason}) + b"\n")
    lines = status(run_dir).output.splitlines()
    assert (lines[0], lines[-1]) == (f"state: stopped: {reason}", reason)


def test_of_a_line_that_was_no_row_no_folder_is_named(run_dir: Path) -> None:
    line = {"id": "line-2", "status": "error", "error": {"category": "bad_request", "message": "no JSON"}}
    (run_dir / "results.jsonl").write_bytes(orjson.dumps(line) + b"\n")
    assert f"failed: line-2 (bad_request): {run_dir}/results.jsonl" in status(run_dir).output.splitlines()
    [failure] = json.loads(status(run_dir, "--json", "--content").output)["failures"]
    assert failure == {"id": "line-2", "category": "bad_request", "folder": None, "result": None, "message": "no JSON"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nothing", "there is no {}; " + MADE),
        ("", "{}: it has no run.json, so it is no run directory; " + MADE),
        ("rows", "there is no {}; did you mean {run}?"),
        ("rows.jsonl", "{}: it has no run.json, so it is no run directory; did you mean {run}?"),
    ],
)
def test_what_is_no_run_directory_is_a_mistake(name: str, told: str, run_dir: Path) -> None:
    (run_dir.parent / "rows.jsonl").touch()
    given = run_dir.parent / name
    shown = status(given)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.splitlines()[-1] == "Error: " + told.format(given, run=run_dir)


def test_one_of_a_newer_format_says_what_can_read_it(run_dir: Path) -> None:
    (run_dir / "run.json").write_bytes(b'{"format": 2, "agentcell": "9.0"}')
    told = f"Error: {run_dir}: its format is 2, and this agentcell knows 1; use agentcell 9.0 or newer"
    assert status(run_dir).stderr.splitlines()[-1] == told
