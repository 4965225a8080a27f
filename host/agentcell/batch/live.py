"""The live view of a batch: a picture on a terminal, drawn anew in the place of the one before."""

import os
import time
from collections.abc import Iterable
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agentcell.batch.phrases import counts, duration, last_words, pace, pause, shown_id
from agentcell.batch.tally import Running, Snapshot

LIVE_SECONDS = 0.5
"""Between two pictures: often enough to be live, and about a hundredth of a core."""

MOST_RUNNING = 20
"""Cells that are shown, the oldest first, if the terminal is that high."""

AROUND_RUNNING = 6
"""Lines of a terminal for all else: bar, counts, two of a pause, what is left out, and one for the cursor."""

BAR_WIDTH = 40
"""Columns."""


class LiveView:
    """A picture that takes the place of the one before; at the end it is gone."""

    seconds = LIVE_SECONDS

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._console = Console(file=StringIO(), force_terminal=True, highlight=False, markup=False)
        self._height = 0

    def frame(self, snapshot: Snapshot) -> str:
        """The picture, as large as the terminal is now."""
        width, height = _size(self._descriptor)
        self._console.size = (max(1, width - 1), height)  # what fills a line to its end loses a character
        lines = self._drawn(snapshot, most=max(0, min(MOST_RUNNING, height - AROUND_RUNNING)))[: height - 1]
        picture = self._back() + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J"
        self._height = len(lines)
        return picture

    def clear(self) -> str:
        """Removes it."""
        gone, self._height = self._back() + "\x1b[J", 0
        return gone

    def end(self) -> str:
        """Removes it."""
        return self.clear()

    def _back(self) -> str:
        """To where the picture begins."""
        return f"\r\x1b[{self._height}A" if self._height else "\r"

    def _drawn(self, snapshot: Snapshot, *, most: int) -> list[str]:
        parts: list[RenderableType] = [_head(snapshot), Text(" · ".join([counts(snapshot), *pace(snapshot)]))]
        if (paused := pause(snapshot)) is not None:
            folded = Text(paused, "yellow", no_wrap=False, overflow="fold")  # its end says what to do
            parts.append(Group(folded))  # which the console lets be as it is
        if snapshot.running and most > 0:
            parts.append(_cells(snapshot.running, most))
        if (more := len(snapshot.running) - most) > 0:
            parts.append(Text(f"and {more} more"))
        with self._console.capture() as captured:
            for part in parts:
                self._console.print(part, no_wrap=True, overflow="ellipsis", crop=True)
        return captured.get().splitlines()


def _head(snapshot: Snapshot) -> Table:
    finished = snapshot.done + snapshot.failed
    bar = ProgressBar(total=snapshot.total, completed=finished, width=BAR_WIDTH)
    words = f"{finished} rows" if snapshot.total is None else f"{finished} of {snapshot.total} rows"
    head = Table.grid(padding=(0, 1))
    head.add_row(bar, Text(words, "bold"))
    return head


def _cells(running: Iterable[Running], most: int) -> Table:
    """The cells that have run for longest, each with its id, its time and the last that was heard of it."""
    cells, now = Table.grid(padding=(0, 2)), time.time()
    for cell in sorted(running, key=lambda cell: cell.since)[:most]:
        again = f" ({cell.attempt})" if cell.attempt > 1 else ""
        texts = (shown_id(cell.id) + again, duration(now - cell.since), last_words(cell.last_event, content=True))
        cells.add_row(*(Text(text, no_wrap=True, overflow="ellipsis") for text in texts))
    return cells


def _size(descriptor: int) -> tuple[int, int]:
    """Columns and lines of the terminal, such as it is."""
    try:
        columns, lines = os.get_terminal_size(descriptor)
    except OSError:
        columns, lines = 0, 0
    return columns or 80, lines or 24
