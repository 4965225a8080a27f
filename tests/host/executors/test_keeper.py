"""A keeper makes the attempts that are asked of it, and says what comes of them."""

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.faults.harness import Room
from tests.host.executors.keepers import CLINGS, HANGS, STRAY, is_gone, keeping, order

from agentcell.executors.paths import SHARE
from agentcell.executors.wire import ALIVE, ATTEMPT, WIRE_LIMIT, line, packed
from agentcell.reap import GRACE_SECONDS
from agentcell_protocol.cell import MARKER, marked, new_marker
from agentcell_protocol.version import __version__

SAME_VERSION = "install the same version of agentcell on every node"

MEGABYTE = 1_000_000


@pytest.fixture
def room(tmp_path: Path) -> Room:
    path = tmp_path / "room"
    path.mkdir()
    return Room(path)


def told(messages: list[dict[str, Any]]) -> list[str]:
    """The types of all events."""
    return [event["type"] for message in messages for event in message.get("events", ())]


def category(result: dict[str, Any]) -> tuple[str, Any]:
    """Of its error, and by whose doing it was."""
    details = result["error"]["details"]
    return result["error"]["category"], details.get("by") or details.get("signal")


def test_it_says_where_it_is_and_which_version_it_has_and_is_nobodys_child(room: Room) -> None:
    with keeping(room) as keeper:
        pid = keeper.ready["pid"]
        assert keeper.ready == {"type": "ready", "address": keeper.address, "pid": pid, "version": __version__}
        assert os.getsid(pid) == pid
        assert keeper.directory.stat().st_mode & 0o777 == 0o700


def test_an_attempt_says_its_events_and_then_its_result(room: Room) -> None:
    with keeping(room) as keeper:
        attempt = order(room, {"text": "one"}, {"text": "two"})
        *said, ended = keeper.ask(attempt).rest()
        assert {(message["type"], message["marker"]) for message in said} == {("said", attempt.marker)}
        assert told(said) == ["hello", "session_started", "text", "text", "outcome"]
        assert (ended["type"], ended["marker"], ended["result"]["response"]) == ("ended", attempt.marker, "two")


def test_events_that_nobody_wants_are_not_said(room: Room) -> None:
    with keeping(room, min_free_mb=1) as keeper:
        (ended,) = keeper.ask(order(room, {"text": "done"}, is_heard=False)).rest()
        assert ended["result"]["status"] == "complete"


def test_many_small_events_come_in_few_lines(room: Room) -> None:
    with keeping(room) as keeper:
        *said, _ended = keeper.ask(order(room, {"text": "x", "times": 2000})).rest()
        assert told(said).count("text") == 2000
        assert len(said) < 200


def test_what_is_not_read_waits_in_the_cell_and_holds_up_nobody_else(room: Room) -> None:
    with keeping(room) as keeper, closing(keeper.ask(order(room, {"text": "x" * MEGABYTE, "times": 150}))) as slow:
        seen = slow.until(lambda message: "text" in told([message]))
        before = keeper.peak_kb
        assert keeper.ask(order(room, {"text": "done"})).result()["response"] == "done"
        assert told([*seen, *slow.rest()]).count("text") == 150
        assert keeper.peak_kb - before < 60_000


def test_a_cancelled_attempt_has_its_result(room: Room) -> None:
    with keeping(room) as keeper:
        asked = keeper.ask(order(room, *HANGS)).begun()
        keeper.cancel(asked.marker, "SIGINT")
        assert category(asked.result()) == ("cancelled", "SIGINT")


def test_an_attempt_that_is_cancelled_twice_ends_at_once(room: Room) -> None:
    with keeping(room) as keeper:
        asked = keeper.ask(order(room, STRAY, *CLINGS)).begun()
        began = time.monotonic()
        keeper.cancel(asked.marker)
        keeper.cancel(asked.marker)
        assert category(asked.result()) == ("cancelled", "SIGTERM")
        assert time.monotonic() - began < GRACE_SECONDS
        assert marked(asked.marker) == []


def test_a_word_to_cancel_counts_for_an_attempt_that_is_only_coming(room: Room) -> None:
    with keeping(room) as keeper:
        attempt = order(room, {"text": "done"})
        keeper.cancel(attempt.marker)
        keeper.settle(new_marker())  # lines are heard in their order
        result = keeper.ask(attempt).result()
        assert (category(result), result["exit_code"]) == (("cancelled", "SIGTERM"), None)


def test_nothing_is_left_of_an_attempt_whose_connection_ends(room: Room) -> None:
    with keeping(room) as keeper:
        asked = keeper.ask(order(room, STRAY, *HANGS)).begun()
        assert marked(asked.marker)
        asked.close()
        assert is_gone(asked.marker)
        assert keeper.ask(order(room, {"text": "done"})).result()["response"] == "done"


@pytest.mark.slow
def test_nothing_is_left_of_a_cell_that_clings_when_its_connection_ends(room: Room) -> None:
    with keeping(room) as keeper:
        asked = keeper.ask(order(room, STRAY, *CLINGS)).begun()
        asked.close()
        assert is_gone(asked.marker)


def test_an_attempt_is_settled_at_once(room: Room) -> None:
    with keeping(room) as keeper:
        asked = keeper.ask(order(room, STRAY, *CLINGS)).begun()
        began = time.monotonic()
        answer = keeper.settle(asked.marker)
        assert time.monotonic() - began < GRACE_SECONDS
        assert marked(asked.marker) == []
        assert (answer["type"], answer["markers"]) == ("settled", [asked.marker])
        assert category(asked.result()) == ("host_lost", "SIGKILL")


def test_what_others_have_left_is_settled_too(room: Room) -> None:
    marker = new_marker()
    with (
        keeping(room) as keeper,
        subprocess.Popen(["sleep", "600"], env={MARKER: marker, "PATH": os.environ["PATH"]}) as left,
    ):
        assert keeper.settle(marker) == {"type": "settled", "markers": [marker], "swept": 1}
        assert left.wait() == -signal.SIGTERM


def test_an_attempt_that_comes_when_it_is_settled_is_not_made(room: Room) -> None:
    with keeping(room) as keeper:
        attempt = order(room, {"text": "done"})
        assert keeper.settle(attempt.marker)["swept"] == 0
        result = keeper.ask(attempt).result()
        assert (category(result), result["exit_code"]) == (("host_lost", None), None)


@pytest.mark.parametrize(
    "first",
    [
        b"nonsense\n",
        b"[]\n",
        b"{}\n",
        line(ALIVE),
        line(ATTEMPT, marker="", order={}),
        line(ATTEMPT, marker="m", order=None),
        line(ATTEMPT, marker="m", order={}),
        line(ATTEMPT, marker="m", order={"request": {"session_name": 1}}),
    ],
)
def test_a_wrong_line_is_answered_and_harms_nobody(room: Room, first: bytes) -> None:
    with keeping(room) as keeper:
        ended = keeper.ask(first).rest()[-1]
        assert ended["result"]["error"]["category"] == "bad_request"
        assert keeper.ask(order(room, {"text": "done"})).result()["response"] == "done"


def test_an_order_that_this_version_cannot_read_is_answered(room: Room) -> None:
    with keeping(room) as keeper:
        attempt = order(room)
        odd = {**packed(attempt), "limits": {"unheard_of": 1}}
        asked = keeper.ask(line(ATTEMPT, marker=attempt.marker, order=odd))
        error = asked.rest()[-1]["result"]["error"]
        assert (error["category"], error["hint"]) == ("bad_request", SAME_VERSION)


def test_a_line_without_end_is_answered(room: Room) -> None:
    with keeping(room) as keeper:
        ended = keeper.ask(b"x" * (2 * WIRE_LIMIT)).rest()[-1]
        assert ended["result"]["error"]["category"] == "bad_request"


def test_an_attempt_is_made_once_at_a_time(room: Room) -> None:
    with keeping(room) as keeper:
        attempt = order(room, *HANGS)
        asked = keeper.ask(attempt).begun()
        assert category(keeper.ask(attempt).result()) == ("bad_request", None)
        keeper.cancel(attempt.marker)
        assert category(asked.result()) == ("cancelled", "SIGTERM")


@pytest.mark.parametrize("member", ["project_dir", "spec_dir", "agents_dir", "result_file", "stderr_file", "keep"])
def test_a_path_that_is_not_there_on_the_node_is_named(room: Room, tmp_path: Path, member: str) -> None:
    gone = str(tmp_path / "gone")
    place = gone if member in {"project_dir", "agents_dir"} else f"{gone}/inside"
    attempt = order(room)
    asked_for = packed(attempt)
    holder = asked_for if member in asked_for else asked_for["request"]
    holder[member] = place
    with keeping(room) as keeper:
        ended = keeper.ask(line(ATTEMPT, marker=attempt.marker, order=asked_for)).rest()[-1]
    error, node = ended["result"]["error"], os.uname().nodename
    assert error["message"] == f"{member}: the directory {gone} is not there on node {node}"
    assert (error["category"], error["retryable"], error["hint"]) == ("spawn_failed", True, SHARE)
    assert error["details"] == {"errno": 2, "path": gone, "node": node}


@pytest.mark.slow
def test_fifty_attempts_at_once_have_their_own_results(room: Room) -> None:
    with keeping(room, lease_seconds=300) as keeper, ThreadPoolExecutor(50) as threads:
        orders = [order(room, {"text": str(number)}) for number in range(50)]
        results = list(threads.map(lambda attempt: keeper.ask(attempt).result()["response"], orders))
        assert results == [str(number) for number in range(50)]


def test_it_goes_on_when_nobody_reads_what_it_says_on_stdout(room: Room) -> None:
    with keeping(room) as keeper:
        keeper.stdout.close()
        keeper.say("settle", markers=[new_marker()])
        asked = keeper.ask(order(room, *HANGS)).begun()
        keeper.cancel(asked.marker)
        assert category(asked.result()) == ("cancelled", "SIGTERM")


def test_lines_on_stdin_that_are_none_are_passed_over(room: Room) -> None:
    with keeping(room) as keeper:
        keeper.stdin.write(b'nonsense\n{"type":7}\n{"type":"cancel"}\n{"type":"settle","markers":3}\n{"type":"new"}\n')
        assert keeper.settle()["swept"] == 0


def test_connections_that_say_nothing_hold_up_nobody(room: Room) -> None:
    with keeping(room) as keeper, ThreadPoolExecutor(8) as threads:
        silent = [keeper.ask(b"") for _ in range(8)]
        reads = [threads.submit(asked.rest) for asked in silent]
        assert keeper.ask(order(room, {"text": "done"})).result()["response"] == "done"
        keeper.stdin.close()
        assert [type(read.exception()) for read in reads] == [EOFError] * 8
