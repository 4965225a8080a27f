"""A batch for people and for programs: what it has come to, where to look, and how to go on with it."""

import shlex
import sys
import time
from pathlib import Path
from typing import Any

import click
import orjson

from agentcell.batch.directory import RESULTS
from agentcell.batch.phrases import GO_ON, clock, duration, last_words, pause, rate, shown_id
from agentcell.batch.reading import UNSAID, Reading
from agentcell.batch.summary import Failure, Failures, Pair, going_on, lines, summary
from agentcell.batch.tally import Running, Snapshot
from agentcell.batch.views import snapshot_message
from agentcell.commands.output import tell
from agentcell.terminal import one_line
from agentcell_protocol.codec import encode


def tell_end(snapshot: Snapshot, failures: Failures, directory: Path) -> None:
    """Say on stderr what a batch has come to at its end."""
    tell(*lines([*summary(snapshot, failures, directory), *_where_messages_are(failures, directory)], sys.stderr))


def print_reading(reading: Reading, directory: Path, *, content: bool) -> None:
    """Print what a run directory tells; what agents wrote only with `content`."""
    snapshot, now = reading.snapshot, time.time()
    pairs = [("state", _state(reading)), *summary(snapshot, reading.failures, directory)]
    if reading.state == "running":
        pairs += _pace(snapshot)
        pairs += [("running", _cell(running, now, content=content)) for running in snapshot.running]
    if not content:
        pairs += _where_messages_are(reading.failures, directory)
    else:
        pairs += [(shown_id(id_), one_line(message)) for id_, message in _messages(reading.failures.first, directory)]
    last = [reading.reason] if reading.reason != UNSAID else []
    if reading.state == "interrupted" or reading.reason == UNSAID:
        last.append(_left(snapshot))
    for line in [*lines(pairs, sys.stdout), *(one_line(text) for text in last if text)]:
        click.echo(line)


def print_json(reading: Reading, directory: Path, *, content: bool) -> None:
    """Print the same as one line of JSON."""
    messages = dict(_messages(reading.failures.first, directory)) if content else {}
    failures: list[dict[str, Any]] = [
        {"id": one.id, "category": one.category}
        | {"folder": one.folder and str(one.folder), "result": one.result and str(one.result)}
        | ({"message": messages.get(one.id)} if content else {})
        for one in reading.failures.first
    ]
    holder = reading.holder
    message: dict[str, Any] = {
        "type": "batch",
        "run_dir": str(directory),
        "state": reading.state,
        "reason": reading.reason,
        "pid": holder and holder.pid,
        "since": holder and holder.since,
        "host": holder and holder.host,
        **snapshot_message(reading.snapshot, content=content),
        "failures": failures,
    }
    click.echo(encode(message), nl=False)


def _state(reading: Reading) -> str:
    holder = reading.holder
    process = "a process that has just begun" if holder is None else f"process {holder.pid} on {one_line(holder.host)}"
    match reading.state:
        case "running":
            since = "" if holder is None else f", since {clock(holder.since)}"
            return f"running: {process}{since}"
        case "interrupted":
            return f"interrupted: {process} died" if holder else "interrupted: its process died"
        case "stopped":
            return f"stopped: {one_line(reading.reason or UNSAID)}"
    return "finished"


def _where_messages_are(failures: Failures, directory: Path) -> list[Pair]:
    """How to see what went wrong, where something has."""
    command = f"agentcell status {shlex.quote(str(directory))} --content"
    return [("messages", f"{one_line(command)} shows them")] if failures.total else []


def _left(snapshot: Snapshot) -> str | None:
    """How to go on, unless nothing is left; of a stream nobody knows."""
    return f"rows may be left: {GO_ON}" if snapshot.total is None else going_on(snapshot)


def _pace(snapshot: Snapshot) -> list[Pair]:
    pairs = [] if not snapshot.rate else [("rate", rate(snapshot.rate))]
    if snapshot.eta:
        pairs.append(("time left", duration(snapshot.eta)))
    if (paused := pause(snapshot)) is not None:
        pairs.append(("admission", paused))
    return pairs


def _cell(running: Running, now: float, *, content: bool) -> str:
    again = f", attempt {running.attempt}" if running.attempt > 1 else ""
    heard = last_words(running.last_event, content=content)
    return f"{shown_id(running.id)}{again}, {duration(now - running.since)}{': ' if heard else ''}{heard}"


def _messages(failures: tuple[Failure, ...], directory: Path) -> list[tuple[str, str]]:
    """What went wrong with each, in the words of its result; nothing where that was rewritten meanwhile."""
    found: list[tuple[str, str]] = []
    if not failures:
        return found
    with (directory / RESULTS).open("rb") as file:
        for failure in failures:
            file.seek(failure.offset)
            try:
                found.append((failure.id, str(orjson.loads(file.readline())["error"]["message"])))
            except (orjson.JSONDecodeError, KeyError, TypeError):
                continue
    return found
