"""What a batch has come to, in words: for lines, views and tables."""

import time
from collections.abc import Mapping
from typing import Any

from agentcell.batch.tally import Snapshot
from agentcell.batch.values import BEYOND
from agentcell.terminal import one_line, tool_line

MAX_ID = 40
"""Characters of an id that are shown: it is whole in the results."""

MAX_WORDS = 80
"""Characters of what an agent said last that are shown."""

GO_ON = "run the same command again to go on"

MINUTE, HOUR, DAY = 60, 3600, 86400


def shown_id(row_id: str) -> str:
    """The id as it may be shown anywhere."""
    return _cut(one_line(row_id), MAX_ID) or "(no name)"


def counts(snapshot: Snapshot) -> str:
    """How many rows are where, such as `3 done, 1 failed, 2 running, 4 pending`."""
    parts = [f"{snapshot.done} done", f"{snapshot.failed} failed", f"{len(snapshot.running)} running"]
    return ", ".join(parts if snapshot.pending is None else [*parts, f"{snapshot.pending} pending"])


def pending(snapshot: Snapshot) -> str | None:
    """Such as `3 rows are pending`, those that were cut among them; None when none are."""
    left = (snapshot.pending or 0) + len(snapshot.running)
    if not left:
        return None
    return f"{left} {'row is' if left == 1 else 'rows are'} pending"


def changed(refused: int, unfit: int = 0) -> str | None:
    """What is said of rows that are another than when they were run, and `unfit` ones that are no requests any more.

    None when there are neither.
    """
    parts = []
    if refused:
        parts.append(f"{_changed(refused)}: --rerun-changed runs {_them(refused)} again")
    if unfit:
        parts.append(f"{_changed(unfit)} and can be run no more: mend {_them(unfit)}")
    return "; ".join(parts) or None


def nothing_to_do(snapshot: Snapshot, retriable: int) -> str:
    """What is said of a batch that has no row left to be run, and so many `retriable` ones among those that failed."""
    failed = snapshot.failed
    if not failed:
        return "nothing to do: " + ("every row has succeeded" if snapshot.done else "there are no rows")
    if not retriable:
        return f"nothing to do; {failed} failed, and there is no request to run {_them(failed)} again"
    them = _them(failed) if retriable == failed else f"{retriable} of them"
    return f"nothing to do; {failed} failed: --retry-failed runs {them} again"


def pace(snapshot: Snapshot) -> list[str]:
    """Cost, rate and time left, as far as they are known."""
    parts = [cost(snapshot)]
    if snapshot.rate:
        parts.append(rate(snapshot.rate))
    if snapshot.eta:
        parts.append(f"{duration(snapshot.eta)} left")
    return parts


def cost(snapshot: Snapshot) -> str:
    """What is known to have been spent, and how much is not known."""
    if not snapshot.unknown_costs:
        return _dollars(snapshot.cost_usd or 0.0)
    attempts = f"{snapshot.unknown_costs} attempt{'' if snapshot.unknown_costs == 1 else 's'}"
    if snapshot.cost_usd is None:
        return f"cost unknown ({attempts})"
    return f"{_dollars(snapshot.cost_usd)} and the unknown cost of {attempts}"


def tokens(snapshot: Snapshot) -> str:
    """Of all attempts."""
    usage = snapshot.usage
    read = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    return f"{read:,} in, {usage.output_tokens:,} out"


def rate(rows_a_second: float) -> str:
    """In the unit that gives a number people can compare."""
    for seconds, unit in ((1, "s"), (MINUTE, "min")):
        if rows_a_second * seconds >= 1:
            return f"{rows_a_second * seconds:.1f} rows/{unit}"
    return f"{rows_a_second * HOUR:.1f} rows/h"


def duration(seconds: float) -> str:
    """Such as `7.5 s`, `42 s`, `3 min 07 s`, `2 h 05 min`, `3 d 04 h`."""
    seconds = min(max(0.0, seconds), BEYOND)  # this way round, what is no number is none
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE:02} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE:02} min"
    return f"{whole // DAY} d {whole % DAY // HOUR:02} h"


def pause(snapshot: Snapshot) -> str | None:
    """Why nothing is admitted, and until when; None when rows are."""
    if snapshot.paused is None:
        return None
    until = "" if snapshot.paused_until is None else f" until {clock(snapshot.paused_until)}"
    return f"paused{until}: {one_line(snapshot.paused)}"


def draining(signal: str | None, grace_seconds: float) -> str:
    """What is said once a batch was interrupted: how long what runs may take, and how to wait no longer."""
    again = "Ctrl-C again" if signal == "SIGINT" else "another signal"
    wait = f"waiting up to {duration(grace_seconds)} for what runs"
    return f"interrupted by {signal}: {wait}; {again} cancels it, a third kills it"


def cancelling(signal: str | None) -> str:
    """What is said when what ran has had its time, or somebody has interrupted again."""
    third = "Ctrl-C" if signal == "SIGINT" else "signal"
    return f"interrupted by {signal}: what ran is cancelled; a third {third} kills it"


def clock(at: float) -> str:
    """Local time; with the date when it is not within a day."""
    form = "%H:%M:%S" if abs(at - time.time()) < DAY / 2 else "%Y-%m-%d %H:%M:%S"
    return time.strftime(form, time.localtime(at))


def last_words(event: Mapping[str, Any] | None, *, content: bool) -> str:
    """The last that was heard of a cell; with `content`, what the agent wrote, too."""
    match event:
        case None:
            return ""
        case {"type": "tool_use", "input": dict()} if content:
            return tool_line(event)
        case {"type": "tool_use", "name": name}:
            return _cut(one_line(str(name)), MAX_WORDS)
        case {"type": "text" | "text_delta", "text": str(text)} if content:
            return _cut(one_line(text), MAX_WORDS)
        case {"type": kind}:
            return _cut(one_line(str(kind)).replace("_", " "), MAX_WORDS)
    return ""


def _changed(count: int) -> str:
    return f"{count} {'row was' if count == 1 else 'rows were'} changed since"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _dollars(amount: float) -> str:
    return f"${amount:.4f}" if 0 < amount < 1 else f"${amount:,.2f}"


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else line[: most - 1] + "…"
