"""Processes of a cell are found and ended, wherever they went; nobody else's are.

Every child holds the write end of its starter's pipe: a line on it says that the child lives, its end that all who
held it are dead.
"""

import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psutil
import pytest

from agentcell_protocol import cell

STAY = "echo ready; exec sleep 300"
"""Longer than any test: what ends it is what is tested."""

WAIT_SECONDS = 10
"""For what takes milliseconds unless it is broken."""

IGNORE_TERM = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
signal.pause()
"""


class Cells:
    """Starts children with a marker, and ends whatever is left of them."""

    def __init__(self) -> None:
        self.marker = cell.new_marker()
        self._stack = ExitStack()

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        """A child that has said that it is ready."""
        environment = {"PATH": os.environ["PATH"], cell.MARKER: self.marker}
        child = subprocess.Popen(
            argv,
            env=environment,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._stack.callback(close, child)
        assert read_line(child) == b"ready\n"
        return child

    def shell(self, script: str) -> subprocess.Popen[bytes]:
        return self.start("sh", "-c", script)

    def close(self) -> None:
        for process in cell.marked(self.marker):
            cell.signal_process(process, signal.SIGKILL)
        self._stack.close()


def close(child: subprocess.Popen[bytes]) -> None:
    assert child.stdout is not None
    child.stdout.close()
    child.kill()
    child.wait(timeout=WAIT_SECONDS)


def everyone_is_dead(child: subprocess.Popen[bytes]) -> bool:
    """Whether nobody holds the child's pipe any more."""
    return read_line(child) == b""


def read_line(child: subprocess.Popen[bytes]) -> bytes:
    """The next line on the child's pipe, empty at its end."""
    assert child.stdout is not None
    assert select.select([child.stdout], [], [], WAIT_SECONDS)[0], "the child says nothing and lives"
    return child.stdout.readline()


@pytest.fixture
def cells() -> Iterator[Cells]:
    cells = Cells()
    yield cells
    cells.close()


@pytest.mark.parametrize(
    "script",
    [
        f"sh -c '{STAY}' &",
        f"setsid sh -c '{STAY}' &",
        f"(nohup sh -c '{STAY}' 2>/dev/null & )",
        f"(setsid sh -c 'sleep 300 & {STAY}' & )",
    ],
    ids=["background", "own session", "double fork", "two of them"],
)
def test_what_outlived_its_parent_is_found_by_its_marker_and_ended(cells: Cells, script: str) -> None:
    child = cells.shell(script)
    child.wait(timeout=WAIT_SECONDS)
    number = cell.end(lambda: cell.marked(cells.marker))
    assert number == script.count("sleep 300")
    assert everyone_is_dead(child)
    assert cell.marked(cells.marker) == []


def test_a_marker_finds_its_own_cell_only(cells: Cells) -> None:
    child = cells.shell(STAY)
    assert cell.marked(cell.new_marker()) == []
    assert cell.marked(cells.marker[:-1]) == []
    assert [process.pid for process in cell.marked(cells.marker)] == [child.pid]


def test_where_there_is_no_proc_a_marker_is_found_all_the_same(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    child = cells.shell(STAY)
    monkeypatch.setattr(sys, "platform", "other")
    assert [process.pid for process in cell.marked(cells.marker)] == [child.pid]


def test_a_cell_that_looks_for_its_own_marker_does_not_find_itself(cells: Cells) -> None:
    child = cells.start(
        sys.executable,
        "-c",
        "import os; from agentcell_protocol import cell; print('ready', flush=True);"
        "print(len(cell.marked(os.environ[cell.MARKER])))",
    )
    assert child.communicate(timeout=WAIT_SECONDS)[0] == b"0\n"


def test_what_lost_its_marker_is_found_by_a_walk(cells: Cells) -> None:
    child = cells.shell(f"env -i setsid sh -c '{STAY}' & wait")
    assert cell.marked(cells.marker) == [psutil.Process(child.pid)]
    assert cell.end(lambda: cell.descendants(child.pid)) == 1
    assert child.wait(timeout=WAIT_SECONDS) == 0
    assert everyone_is_dead(child)


SUBREAPER = """
import json, os, subprocess, psutil
from agentcell_protocol import cell
became = cell.become_subreaper()
subprocess.run(["sh", "-c", "(env -i setsid sleep 300 >/dev/null & )"], check=True)
number = cell.end_descendants()
left = [process.status() for process in psutil.Process().children()]
print("ready", flush=True)
print(json.dumps({"became": became, "number": number, "left": left}))
"""


def test_a_subreaper_inherits_what_was_detached_and_reaps_what_it_ended(cells: Cells) -> None:
    child = cells.start(sys.executable, "-c", SUBREAPER)
    report: dict[str, Any] = json.loads(child.communicate(timeout=WAIT_SECONDS)[0])
    assert report == {"became": True, "number": 1, "left": []}


def test_what_ignores_sigterm_is_killed_after_its_time(cells: Cells) -> None:
    child = cells.start(sys.executable, "-c", IGNORE_TERM)
    started = time.monotonic()
    number = cell.end(lambda: cell.marked(cells.marker), term_seconds=0.2, awaited={child.pid})
    assert number == 1
    assert 0.2 <= time.monotonic() - started < 0.2 + cell.KILL_SECONDS
    assert child.wait(timeout=WAIT_SECONDS) == -signal.SIGKILL


def test_what_heeds_sigterm_is_not_killed(cells: Cells) -> None:
    child = cells.shell("trap 'exit 7' TERM; sleep 300 & echo ready; wait")
    cell.end(lambda: cell.marked(cells.marker), awaited={child.pid})
    assert child.wait(timeout=WAIT_SECONDS) == 7


def test_what_is_stopped_is_ended_too(cells: Cells) -> None:
    child = cells.shell(STAY)
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    assert cell.end(lambda: cell.marked(cells.marker), term_seconds=0.1, awaited={child.pid}) == 1
    assert child.wait(timeout=WAIT_SECONDS) == -signal.SIGKILL


def test_what_is_started_while_others_are_ended_is_ended_as_well(cells: Cells) -> None:
    child = cells.shell("trap 'setsid sleep 300 & exit' TERM; sleep 300 & echo ready; wait")
    assert cell.end(lambda: cell.marked(cells.marker)) == 3
    assert everyone_is_dead(child)


def test_a_child_that_was_ended_is_reaped(cells: Cells) -> None:
    child = cells.shell(STAY)
    cell.end(lambda: cell.marked(cells.marker))
    assert not psutil.pid_exists(child.pid)


def test_other_children_keep_their_exit_codes(cells: Cells) -> None:
    other = cells.shell("echo ready; exit 7")
    assert everyone_is_dead(other)
    cells.shell(STAY)
    cell.end(lambda: cell.marked(cells.marker))
    assert other.wait(timeout=WAIT_SECONDS) == 7


def test_what_cannot_be_ended_is_given_up(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    child = cells.shell("echo ready; exit 7")
    unending = [psutil.Process(child.pid)]
    assert everyone_is_dead(child)
    monkeypatch.setattr(cell, "KILL_SECONDS", 0.1)
    started = time.monotonic()
    assert cell.end(lambda: unending, term_seconds=0.1, awaited={child.pid}) == 1
    assert time.monotonic() - started < 5
    assert child.wait(timeout=WAIT_SECONDS) == 7


CHILDLESS = """
from agentcell_protocol import cell
cell.descendants = None
print("ready", flush=True)
print(cell.has_children(), cell.end_descendants())
"""


def test_who_has_no_child_need_not_look_for_descendants(cells: Cells) -> None:
    child = cells.start(sys.executable, "-c", CHILDLESS)
    assert child.communicate(timeout=WAIT_SECONDS)[0] == b"False 0\n"


def test_a_child_that_is_not_reaped_is_still_a_child(cells: Cells) -> None:
    child = cells.shell("echo ready")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert cell.has_children()


LEAVES = "import os\nif os.fork() == 0:\n    os.setsid()\n    print(os.getpid(), flush=True)\n    os.read(0, 1)"
"""Leaves a process that says its pid and lives until its stdin ends."""

LISTS_CHILDREN = f"""
import os, subprocess, sys
from agentcell_protocol import cell
assert cell.become_subreaper() and cell.children() == set()
print("ready", flush=True)
with subprocess.Popen([sys.executable, "-c", {LEAVES!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
    orphan = int(parent.stdout.readline())
    os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)
    both = cell.children() == {{parent.pid, orphan}}
    parent.wait()
    print(both, cell.children() == {{orphan}})
    parent.stdin.close()
"""


def test_all_children_are_listed_the_dead_and_the_orphans_below_among_them(cells: Cells) -> None:
    child = cells.start(sys.executable, "-c", LISTS_CHILDREN)
    assert child.communicate(timeout=WAIT_SECONDS)[0] == b"True True\n"


@pytest.mark.parametrize("clear_looks", [1, 2])
def test_as_many_looks_as_are_asked_for_find_nothing(clear_looks: int) -> None:
    looks = iter([list[psutil.Process](), []])
    assert cell.end(lambda: next(looks), clear_looks=clear_looks) == 0
    assert len(list(looks)) == 2 - clear_looks


def test_a_pid_that_was_given_to_somebody_else_is_not_signalled(cells: Cells) -> None:
    child = cells.shell(STAY)
    earlier = psutil.Process(child.pid)
    vars(earlier)["_ident"] = (child.pid, 1.0)
    cell.signal_process(earlier, signal.SIGKILL)
    assert not cell.is_alive(earlier)
    assert cell.is_alive(psutil.Process(child.pid))


def test_a_zombie_does_not_live(cells: Cells) -> None:
    child = cells.shell("echo ready; exit 7")
    assert everyone_is_dead(child)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not cell.is_alive(psutil.Process(child.pid))
    assert cell.marked(cells.marker) == []
    assert child.pid not in [process.pid for process in cell.descendants()]


def test_nobody_is_below_a_pid_that_is_gone(cells: Cells) -> None:
    child = cells.shell("echo ready")
    child.wait(timeout=WAIT_SECONDS)
    assert cell.descendants(child.pid) == []


def test_where_nothing_is_found_nothing_is_waited_for() -> None:
    started = time.monotonic()
    assert cell.end(list) == 0
    assert time.monotonic() - started < cell.TERM_SECONDS


def test_no_two_markers_are_alike() -> None:
    assert len({cell.new_marker() for _ in range(100)}) == 100


def test_a_look_without_a_descriptor_counts_for_nothing(cells: Cells) -> None:
    child = cells.shell(STAY)
    looks = iter([None, [psutil.Process(child.pid)], [], []])

    def find() -> list[psutil.Process]:
        found = next(looks)
        if found is None:
            raise OSError(errno.EMFILE, "Too many open files")
        return found

    assert cell.end(find) == 1
    assert list(looks) == []
    assert not psutil.pid_exists(child.pid)


FIRST_THREAD_ENDS = """
import ctypes, signal, threading
first = threading.main_thread().native_id
def go_on():
    while open(f"/proc/self/task/{first}/stat").read().rpartition(")")[2].split()[0] != "Z":
        pass
    print("ready", flush=True)
    threading.Event().wait()
threading.Thread(target=go_on).start()
ctypes.CDLL(None).pthread_exit(None)
"""
"""Looks like a zombie, and goes on with its other threads."""


def test_a_process_of_which_only_the_first_thread_has_ended_lives_and_is_ended(cells: Cells) -> None:
    child = cells.start(sys.executable, "-c", FIRST_THREAD_ENDS)
    assert cell.is_alive(psutil.Process(child.pid))
    found = [process for process in cell.descendants() if process.pid == child.pid]
    assert cell.end(lambda: filter(cell.is_alive, found), awaited={child.pid}) == 1
    assert child.wait(timeout=WAIT_SECONDS) in {-signal.SIGTERM, -signal.SIGKILL}


def test_who_cannot_be_looked_at_for_want_of_a_descriptor_is_not_signalled(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = psutil.Process(cells.shell(STAY).pid)

    def send(number: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(child, "send_signal", send)
    cell.signal_process(child, signal.SIGKILL)
    assert cell.is_alive(child)
