"""A batch is shown as it is, to whom it can be shown, and goes on whatever becomes of that."""

import json
import os
import pty
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest

from agentcell.batch.display import Display
from agentcell.batch.live import LiveView
from agentcell.batch.phrases import cancelling, draining
from agentcell.batch.tally import Running, Snapshot
from agentcell.batch.views import JsonView, PlainView, display_on, view_for

BOUND_SECONDS = 30.0

TOOL = {"type": "tool_use", "name": "Bash", "input": {"command": "echo a secret"}}

SEEN = Snapshot(
    total=50,
    done=37,
    failed=2,
    running=(Running("r1", 2, time.time() - 5, TOOL),),
    pending=10,
    cost_usd=1.25,
    elapsed=60.0,
    rate=0.65,
    eta=77.0,
)

PAUSED = replace(SEEN, paused="the account's rate limit", elapsed=61.0)


@contextmanager
def terminal() -> Iterator[TextIO]:
    """A terminal that nobody reads; what is written to it fits into its buffer."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        try:
            yield stream
        finally:
            os.close(ours)


def test_a_plain_line_says_all_of_it() -> None:
    line = "1 min 00 s: 37 done, 2 failed, 1 running, 10 pending, $1.25, 39.0 rows/min, 1 min 17 s left\n"
    assert PlainView().frame(SEEN) == line


def test_a_plain_line_comes_every_ten_seconds() -> None:
    view = PlainView()
    shown = [at for at in range(60, 91) if view.frame(replace(SEEN, elapsed=float(at)))]
    assert shown == [60, 70, 80, 90]


def test_a_plain_line_comes_at_each_pause_and_when_it_is_over() -> None:
    view = PlainView()
    frames = [view.frame(seen) for seen in (SEEN, PAUSED, replace(PAUSED, elapsed=62.0), replace(SEEN, elapsed=63.0))]
    assert [bool(frame) for frame in frames] == [True, True, False, True]
    assert frames[1].endswith(", paused: the account's rate limit\n")


def test_the_last_plain_line_is_the_end_unless_it_was_just_said() -> None:
    view = PlainView()
    view.frame(SEEN)
    assert view.end() == ""
    view.frame(replace(SEEN, done=40, elapsed=65.0))
    assert view.end().startswith("1 min 05 s: 40 done,")
    assert PlainView().end() == ""


def test_where_rows_come_from_a_stream_nobody_says_how_many_are_left() -> None:
    line = PlainView().frame(replace(SEEN, total=None, pending=None, eta=None))
    assert line == "1 min 00 s: 37 done, 2 failed, 1 running, $1.25, 39.0 rows/min\n"


def test_json_has_a_line_for_each_change_and_none_for_the_time() -> None:
    view = JsonView()
    seen = [SEEN, replace(SEEN, elapsed=61.0, eta=70.0, rate=0.6), replace(SEEN, done=38), PAUSED]
    lines = [view.frame(snapshot) for snapshot in seen]
    assert [json.loads(line)["done"] if line else None for line in lines] == [37, None, 38, 37]
    message = json.loads(lines[0])
    assert (message["type"], message["total"], message["cost_usd"]) == ("progress", 50, 1.25)
    assert message["running"] == [
        {"id": "r1", "attempt": 2, "since": SEEN.running[0].since, "last_event": {"type": "tool_use", "name": "Bash"}}
    ]
    assert view.end() == ""


def test_the_live_picture_takes_the_place_of_the_one_before_and_is_gone_at_the_end() -> None:
    with terminal() as stream:
        view = LiveView(stream.fileno())
        first, second, end = view.frame(SEEN), view.frame(PAUSED), view.end()
    assert "39 of 50 rows" in first
    assert "37 done, 2 failed, 1 running, 10 pending · $1.25" in first
    assert "r1 (2)" in first
    assert "Bash echo a secret" in first
    assert first.startswith("\r")
    assert second.startswith(f"\r\x1b[{first.count(chr(10))}A")
    assert "paused: the account's rate limit" in second
    assert end == f"\r\x1b[{second.count(chr(10))}A\x1b[J"


def test_who_interrupts_is_told_how_to_wait_no_longer_in_the_words_of_the_interrupt() -> None:
    assert [draining("SIGINT", 30.0), cancelling("SIGINT"), draining("SIGTERM", 90.0), cancelling("SIGTERM")] == [
        "interrupted by SIGINT: waiting up to 30 s for what runs; Ctrl-C again cancels it, a third kills it",
        "interrupted by SIGINT: what ran is cancelled; a third Ctrl-C kills it",
        "interrupted by SIGTERM: waiting up to 1 min 30 s for what runs; another signal cancels it, a third kills it",
        "interrupted by SIGTERM: what ran is cancelled; a third signal kills it",
    ]


def test_a_long_pause_is_shown_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((80, 24)))
    told = draining("SIGINT", 3600.0)
    lines = LiveView(2).frame(replace(SEEN, paused=told)).split("\x1b[K\n")
    words = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(lines))
    assert f"paused: {told}" in " ".join(words.split())


def test_the_live_picture_fits_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    many = tuple(Running(f"row-{n}-" + "long" * 30, 1, time.time() - n, TOOL) for n in range(100))
    for columns, lines in ((80, 24), (20, 5), (300, 100), (1, 1)):
        size = os.terminal_size((columns, lines))
        monkeypatch.setattr(os, "get_terminal_size", lambda _, size=size: size)
        drawn = LiveView(2).frame(replace(SEEN, running=many))
        assert drawn.count("\n") < max(lines, 2)


def test_what_a_cell_is_called_and_says_drives_no_terminal() -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jname\r\n\u202e[red]x"
    said = {"type": "text", "text": evil}
    seen = replace(PAUSED, running=(Running(evil, 1, time.time(), said),), paused=evil)
    with terminal() as stream:
        drawn = LiveView(stream.fileno()).frame(seen)
    line = PlainView().frame(seen)
    for text in (drawn, line):
        assert [part for part in ("\x07", "\x1b]", "\x1b[2J", "\u202e", "owned") if part in text] == []
        assert "name [red]x" in text
    assert line.count("\n") == 1
    assert "\x1b" not in line


def test_a_terminal_gets_the_live_view_and_all_else_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with terminal() as stream, (tmp_path / "log").open("w") as file:
        assert isinstance(view_for("auto", stream), LiveView)
        assert isinstance(view_for("auto", stream, prints_results=True), PlainView)
        assert isinstance(view_for("plain", stream), PlainView)
        assert isinstance(view_for("json", stream), JsonView)
        assert view_for("none", stream) is None
        assert isinstance(view_for("auto", file), PlainView)
        assert view_for("auto", None) is None
        monkeypatch.setenv("TERM", "dumb")
        assert isinstance(view_for("auto", stream), PlainView)


def test_the_last_state_is_written_before_the_display_is_gone(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as file, display_on(file, JsonView()) as display:
        display.show(SEEN)
        display.show(replace(SEEN, done=50))
    lines = (tmp_path / "log").read_text("utf-8").splitlines()
    assert json.loads(lines[-1])["done"] == 50
    assert len(lines) <= 2


def test_what_is_said_stands_above_the_picture_that_is_drawn_anew() -> None:
    idle = replace(SEEN, running=())
    with terminal() as stream:
        view, same = LiveView(stream.fileno()), LiveView(stream.fileno())
        written: list[bytes] = []
        is_drawn = threading.Event()

        def write(data: bytes) -> None:
            written.append(data)
            is_drawn.set()

        with Display(view, write) as display:
            display.show(idle)
            assert is_drawn.wait(BOUND_SECONDS)
            display.say("warning: look")
        parts = [same.frame(idle), same.clear(), "warning: look\n", same.frame(idle), same.end()]
        assert b"".join(written).decode() == "".join(parts)


def test_what_is_said_is_shown_where_nothing_else_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as file, display_on(file, None) as display:
        display.show(SEEN)
        display.say("warning: look")
    assert (tmp_path / "log").read_text("utf-8") == "warning: look\n"


def test_a_terminal_that_is_held_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcell.batch.display.CLOSE_SECONDS", 0.01)
    is_held, goes_on = threading.Event(), threading.Event()

    def hold(_: bytes) -> None:
        is_held.set()
        goes_on.wait(BOUND_SECONDS)

    try:
        with Display(PlainView(), hold) as display:
            display.show(SEEN)
            assert is_held.wait(BOUND_SECONDS)
            for n in range(1000):
                display.show(replace(SEEN, done=n))
        assert not goes_on.is_set()
    finally:
        goes_on.set()


def test_a_terminal_that_is_gone_ends_the_picture_and_nothing_else() -> None:
    tries: list[bytes] = []

    def fail(data: bytes) -> None:
        tries.append(data)
        raise OSError("gone")

    with Display(JsonView(), fail) as display:
        for n in range(10):
            display.show(replace(SEEN, done=n))
    assert len(tries) == 1


def test_a_display_of_nothing_shows_nothing() -> None:
    with display_on(None, None) as display:
        display.show(SEEN)


def test_where_there_is_no_thread_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    written: list[bytes] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Display(PlainView(), written.append) as display:
        display.show(SEEN)
    assert written == []
