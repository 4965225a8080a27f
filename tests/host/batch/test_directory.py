"""A run directory is made, gone on with, held by one batch at a time, and never mistaken."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from tests.ending import ending
from tests.host.batch.run_directory import begun

from agentcell.batch import journal
from agentcell.batch.directory import (
    FORMAT,
    RunDirectory,
    is_run_directory,
    known_history,
    read_description,
    read_history,
)
from agentcell.batch.identity import slug
from agentcell.batch.lock import Holder, holder, in_force, locked
from agentcell.batch.repair import Repair
from agentcell.batch.results import Results
from agentcell.errors import BusyError, RunDirectoryError
from agentcell_protocol.result import SessionResult
from agentcell_protocol.version import PROTOCOL, __version__

WAIT_SECONDS = 30

DONE = SessionResult(status="complete", response="Done.", session_name="s")

HOLDER = """
import sys
from pathlib import Path
from agentcell.batch.directory import RunDirectory
with RunDirectory.open(Path(sys.argv[1])) as run:
    run.begin({})
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has the run directory."""
    argv = [sys.executable, "-c", HOLDER, str(tmp_path / "run")]
    with ending(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process


def pid_of(found: Holder | None) -> int | None:
    return None if found is None else found.pid


def events(path: Path) -> list[str]:
    return [orjson.loads(line)["event"] for line in (path / "journal.jsonl").read_bytes().splitlines()]


def test_it_is_made_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep/run"
    with begun(path) as run:
        run.folder("a", 1)
    modes = {str(file.relative_to(path)): oct(file.stat().st_mode & 0o777) for file in [path, *path.rglob("*")]}
    assert modes == {
        ".": "0o700",
        "cells": "0o700",
        f"cells/{slug('a')}": "0o700",
        f"cells/{slug('a')}/1": "0o700",
        "journal.jsonl": "0o600",
        "lock": "0o600",
        "results.jsonl": "0o600",
        "run.json": "0o600",
    }


def test_it_says_what_it_is_and_how_it_was_begun(tmp_path: Path) -> None:
    before = time.time()
    with begun(tmp_path / "run", {"concurrency": 2}, requests="rows.jsonl"):
        description = read_description(tmp_path / "run")
    assert before <= description["created"] <= time.time()
    assert description == {
        "format": FORMAT,
        "agentcell": __version__,
        "protocol": PROTOCOL,
        "created": description["created"],
        "requests": "rows.jsonl",
        "config": {"concurrency": 2},
    }
    with begun(tmp_path / "run", {"concurrency": 9}) as run:
        assert read_description(tmp_path / "run") == description
        assert run.history.opened is not None
        assert run.history.opened["config"] == {"concurrency": 9}
    assert events(tmp_path / "run") == ["opened", "opened"]


def test_before_it_is_begun_nothing_says_that_it_was(tmp_path: Path) -> None:
    with RunDirectory.open(tmp_path / "run", requests="rows.jsonl") as run:
        assert (is_run_directory(run.path), known_history(run.path)) == (False, None)
        run.begin({"rows": 2})
        assert is_run_directory(run.path)
    with RunDirectory.open(tmp_path / "run") as run:
        assert run.history.closed is None
    assert events(tmp_path / "run") == ["opened"]


def test_what_an_attempt_has_lies_below_its_row(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as run:
        cell = tmp_path / "run/cells" / slug("../x")
        assert (run.folder("../x", 2), run.keep_root("../x")) == (cell / "2", cell / "transcript")
        assert run.folder("../x", 2).is_dir()


def test_an_empty_directory_will_do_and_so_will_one_whose_host_died_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    (path / "lock").touch()
    (path / ".run.json.new").write_text('{"form')
    with begun(path):
        assert sorted(file.name for file in path.iterdir()) == ["journal.jsonl", "lock", "results.jsonl", "run.json"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"notes.txt": ""}, "it has files in it and no run.json, so it is no run directory"),
        ({"run.json": "{"}, "its run.json is not JSON"),
        ({"run.json": "[]"}, "its run.json names no format"),
        ({"run.json": '{"name": "jogging"}'}, "its run.json names no format"),
        ({"run.json": '{"format": true}'}, "its run.json names no format"),
        ({"run.json": '{"format": 2, "agentcell": "9.1"}'}, "its format is 2, and this agentcell knows 1"),
    ],
)
def test_what_is_no_run_directory_is_left_alone(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(RunDirectoryError) as refused, begun(tmp_path):
        pass
    assert (refused.value.path, refused.value.reason) == (tmp_path, reason)
    written = {file.name: file.read_text() for file in tmp_path.iterdir() if file.name != "lock"}
    assert written == files


def test_nor_is_it_looked_into(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(RunDirectoryError):
            known_history(path)
    assert known_history(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("x" * 256, "it cannot be made (File name too long)"),
        ("notes.txt/run", "it cannot be made (Not a directory)"),
    ],
)
def test_what_cannot_be_made_is_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "notes.txt").touch()
    assert not is_run_directory(tmp_path / name)
    with pytest.raises(RunDirectoryError) as refused, RunDirectory.open(tmp_path / name):
        pass
    assert (refused.value.path, refused.value.reason) == (tmp_path / name, reason)


def test_what_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    (tmp_path / "run.json").write_text('{"format": 1}')
    with pytest.raises(RunDirectoryError) as refused, RunDirectory.open(tmp_path):
        pass
    assert refused.value.reason == "it cannot be written to (Is a directory)"


def test_a_copy_of_one_that_is_run_at_this_moment_is_left_alone(
    tmp_path: Path, elsewhere: "subprocess.Popen[str]"
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "run", copy)
    before = {file.name: file.read_bytes() for file in copy.iterdir()}
    with pytest.raises(RunDirectoryError) as refused, RunDirectory.open(copy):
        pass
    assert refused.value.reason == f"it is a copy of one that process {elsewhere.pid} runs at this moment"
    assert {file.name: file.read_bytes() for file in copy.iterdir()} == before
    elsewhere.kill()
    elsewhere.wait(WAIT_SECONDS)
    with begun(copy):
        assert events(copy) == ["opened", "opened"]


def test_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    refused = pytest.raises(RunDirectoryError, match="/run: it is no directory; name another one")
    with refused, begun(tmp_path / "run"):
        pass


def test_a_directory_that_is_none_cannot_be_described(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(RunDirectoryError, match=r"it has no run\.json, so it is no run directory"):
            read_description(path)


def test_two_batches_cannot_have_one_at_once(tmp_path: Path, elsewhere: "subprocess.Popen[str]") -> None:
    path = tmp_path / "run"
    before = (path / "journal.jsonl").read_bytes()
    with pytest.raises(BusyError) as busy, begun(path):
        pass
    seen = holder(path)
    assert seen is not None
    assert (busy.value.pid, busy.value.since, seen.process is not None) == (elsewhere.pid, seen.since, True)
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seen.since))
    assert busy.value.reason == f"process {elsewhere.pid} has it, since {since}"
    assert (path / "journal.jsonl").read_bytes() == before


def test_in_one_process_neither(tmp_path: Path) -> None:
    with begun(tmp_path), pytest.raises(BusyError) as busy, begun(tmp_path):
        pass
    assert busy.value.pid == os.getpid()


def test_whoever_is_killed_holds_it_no_longer(tmp_path: Path, elsewhere: "subprocess.Popen[str]") -> None:
    elsewhere.kill()
    assert elsewhere.wait(WAIT_SECONDS) == -signal.SIGKILL
    left = holder(tmp_path / "run")
    assert left is not None
    assert (left.pid, left.process) == (elsewhere.pid, None)
    with begun(tmp_path / "run"):
        now = holder(tmp_path / "run")
        assert now is not None
        assert (now.pid, now.process) == (os.getpid(), psutil.Process())


def test_what_a_process_starts_does_not_hold_it(tmp_path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as first:
        with begun(tmp_path), subprocess.Popen(["cat"], stdin=subprocess.PIPE) as second:
            assert second.poll() is None
            second.communicate()
        with begun(tmp_path):
            assert first.poll() is None
        first.communicate()


@pytest.mark.parametrize("content", ["", "{", '{"pid": 1}', "[]"])
def test_a_lock_that_does_not_say_whose_it_is_can_be_taken(tmp_path: Path, content: str) -> None:
    (tmp_path / "lock").write_text(content)
    assert holder(tmp_path) is None
    with locked(tmp_path):
        assert pid_of(holder(tmp_path)) == os.getpid()


def test_a_pid_on_another_machine_or_of_another_process_is_not_here(tmp_path: Path) -> None:
    with locked(tmp_path):
        mine = orjson.loads((tmp_path / "lock").read_bytes())
    for change in ({"host": "elsewhere"}, {"started": mine["started"] - 60}):
        (tmp_path / "lock").write_bytes(orjson.dumps({**mine, **change}))
        other = holder(tmp_path)
        assert other is not None
        assert (other.process, in_force(tmp_path)) == (None, False)


def test_whoever_is_done_with_it_has_it_no_longer(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert (pid_of(holder(tmp_path)), in_force(tmp_path)) == (os.getpid(), True)
    assert (holder(tmp_path), in_force(tmp_path)) == (None, False)


def start(id_: str, **more: Any) -> dict[str, Any]:
    members: dict[str, Any] = {"attempt": 1, "mode": "fresh", "session_id": None, "marker": "m", "boot_id": "before"}
    return journal.started(1.0, id=id_, digest="1:aa", line=1, host_pid=5, **{**members, **more})


def test_what_was_there_is_known_when_it_is_opened_again(tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        run.record(start("a"), start("b"))
        run.results.add_now("a", "1:aa", 1, DONE)
    with begun(tmp_path) as run:
        assert run.repairs == []
        assert (list(run.history.finished), list(run.history.pending())) == (["a"], ["b"])
        finished = run.history.of("a")
    assert finished is not None
    assert (finished.is_finished, finished.status) == (True, "complete")


def test_torn_ends_are_moved_aside_before_anything_is_written(tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        run.record(start("a"))
        run.results.add_now("a", "1:aa", 1, DONE)
        run.results.add_now("b", "1:aa", 2, DONE)
    for name in ("results.jsonl", "journal.jsonl"):
        with (tmp_path / name).open("r+b") as file:
            file.truncate((tmp_path / name).stat().st_size - 5)
    with begun(tmp_path) as run:
        assert run.repairs == [
            Repair(tmp_path / "results.jsonl", tmp_path / "results.jsonl.torn-1", (2,)),
            Repair(tmp_path / "journal.jsonl", tmp_path / "journal.jsonl.torn-1", (2,)),
        ]
        assert [*run.history.finished, *run.history.pending()] == ["a"]
    assert events(tmp_path) == ["opened", "opened"]


def test_rows_that_are_run_again_are_as_if_they_had_not_been_tried(tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        run.record(start("a"), start("b"))
        for id_ in "ab":
            run.results.add_now(id_, "1:aa", 1, DONE)
    with begun(tmp_path) as run:
        run.reopen([])
        run.reopen(["b"])
        again = run.history.of("b")
    assert again is not None
    assert (again.is_finished, again.past, again.last_attempt) == (False, (), 1)
    with begun(tmp_path) as run:
        assert (list(run.results.index), run.history.of("b")) == (["a"], again)
    assert json.loads((tmp_path / "results.jsonl").read_text())["id"] == "a"


def test_that_rows_are_run_again_is_on_the_disk_before_their_results_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_self: Results, _ids: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Results, "drop", die)
    with begun(tmp_path) as run:
        run.results.add_now("a", "1:aa", 1, DONE)
        with pytest.raises(KeyboardInterrupt):
            run.reopen(["a"])
    assert events(tmp_path) == ["opened", "reopened"]


def test_the_history_of_somebody_elses_can_be_read_and_nothing_changes(tmp_path: Path) -> None:
    with begun(tmp_path, {"concurrency": 2}) as run:
        run.record(start("a"), start("b"))
        run.results.add_now("a", "1:aa", 1, DONE)
        with (tmp_path / "results.jsonl").open("ab") as file:
            file.write(b'{"half')
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        history = read_history(tmp_path)
        assert [attempt.marker for _, attempt in history.open_attempts()] == ["m", "m"]
        assert ([*history.finished, *history.pending()], history.opened) == (["a", "b"], run.history.opened)
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_opening_parses_each_line_once_and_validates_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(tmp_path) as run:
        for number in range(20):
            run.record(start(str(number)))
            run.results.add_now(str(number), "1:aa", number, DONE)
    with begun(tmp_path):
        pass  # takes up what is still open
    parsed: list[bytes] = []
    loads = orjson.loads

    def counted(content: bytes) -> Any:
        parsed.append(content)
        return loads(content)

    monkeypatch.setattr(orjson, "loads", counted)
    monkeypatch.setattr(SessionResult, "model_validate", None)
    lines = sum(len((tmp_path / name).read_bytes().splitlines()) for name in ("results.jsonl", "journal.jsonl"))
    with begun(tmp_path):
        assert len(parsed) == lines + len(["lock", "run.json"])


def test_who_only_looks_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        monkeypatch.setattr("agentcell.batch.lock.time.sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
        with locked(tmp_path):
            assert pid_of(holder(tmp_path)) == os.getpid()


def test_where_there_never_was_a_lock_nobody_has_it(tmp_path: Path) -> None:
    assert not in_force(tmp_path)


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(RunDirectoryError) as refused, locked(tmp_path):
        pass
    assert refused.value.reason == "its file system has no locks (No locks available)"
