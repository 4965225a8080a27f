"""Cells a second with a worker that does nothing, against pools that replace a process after each trivial task.

Two at a time on both sides, from warm pools. Of ours each is a whole session: it has a directory of its own, says
hello, keeps a conversation, gives a result, and is confirmed gone with all that it might have started. The peers see
the end of one process, or not even that. Those that reuse their processes are shown for information.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tests.meta.source import ROOT

from benchmarks import pools
from benchmarks.measure import Figure, Measured, compare

PAIRS = 15

CELLS = 30
"""In a round."""

TASKS = 300
"""In a round of a pool that reuses its processes, to last as long."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A pool, by its name in `benchmarks.pools` and its own; `goal` is for our rate against its rate."""

    pool: str
    name: str
    goal: float | None = None
    tasks: int = CELLS


PEERS = (
    Peer("pebble", "pebble, max_tasks=1", 1.0),
    Peer("executor", "ProcessPoolExecutor, forkserver, max_tasks_per_child=1", 1.0),
    Peer("multiprocessing", "multiprocessing.Pool, maxtasksperchild=1", 0.3),
    Peer("loky", "loky, which reuses processes", tasks=TASKS),
    Peer("to_process", "anyio.to_process, which reuses processes", tasks=TASKS),
)


def run() -> list[Figure]:
    """Rates are compared: more is better."""
    with pool(pools.agentcell.__name__, CELLS) as cells:
        return [_figure(cells, peer) for peer in PEERS]


def _figure(cells: Measured, peer: Peer) -> Figure:
    with pool(peer.pool, peer.tasks) as tasks:
        seen = compare(cells, tasks, pairs=PAIRS)
    detail = f"{seen.ours.median:.0f} cells a second, {seen.theirs.median:.0f} tasks"
    what = "cells a second, two at a time"
    return Figure("cells", what, peer.name, seen.ratio, peer.goal, at_least=True, noise=seen.noise, detail=detail)


@contextmanager
def pool(name: str, tasks: int) -> Iterator[Measured]:
    """A pool in a process of its own; what is measured is its rate, over so many tasks. It is gone afterwards."""
    command = [sys.executable, "-m", pools.__name__, name]
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as process:
        asks, answers = process.stdin, process.stdout
        assert asks is not None
        assert answers is not None

        def rate() -> float:
            asks.write(f"{tasks}\n")
            asks.flush()
            return tasks / float(answers.readline())

        try:
            yield rate
        finally:
            asks.close()
            process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what was stuck outlives its pool
