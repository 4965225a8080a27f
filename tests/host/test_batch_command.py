"""The command `agentcell batch`: what it prints, its exit codes, and what is left when it ends before its rows do."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.host.command_line import BOUND_SECONDS, batch_line, environment, gate, run_command, started

from agentcell.testing import stand_in

BAD_KEY = {"fail": {"category": "authentication", "message": "no such key", "hint": "set another"}}


class Shell:
    """A directory with rows in it, and the command that runs them."""

    def __init__(self, path: Path, worker: Sequence[str]) -> None:
        self.path = path
        self.worker = worker
        (path / "project").mkdir()

    def row(self, row_id: str, *steps: dict[str, Any], **members: Any) -> dict[str, Any]:
        common = {"agent_type": "coder", "project_dir": "project", "starting_message": f"Do {row_id}."}
        return {"id": row_id, **common, "context": {"stand_in": list(steps)}, **members}

    def write(self, *rows: dict[str, Any] | str) -> None:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (self.path / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def argv(self, *arguments: str) -> list[str]:
        return batch_line(self.worker, *(arguments or ["rows.jsonl"]))

    def run(self, *arguments: str, stdin: bytes | None = None) -> "subprocess.CompletedProcess[bytes]":
        return run_command(self.argv(*arguments), self.path, stdin=stdin)

    def results(self, directory: str = "rows.run") -> dict[str, str]:
        """Of each row that has a result: the status, or the error's category."""
        lines = [json.loads(line) for line in (self.path / directory / "results.jsonl").read_bytes().splitlines()]
        assert len({line["id"] for line in lines}) == len(lines)
        return {line["id"]: (line["error"] or {}).get("category", line["status"]) for line in lines}


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with stand_in() as worker:
        yield Shell(tmp_path, worker)


def test_all_rows_run_and_the_same_command_again_has_nothing_to_do(shell: Shell) -> None:
    shell.write(shell.row("a"), shell.row("b"))
    first = shell.run()
    assert (first.returncode, first.stdout, shell.results()) == (0, b"", {"a": "complete", "b": "complete"})
    again = shell.run()
    assert (again.returncode, again.stdout) == (0, b"")


def test_a_row_that_fails_makes_it_one(shell: Shell) -> None:
    shell.write(shell.row("a"), shell.row("b", {"fail": {"category": "refusal", "message": "no"}}))
    assert (shell.run().returncode, shell.results()) == (1, {"a": "complete", "b": "refusal"})


def test_no_rows_at_all_are_a_success(shell: Shell) -> None:
    shell.write()
    assert shell.run().returncode == 0


def test_each_result_is_printed_when_that_is_asked_for(shell: Shell) -> None:
    shell.write(shell.row("a", {"text": "one"}), shell.row("b", {"text": "two"}))
    ended = shell.run("rows.jsonl", "--json", "--progress", "none")
    results = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {(one["id"], one["response"]) for one in results} == {("a", "one"), ("b", "two")}


def test_lines_that_are_no_rows_are_named_before_anything_starts(shell: Shell) -> None:
    inside = shell.row("c", result_file="rows.run/journal.jsonl")
    shell.write(shell.row("a"), "{", shell.row("b", colour="red"), shell.row("a"), inside)
    ended = shell.run()
    told = ended.stderr.decode().splitlines()
    assert (ended.returncode, ended.stdout, len(told)) == (2, b"", 5)
    assert told[0].startswith("line 2: the request: ")
    assert told[1].startswith("line 3: colour: is not a member of a request")
    assert told[2] == "line 4: id: a is the id of line 1, too; give each row an id of its own"
    assert told[3].startswith(f"line 5: result_file: {shell.path / 'rows.run'}/journal.jsonl belongs to the batch")
    assert told[4] == "error: rows.jsonl: nothing was run; mend these lines, or run the others with --skip-invalid"
    assert not (shell.path / "rows.run").exists()


def test_the_others_run_when_that_is_asked_for(shell: Shell) -> None:
    shell.write(shell.row("a"), "{", shell.row("b", colour="red"))
    assert shell.run("rows.jsonl", "--skip-invalid").returncode == 1
    assert shell.results() == {"line-2": "bad_request", "b": "bad_request", "a": "complete"}
    again = shell.run("rows.jsonl", "--skip-invalid")
    told = "nothing to do; 2 failed, and there is no request to run them again"
    assert (again.returncode, again.stderr.decode().splitlines()[-1]) == (1, told)
    shell.write(shell.row("a"), shell.row("b"))
    assert shell.run().returncode == 0
    assert shell.results() == {"a": "complete", "b": "complete"}


def test_lines_that_were_no_rows_are_counted_no_more_when_they_are_mended(shell: Shell) -> None:
    shell.write(shell.row("a"), "{")
    assert shell.run("rows.jsonl", "--skip-invalid").returncode == 1
    shell.write(shell.row("a"))
    ended = shell.run()
    assert (ended.returncode, shell.results()) == (0, {"a": "complete"})
    assert ended.stderr.decode().splitlines()[-1] == "nothing to do: every row has succeeded"


def test_a_row_that_was_changed_is_no_success_where_the_others_run(shell: Shell) -> None:
    shell.write(shell.row("a"), shell.row("c"))
    shell.run()
    shell.write(shell.row("a", {"text": "other"}), shell.row("b"), shell.row("c", colour="red"))
    ended = shell.run("rows.jsonl", "--skip-invalid")
    told = (
        "1 row was changed since: --rerun-changed runs it again; "
        "1 row was changed since and can be run no more: mend it"
    )
    assert (ended.returncode, ended.stderr.decode().splitlines()[-1]) == (1, told)
    assert shell.results() == {"a": "complete", "b": "complete", "c": "complete"}


def test_rows_that_have_left_the_file_still_count(shell: Shell) -> None:
    shell.write(shell.row("a"), shell.row("b"), shell.row("c"))
    shell.run()
    shell.write(shell.row("c"), shell.row("d"), shell.row("e"))
    ended = shell.run("rows.jsonl", "--progress", "json")
    shown = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith(b"{")]
    assert {(one["total"], one["done"] + one["pending"] + len(one["running"])) for one in shown} == {(5, 5)}
    assert "rows: 5: 5 done, 0 failed" in ended.stderr.decode().splitlines()


def test_from_stdin_the_others_always_run(shell: Shell) -> None:
    inside = json.dumps(shell.row("c", result_file="piped/results.jsonl")).encode()
    rows = b"\n".join([json.dumps(shell.row("a")).encode(), b"nonsense", json.dumps(shell.row("b")).encode(), inside])
    ended = shell.run("-", "--run-dir", "piped", "--progress", "none", stdin=rows)
    assert (ended.returncode, shell.results("piped")) == (
        1,
        {"a": "complete", "line-2": "bad_request", "b": "complete", "c": "bad_request"},
    )
    told = f"warning: rows may write to {shell.path / 'project'} at the same time; give each a copy of its own"
    assert ended.stderr.decode().count(told) == 1


def test_a_file_is_looked_through_before_anything_starts_where_there_is_no_stdin(shell: Shell) -> None:
    shell.write(shell.row("a"), "[]")
    closing = ["sh", "-c", 'exec "$@" <&-', "sh"]
    ended = run_command([*closing, *shell.argv()], shell.path)
    assert (ended.returncode, (shell.path / "rows.run").exists()) == (2, False)
    ended = run_command([*closing, *shell.argv("-")], shell.path)
    assert (ended.returncode, (shell.path / "stdin.run").exists()) == (2, False)
    assert b"stdin cannot be read: Bad file descriptor" in ended.stderr


def test_rows_from_stdin_are_run_as_they_come(shell: Shell) -> None:
    argv = shell.argv("-", "-j", "1", "--json", "--progress", "none")
    with started(argv, shell.path, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for row_id in ("a", "b"):
            process.stdin.write(json.dumps(shell.row(row_id)).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == row_id
        process.stdin.close()
        assert process.wait(BOUND_SECONDS) == 0
    assert (shell.path / "stdin.run" / "run.json").exists()


def test_what_rows_leave_out_comes_from_the_defaults(shell: Shell) -> None:
    shell.write({"starting_message": "Do it."}, {"starting_message": "Do that.", "agent_type": "planner"})
    (shell.path / "defaults.yaml").write_text("agent_type: coder\nproject_dir: project\n")
    assert shell.run("rows.jsonl", "--defaults", "defaults.yaml").returncode == 0
    assert all(row_id.startswith("row-") for row_id in shell.results())


def test_a_dry_run_says_what_would_be_done_and_does_nothing(shell: Shell) -> None:
    bad = {"fail": {"category": "refusal", "message": "no"}}
    shell.write(shell.row("done"), shell.row("failed", bad), shell.row("changed"))
    shell.run()
    before = sorted((path, path.stat().st_mtime_ns) for path in (shell.path / "rows.run").rglob("*"))
    shell.write(shell.row("done"), shell.row("failed", bad), shell.row("changed", {"text": "x"}), shell.row("new"))
    ended = shell.run("rows.jsonl", "--dry-run", "--retry-failed", "--rerun-changed")
    assert (ended.returncode, ended.stdout.decode().splitlines()) == (
        0,
        ["finished  done: complete", "again     failed", "changed   changed", "new       new"],
    )
    shared = f"warning: 3 rows may write to {shell.path / 'project'} at the same time; "
    assert ended.stderr.decode().splitlines() == [
        f"{shared}give each a copy of its own, such as a git worktree",
        "4 rows, 3 would run: 1 finished, 1 again, 1 changed, 1 new",
    ]
    assert sorted((path, path.stat().st_mtime_ns) for path in (shell.path / "rows.run").rglob("*")) == before


def test_a_dry_run_says_why_nothing_would_be_run(shell: Shell) -> None:
    shell.write(shell.row("a"))
    shell.run()
    shell.write(shell.row("a", {"text": "other"}), "{", shell.row("b"))
    ended = shell.run("rows.jsonl", "--dry-run")
    lines = ended.stdout.decode().splitlines()
    assert (ended.returncode, lines[0], lines[2]) == (
        2,
        "refused   a: it was changed since it was run; --rerun-changed runs it again",
        "new       b",
    )
    assert lines[1].startswith("invalid   line-2: line 2: ")
    assert ended.stderr.decode().splitlines() == [
        "3 rows, 0 would run: 1 refused, 1 new, 1 invalid",
        "error: rows.jsonl: nothing would be run; mend these lines, or run the others with --skip-invalid",
        "error: rows.run: nothing would be run; --rerun-changed runs changed rows again",
    ]
    others = shell.run("rows.jsonl", "--dry-run", "--skip-invalid")
    told = "3 rows, 1 would run: 1 refused, 1 new, 1 invalid"
    assert (others.returncode, others.stderr.decode().splitlines()) == (0, [told])


def test_rows_that_are_refused_leave_an_empty_directory_empty(shell: Shell) -> None:
    shell.write("{")
    (shell.path / "rows.run").mkdir()
    assert (shell.run().returncode, list((shell.path / "rows.run").iterdir())) == (2, [])


def test_a_file_that_is_written_over_meanwhile_ends_the_batch_and_nothing_false_is_kept(shell: Shell) -> None:
    with gate(shell.path / "gate") as (open_gate, wait):
        shell.write(shell.row("a", {"spawn": open_gate}, {"wait": 1}), shell.row("b"), shell.row("c"))
        with started(shell.argv("rows.jsonl", "-j", "1"), shell.path) as process:
            wait()
            (shell.path / "rows.jsonl").write_text("{}")
            _, told = process.communicate(timeout=BOUND_SECONDS)
    assert (process.returncode, b"the rows cannot be read any further: line 3 was changed" in told) == (1, True)
    assert set(shell.results()) <= {"a", "b"}


def test_no_secret_of_the_environment_is_kept_with_what_is_said_of_a_session(shell: Shell) -> None:
    said = "the batch's is 0-secret-0, the row's 1-secret-1"
    steps = ({"stderr": f"{said}\n"}, {"tool": {"name": "Bash", "input": {"command": said}}})
    failure = {"fail": {"category": "refusal", "message": said}}
    shell.write(shell.row("a", *steps, failure, env={"ROW_KEY": "1-secret-1"}))
    assert shell.run("rows.jsonl", "--env", "BATCH_TOKEN=0-secret-0").returncode == 1
    kept = {file.name: file.read_text() for file in (shell.path / "rows.run").rglob("*") if file.is_file()}
    assert {"run.json", "journal.jsonl", "results.jsonl", "request.json", "events.jsonl", "stderr.log"} <= set(kept)
    assert [name for name, content in kept.items() if "-secret-" in content] == []
    assert "the batch's is [masked], the row's [masked]" in kept["stderr.log"]


def test_a_row_that_was_changed_is_refused_before_anything_starts(shell: Shell) -> None:
    shell.write(shell.row("a"))
    shell.run()
    shell.write(shell.row("a", {"text": "other"}), shell.row("b"))
    ended = shell.run()
    assert (ended.returncode, shell.results()) == (2, {"a": "complete"})
    assert b"line 1: a was changed since it was run" in ended.stderr
    assert shell.run("rows.jsonl", "--rerun-changed").returncode == 0
    assert shell.results() == {"a": "complete", "b": "complete"}


def test_failed_rows_run_again_only_when_that_is_asked_for(shell: Shell) -> None:
    with stand_in([{"fail": {"category": "refusal", "message": "no"}}], [{"text": "done"}]) as shell.worker:
        row = shell.row("a")
        del row["context"]
        shell.write(row)
        assert [shell.run().returncode, shell.run().returncode] == [1, 1]
        assert shell.run("rows.jsonl", "--retry-failed").returncode == 0
    assert shell.results() == {"a": "complete"}


def test_an_account_that_is_refused_pauses_the_batch_and_says_how_to_go_on(shell: Shell) -> None:
    shell.write(shell.row("a", BAD_KEY), shell.row("b"), shell.row("c"))
    ended = shell.run("rows.jsonl", "-j", "1", "--progress", "none")
    assert (ended.returncode, shell.results()) == (75, {})
    last = ended.stderr.decode().splitlines()[-1]
    assert last == (
        "the API cannot be used: no such key; set another. 3 rows are pending: run the same command again to go on"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.jsonl"], "missing.jsonl cannot be read: No such file or directory; name a file, or '-' for stdin"),
        (["rows.jsonl", "--max-failures", "some"], "'some' is no number of rows; give one such as 20"),
        (["rows.jsonl", "--deadline", "soon"], "'soon' is no time; give one such as 90s, 45m, 8h or"),
        (["rows.jsonl", "-j", "0"], "0 is not in the range x>=1"),
        (["rows.jsonl", "--max-cost-usd", "nan"], "nan is no amount"),
        (["rows.jsonl", "--retries", "9999"], "9999 is not in the range 0<=x<=1000"),
        (["-", "--max-failures", "5%"], "of a stream nobody knows the number of rows"),
        (["rows.jsonl", "--run-dir", "project"], "it has files in it and no run.json, so it is no run directory"),
        (["rows.jsonl", "--run-dir", ""], "it is empty; name a directory, or leave it out"),
        (
            ["rows.jsonl", "--run-dir", "rows.jsonl/x"],
            "rows.jsonl/x: it cannot be made (Not a directory); name another",
        ),
        (["project"], "project cannot be read: Is a directory; name a file, or '-' for stdin"),
        (["rows.jsonl", "--dry-run", "--json"], "--dry-run prints a line for each row, and no results for --json"),
        (["rows.jsonl", "--dry-run", "--run-dir", "project"], "it has files in it and no run.json"),
        (["rows.jsonl", "--defaults", "bad.json"], "bad.json: id: would be the same for all rows; leave it out of the"),
        (["rows.jsonl", "--defaults", "dated.yaml"], "dated.yaml: limits.idle_seconds: must be a number"),
        (["rows.jsonl", "--defaults", "empty.yaml"], "empty.yaml holds no object; write one with named members in it"),
    ],
)
def test_mistakes_on_the_command_line_are_told_with_their_remedy(shell: Shell, arguments: list[str], told: str) -> None:
    shell.write(shell.row("a"))
    (shell.path / "project" / "file").touch()
    (shell.path / "bad.json").write_text('{"id": "a"}')
    (shell.path / "dated.yaml").write_text("model: 2030-01-31\nlimits: &all\n  idle_seconds: 2030-01-31\n")
    (shell.path / "empty.yaml").touch()
    ended = shell.run(*arguments)
    assert ended.returncode == 2
    assert told in " ".join(ended.stderr.decode().split())


def test_rows_that_may_write_to_one_project_are_warned_of_once(shell: Shell) -> None:
    shell.write(shell.row("a"), shell.row("b"), shell.row("c"))
    ended = shell.run()
    assert ended.stderr.decode().count("warning: 3 rows may write to ") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_second_signal_cuts_what_runs_and_the_same_command_goes_on(
    shell: Shell, number: signal.Signals, code: int
) -> None:
    with gate(shell.path / "gate") as (open_gate, wait):
        hang = shell.row("a", {"spawn": open_gate}, {"hang": True})
        shell.write(hang, shell.row("b"))
        with started(shell.argv("rows.jsonl", "-j", "1", "--progress", "json"), shell.path) as process:
            assert process.stderr is not None
            wait()
            process.send_signal(number)
            name = signal.Signals(number).name
            again = "Ctrl-C again" if number == signal.SIGINT else "another signal"
            told_first = (
                f"interrupted by {name}: waiting up to 30 s for what runs; {again} cancels it, a third kills it"
            )
            while told_first.encode() not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(number)
            _, told = process.communicate(timeout=BOUND_SECONDS)
    assert (process.returncode, shell.results()) == (code, {})
    assert told.decode().splitlines()[-1].startswith(f"interrupted by {name}. 2 rows are pending")


def test_after_a_signal_what_runs_may_finish(shell: Shell) -> None:
    with gate(shell.path / "gate") as (open_gate, wait):
        shell.write(shell.row("a", {"spawn": open_gate}, {"wait": 1}), shell.row("b"))
        with started(shell.argv("rows.jsonl", "-j", "1"), shell.path) as process:
            wait()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=BOUND_SECONDS)
    assert (process.returncode, shell.results()) == (130, {"a": "complete"})


def test_a_signal_while_stdin_is_silent_ends_it(shell: Shell) -> None:
    argv = shell.argv("-", "-j", "1", "--json", "--progress", "none")
    with started(argv, shell.path, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(shell.row("a")).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND_SECONDS) == 143
    assert shell.results("stdin.run") == {"a": "complete"}


def test_a_reader_of_the_results_that_leaves_ends_the_batch_and_loses_nothing(shell: Shell) -> None:
    shell.write(shell.row("a"), *(shell.row(f"hang-{number}", {"hang": True}) for number in range(2)))
    argv = shell.argv("rows.jsonl", "-j", "3", "--json", "--progress", "none")
    with started(argv, shell.path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read().decode()
        assert process.wait(BOUND_SECONDS) == 1
    assert "the results cannot be written to stdout (Broken pipe), so the batch has ended" in told
    assert "Traceback" not in told
    assert shell.results() == {"a": "complete"}


def test_a_full_disk_for_the_results_ends_the_batch_and_loses_nothing(shell: Shell) -> None:
    shell.write(shell.row("a"), shell.row("hang", {"hang": True}))
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            shell.argv("rows.jsonl", "-j", "2", "--json", "--progress", "none"),
            env=environment(shell.path),
            cwd=shell.path,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=BOUND_SECONDS,
            check=False,
        )
    assert (ended.returncode, shell.results()) == (1, {"a": "complete"})
    assert b"the results cannot be written to stdout (No space left on device)" in ended.stderr


def test_results_for_a_stdout_that_is_closed_are_a_mistake_and_nothing_is_run(shell: Shell) -> None:
    shell.write(shell.row("a"))
    ended = run_command(["sh", "-c", 'exec "$@" >&-', "sh", *shell.argv("rows.jsonl", "--json")], shell.path)
    assert (ended.returncode, (shell.path / "rows.run").exists()) == (2, False)
    assert b"stdout is closed, and --json prints to it; open it, or leave --json out" in ended.stderr


def test_two_batches_do_not_share_a_run_directory(shell: Shell) -> None:
    with gate(shell.path / "gate") as (open_gate, wait):
        shell.write(shell.row("a", {"spawn": open_gate}, {"hang": True}))
        with started(shell.argv("rows.jsonl", "--grace", "0"), shell.path) as process:
            wait()
            second = shell.run()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=BOUND_SECONDS)
    assert second.returncode == 2
    assert f"process {process.pid} has it" in " ".join(second.stderr.decode().split())


def test_a_batch_that_is_killed_goes_on_where_it_was(shell: Shell) -> None:
    with gate(shell.path / "gate") as (open_gate, wait):
        shell.write(shell.row("a"), shell.row("b", {"spawn": open_gate}, {"wait": 1}, {"text": "done"}))
        argv = shell.argv("rows.jsonl", "-j", "1")
        with started(argv, shell.path) as process:
            wait()
            os.kill(process.pid, signal.SIGKILL)
            process.communicate(timeout=BOUND_SECONDS)
        with started(argv, shell.path) as process:
            process.communicate(timeout=BOUND_SECONDS)
    assert (process.returncode, shell.results()) == (0, {"a": "complete", "b": "complete"})


def test_a_reader_that_has_stopped_reading_does_not_hold_the_end_up(shell: Shell) -> None:
    shell.write(*(shell.row(f"row-{number}", {"text": "x" * 200_000}) for number in range(2)))
    argv = shell.argv("rows.jsonl", "-j", "1", "--json", "--progress", "json")
    with started(argv, shell.path) as process:
        assert process.stderr is not None
        while b'"done":1' not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        while b"interrupted by SIGINT: waiting" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(BOUND_SECONDS) == 130
    assert shell.results() == {"row-0": "complete"}
