"""The cells of a fork server, from their forks until nothing of them is left."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf

import psutil

from agentcell_protocol import cell
from agentcell_protocol.forking import HURRY, send_report

GONE_SECONDS = 3.0
"""From SIGTERM to SIGKILL of a cell nobody waits for: all of it is gone within 5 s of its host."""


@dataclass(eq=False)
class Cell:
    """One cell. `kill_at` is when it is killed if it still lives, `left` what was found of it after its death."""

    pid: int
    marker: str
    report: socket.socket
    kill_at: float = inf
    has_hurry: bool = False
    left: set[psutil.Process] = field(default_factory=set)
    sweep: Iterator[float] | None = None


class Cells:
    """The living, and the dead of which something may be left. No call blocks.

    `forget` is told of each report socket before it is closed.
    """

    def __init__(self, forget: Callable[[socket.socket], object]) -> None:
        self._forget = forget
        self._living: dict[int, Cell] = {}
        self._dead: list[Cell] = []
        self._look_at = inf
        self._is_ending = False
        self._stirs = False

    def __bool__(self) -> bool:
        return bool(self._living or self._dead)

    def add(self, pid: int, marker: str, report: socket.socket) -> Cell:
        """A cell that was just forked."""
        born = self._living[pid] = Cell(pid, marker, report)
        return born

    def timeout(self) -> float | None:
        """Seconds until `step` has something to do; None when only a child's death gives it something."""
        due = min([self._look_at, *(each.kill_at for each in self._living.values())])
        return None if due == inf else max(0.0, due - time.monotonic())

    def step(self) -> None:
        """Report who has died, kill whose time is over, go on with ending what the dead have left."""
        while (pid := _zombie()) is not None:
            self._bury(pid)
        now = time.monotonic()
        for each in self._living.values():
            if each.kill_at <= now:
                each.kill_at = inf
                os.kill(each.pid, signal.SIGKILL)
        if self._look_at <= now:
            self._sweep()

    def listen(self, of: Cell) -> bool:
        """Hear what the host says of a cell: to hurry, or, by the socket's end, to let it go. Whether more may come."""
        word = _word(of.report)
        if word == HURRY:
            self._hurry(of)
        elif word == b"" and of.pid in self._living:
            self._let_go(of)
        return word != b""

    def end_rest(self) -> None:
        """Kill whatever still lives below this process. Blocks: moments if there is nothing."""
        cell.end_descendants(term_seconds=0.0)

    def close(self) -> None:
        """Close all report sockets; the cells are somebody else's now, or gone."""
        for each in (*self._living.values(), *self._dead):
            each.report.close()

    def end(self) -> None:
        """Let all go: nobody waits for them any more."""
        self._is_ending = True
        for each in self._living.values():
            self._let_go(each)

    def _let_go(self, of: Cell) -> None:
        if of.kill_at == inf:
            of.kill_at = time.monotonic() + GONE_SECONDS
            os.kill(of.pid, signal.SIGTERM)

    def _hurry(self, of: Cell) -> None:
        of.has_hurry = True
        if of.pid in self._living:
            of.kill_at = time.monotonic()
        else:
            self._begin_sweep(of)

    def _bury(self, pid: int) -> None:
        """Reap a child, which is a cell or what one has left."""
        _, status, spent = os.wait4(pid, 0)
        dead = self._living.pop(pid, None)
        if dead is None:
            return
        seen = {"max_rss_kb": spent.ru_maxrss, "cpu_seconds": spent.ru_utime + spent.ru_stime}
        send_report(dead.report, {"status": os.waitstatus_to_exitcode(status), **seen})
        self._dead.append(dead)
        if self._may_have_left(dead):
            self._begin_sweep(dead)
        else:
            self._close(dead)

    def _begin_sweep(self, dead: Cell) -> None:
        term_seconds = 0.0 if dead.has_hurry or self._is_ending else cell.TERM_SECONDS
        find = partial(self._left_by, dead)
        dead.sweep = cell.ending(
            find, dead.left, term_seconds=term_seconds, awaited=self._living, stirs=lambda: self._stirs
        )
        self._look_at = time.monotonic()

    def _sweep(self) -> None:
        for dead in list(self._dead):
            if dead.sweep is None or next(dead.sweep, None) is None:
                self._close(dead)
        self._look_at = time.monotonic() + cell.SETTLE_SECONDS if self._dead else inf

    def _close(self, dead: Cell) -> None:
        """Nothing of it is left."""
        send_report(dead.report, {"swept": len(dead.left), "is_clear": self._is_clear()})
        self._forget(dead.report)
        dead.report.close()
        self._dead.remove(dead)

    def _may_have_left(self, dead: Cell) -> bool:
        try:
            return bool(self._left_by(dead)) or self._stirs
        except OSError:  # there was no descriptor left to look with
            return True

    def _left_by(self, dead: Cell) -> list[psutil.Process]:
        """What lives of a dead cell: a child of ours that is no cell is what one left, and all below it as well."""
        self._stirs = False
        if self._is_clear():
            return []
        below = psutil.Process().children(recursive=True)  # one look for all, parents before their children
        owners: dict[int, Cell | None] = dict.fromkeys(self._living)
        for process in below:
            if process.pid not in owners:
                owners[process.pid] = self._owner_below(process, owners)
        return [process for process in below if owners[process.pid] is dead and cell.is_alive(process)]

    def _is_clear(self) -> bool:
        """Whether this process certainly has no child but the living cells: then nothing below it is a dead one's."""
        children = cell.children()
        return children is not None and children <= self._living.keys()

    def _owner_below(self, process: psutil.Process, owners: Mapping[int, Cell | None]) -> Cell | None:
        with suppress(psutil.Error):
            parent = process.ppid()
            if parent != os.getpid():
                return owners.get(parent)
            if cell.is_alive(process):
                return self._owner_of(process)
            self._stirs = True  # it died in this moment, and may have forked before
        return None

    def _owner_of(self, stray: psutil.Process) -> Cell | None:
        """Whose it is: as was found out before, as its marker says, or else the last one's that died."""
        for dead in self._dead:
            if stray in dead.left:
                return dead
        marker = _marker_of(stray)
        if any(living.marker == marker for living in self._living.values()):
            return None  # its cell is dying in this moment: the strays come to us before its death does
        return next((dead for dead in self._dead if dead.marker == marker), self._dead[-1])


def _zombie() -> int | None:
    """The pid of a child that has died; it is only looked at."""
    with suppress(ChildProcessError):
        if (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            return dead.si_pid
    return None


def _word(report: socket.socket) -> bytes | None:
    """What the host said; empty at the end, None when it says nothing."""
    try:
        return report.recv(len(HURRY), socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def _marker_of(process: psutil.Process) -> str | None:
    with suppress(psutil.Error, OSError):
        return process.environ().get(cell.MARKER)
    return None
