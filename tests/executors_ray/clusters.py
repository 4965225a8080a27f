"""A Ray cluster for a test, on the loopback, with nothing of this run's surroundings in it."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from agentcell_protocol import cell

PROGRAM = str(Path(__file__).with_name("cluster_program.py"))

MARK = "RAY_TEST_CLUSTER"
"""Environment variable of everything that belongs to a cluster."""

PASSED = ("HOME", "LANG", "PATH")

RAY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""The first keeps it on the loopback, and is needed by whoever connects, too."""

END_SECONDS = 30.0

HEAR_SECONDS = 120.0
"""For a cluster, or another node of it, to come up: it takes some 15 s on a machine that has nothing else to do."""

WORDS = "stderr"
"""What the program says on it, in the cluster's place."""

MOST_WORDS = 4000


@dataclass
class RayCluster:
    """A cluster: its `address`, and the pids of its raylets by the ids of their nodes. Its files are in `place`."""

    process: "subprocess.Popen[str]"
    mark: str
    place: Path
    address: str = ""
    raylets: dict[str, int] | None = None

    def hear(self) -> None:
        """Take what the program says next."""
        assert self.process.stdout is not None
        said = ""
        if select.select([self.process.stdout], [], [], HEAR_SECONDS)[0]:
            said = self.process.stdout.readline()  # a whole one: it is said in one piece
        assert said, f"the cluster said nothing; its last words were:\n{self._last_words}"
        told: dict[str, Any] = json.loads(said)
        self.address = told["address"]
        self.raylets = {node["node"]: node["raylet"] for node in told["nodes"]}

    def add(self, path: str = "") -> str:
        """Add a node, whose Python looks in `path` first; its id."""
        before = set(self.raylets or {})
        self._say(f"add {path}")
        return next(iter(set(self.raylets or {}) - before))

    def workers(self, title: str) -> list[int]:
        """The pids of Ray's workers that do this."""
        return [process.pid for process in cell.marked(self.mark, MARK) if title in " ".join(process.cmdline())]

    def kill(self, node: str) -> None:
        """Kill the raylet of a node, which is what is meant by a node that dies."""
        raylet = (self.raylets or {})[node]
        os.kill(raylet, signal.SIGKILL)
        self._say(f"reap {raylet}")

    @property
    def _last_words(self) -> str:
        return (self.place / WORDS).read_text(errors="replace")[-MOST_WORDS:]

    def _say(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        self.hear()


@contextmanager
def ray_cluster(nodes: int = 2, cpus: int = 2) -> Iterator[RayCluster]:
    """A cluster that is ended with all of its processes when the context is left."""
    mark = str(uuid4())
    place = tempfile.mkdtemp(prefix="rc-", dir="/tmp")  # a short one: sockets have their names below it
    surroundings = {name: os.environ[name] for name in PASSED if name in os.environ}
    with Path(place, WORDS).open("w") as words:
        process = subprocess.Popen(
            [sys.executable, "-P", PROGRAM, str(nodes), str(cpus)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            cwd="/",
            text=True,
            env={**surroundings, **RAY, "RAY_TMPDIR": place, MARK: mark},
            start_new_session=True,
        )
    try:
        cluster = RayCluster(process, mark, Path(place))
        cluster.hear()
        yield cluster
    finally:
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=END_SECONDS)
        process.kill()
        process.wait()
        cell.end(partial(cell.marked, mark, MARK))
        shutil.rmtree(place, ignore_errors=True)
