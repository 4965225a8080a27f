"""How a batch is shown while it runs: as lines, as JSON, or live."""

import os
import time
from collections.abc import Mapping
from typing import Any, TextIO

from agentcell.batch.display import Display, View, writer
from agentcell.batch.live import LiveView
from agentcell.batch.phrases import counts, duration, pace, pause
from agentcell.batch.tally import Running, Snapshot
from agentcell_protocol.codec import encode

PLAIN_SECONDS = 10.0
"""Between two lines of a log, where nothing else is to be said."""

LINE_SECONDS = 0.2
"""Between two lines at the least: a program that reads them has enough, and a batch something else to do."""

DUMB = frozenset({"", "dumb", "unknown"})
"""Values of TERM for terminals on which nothing can be drawn."""


class PlainView:
    """A line every ten seconds, and one whenever the batch pauses, goes on or ends."""

    seconds = LINE_SECONDS

    def __init__(self) -> None:
        self._shown_at: float | None = None
        self._pause: str | None = None
        self._last: Snapshot | None = None

    def frame(self, snapshot: Snapshot) -> str:
        """A line, if it is time for one."""
        self._last = snapshot
        paused = pause(snapshot)
        is_due = self._shown_at is None or snapshot.elapsed - self._shown_at >= PLAIN_SECONDS
        if not is_due and paused == self._pause:
            return ""
        self._shown_at, self._pause = snapshot.elapsed, paused
        return _plain(snapshot)

    def clear(self) -> str:
        """Nothing: lines stand below each other."""
        return ""

    def end(self) -> str:
        """How far it has come, unless that was just said."""
        last = self._last
        return "" if last is None or last.elapsed == self._shown_at else _plain(last)


class JsonView:
    """A line of JSON for each change."""

    seconds = LINE_SECONDS

    def __init__(self) -> None:
        self._former: dict[str, Any] | None = None

    def frame(self, snapshot: Snapshot) -> str:
        """The line, if anything but the time is different."""
        message = snapshot_message(snapshot)
        state = {name: value for name, value in message.items() if name not in {"elapsed", "rate", "eta"}}
        if state == self._former:
            return ""
        self._former = state
        return encode({"type": "progress", "at": round(time.time(), 3), **message}).decode()

    def clear(self) -> str:
        """Nothing: lines stand below each other."""
        return ""

    def end(self) -> str:
        """Nothing: the last line had it all."""
        return ""


def view_for(progress: str, stream: TextIO | None, *, prints_results: bool = False) -> View | None:
    """The view that `--progress` asks for on a stream (None: nowhere); `auto` is live on a terminal.

    Where results are printed to a terminal as well, nothing is drawn over them.
    """
    if stream is None or progress == "none":
        return None
    if progress == "json":
        return JsonView()
    can_draw = stream.isatty() and os.environ.get("TERM", "") not in DUMB and not prints_results
    return LiveView(stream.fileno()) if progress == "auto" and can_draw else PlainView()


def display_on(stream: TextIO | None, view: View | None) -> Display:
    """The view at work on a stream."""
    if stream is None:
        return Display(None, lambda _: None)
    return Display(view, writer(stream.fileno()), encoding=stream.encoding or "utf-8")


def snapshot_message(snapshot: Snapshot, *, content: bool = False) -> dict[str, Any]:
    """The snapshot as it is in JSON; what agents wrote only with `content`."""
    return {
        "total": snapshot.total,
        "done": snapshot.done,
        "failed": snapshot.failed,
        "running": [_running_message(running, content=content) for running in snapshot.running],
        "pending": snapshot.pending,
        "retries": snapshot.retries,
        "usage": snapshot.usage.model_dump(),
        "cost_usd": snapshot.cost_usd,
        "unknown_costs": snapshot.unknown_costs,
        "elapsed": round(snapshot.elapsed, 3),
        "rate": round(snapshot.rate, 6),
        "eta": None if snapshot.eta is None else round(snapshot.eta, 3),
        "by_status": dict(snapshot.by_status),
        "by_category": dict(snapshot.by_category),
        "slowest": [{"id": row_id, "execution_time": round(seconds, 3)} for row_id, seconds in snapshot.slowest],
        "paused": snapshot.paused,
        "paused_until": snapshot.paused_until,
    }


def _running_message(running: Running, *, content: bool) -> dict[str, Any]:
    event = running.last_event
    return {
        "id": running.id,
        "attempt": running.attempt,
        "since": running.since,
        "last_event": None if event is None else dict(event) if content else _bare(event),
    }


def _bare(event: Mapping[str, Any]) -> dict[str, Any]:
    """What kind of event it is, and of a tool the name."""
    return {name: event[name] for name in ("type", "name") if isinstance(event.get(name), str)}


def _plain(snapshot: Snapshot) -> str:
    parts = [counts(snapshot), *pace(snapshot)]
    if (paused := pause(snapshot)) is not None:
        parts.append(paused)
    return f"{duration(snapshot.elapsed)}: {', '.join(parts)}\n"
