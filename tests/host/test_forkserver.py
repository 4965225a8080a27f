"""Cells that are forked have nothing of each other, and nothing of them is left, whoever dies."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from tests.ending import ending
from tests.faults import forking
from tests.faults.harness import ForkedWorkers, bring_up

from agentcell.forked import ForkedChild
from agentcell.forkserver import ForkServer, can_fork
from agentcell.spawn import UNSEEN, Child
from agentcell_protocol.cell import MARKER
from agentcell_protocol.forking import send_report

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 60

LIVES = "import signal, sys; print('up', flush=True); signal.pause()"

STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {LIVES}"

LOOK = """
import gc, json, locale, os, random, signal, sys, tempfile, threading, time
paths = [f"/proc/self/fd/{name}" for name in sorted(os.listdir("/proc/self/fd"))]
descriptors = {path[14:]: os.readlink(path).partition(":")[0] for path in paths if os.path.lexists(path)}
print(json.dumps({
    "ids": [os.getpid() == os.getsid(0) == os.getpgrp(), os.getpid()],
    "descriptors": descriptors,
    "signals": {s.name: str(h) for s in sorted(signal.valid_signals()) if isinstance(s, signal.Signals)
                if (h := signal.getsignal(s)) is not signal.SIG_DFL},
    "blocked": list(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "wakeup": signal.set_wakeup_fd(-1),
    "environment": dict(os.environ),
    "directory": os.getcwd(),
    "argv": sys.argv[1:],
    "threads": threading.active_count(),
    "frozen": gc.get_freeze_count() > 1000,
    "collects": gc.isenabled(),
    "random": random.random(),
    "temporary": tempfile.gettempdir(),
    "zone": time.tzname[0],
    "locale": locale.setlocale(locale.LC_CTYPE),
}))
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[ForkedWorkers]:
    """One server for all tests that leave it as it is."""
    workers = ForkedWorkers()
    bring_up(workers.server)
    yield workers
    workers.server.close()


@pytest.fixture
def own_workers() -> Iterator[ForkedWorkers]:
    """A server of the test's own, which is not there yet."""
    workers = ForkedWorkers()
    yield workers
    workers.server.close()


@dataclass(frozen=True)
class Ended:
    status: object
    out: str
    err: str
    swept: int


@asynccontextmanager
async def started(
    workers: ForkedWorkers, program: str, directory: Path | str = "/", **environment: str
) -> AsyncIterator[ForkedChild]:
    child = workers.program(program)({"PATH": "/usr/bin:/bin", **environment}, str(directory))
    assert isinstance(child, ForkedChild)
    with anyio.fail_after(BOUND_SECONDS):
        try:
            yield child
        finally:
            child.close()


async def ended(child: Child) -> Ended:
    out, err = [await text(pipe) for pipe in (child.stdout, child.stderr)]
    return Ended(await child.exited(), out, err, await child.swept())


async def text(pipe: Any) -> str:
    chunks = []
    while chunk := await pipe.read():
        chunks.append(chunk)
    return b"".join(chunks).decode()


async def run(workers: ForkedWorkers, program: str, directory: Path | str = "/", **environment: str) -> Ended:
    async with started(workers, program, directory, **environment) as child:
        return await ended(child)


async def up(child: Child) -> None:
    assert await child.stdout.read() == b"up\n"


def server_of(workers: ForkedWorkers) -> psutil.Process:
    assert workers.server.pid is not None
    return psutil.Process(workers.server.pid)


async def test_a_cell_has_what_its_order_gave_it_and_nothing_else(workers: ForkedWorkers, tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin", "LC_ALL": "C", "TZ": "NPT-5:45", "TMPDIR": str(tmp_path), "ODD": "\udcff=1\n"}
    async with started(workers, LIVES) as another:
        await up(another)
        looks = [json.loads((await run(workers, LOOK, tmp_path, **environment)).out) for _ in range(2)]
    first, second = looks
    assert first.pop("random") != second.pop("random")
    assert first.pop("ids") != second.pop("ids")
    assert (
        first
        == second
        == {
            "descriptors": {"0": "pipe", "1": "socket", "2": "pipe"},
            "signals": {
                "SIGINT": str(signal.default_int_handler),
                "SIGPIPE": str(signal.SIG_IGN),
                "SIGXFSZ": str(signal.SIG_IGN),
            },
            "blocked": [],
            "wakeup": -1,
            "environment": environment,
            "directory": str(tmp_path),
            "argv": [],
            "threads": 1,
            "frozen": True,
            "collects": True,
            "temporary": str(tmp_path),
            "zone": "NPT",
            "locale": "C",
        }
    )


async def test_a_cell_leads_a_session_of_its_own(workers: ForkedWorkers) -> None:
    assert json.loads((await run(workers, LOOK)).out)["ids"][0] is True


async def test_what_one_cell_does_to_a_module_is_never_seen_in_another(workers: ForkedWorkers) -> None:
    program = "import agentcell_protocol.cell as m; print(getattr(m, 'mine', None)); m.mine = m.MARKER = 'changed'"
    assert [(await run(workers, program)).out for _ in range(3)] == ["None\n"] * 3


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(7)", 7),
        ("import os; os._exit(9)", 9),
        ("import os; os.kill(os.getpid(), 11)", -11),
    ],
)
async def test_the_exit_code_or_the_signal_is_reported(workers: ForkedWorkers, program: str, status: int) -> None:
    assert await run(workers, program) == Ended(status, "", "", 0)


async def test_a_cell_that_raises_says_so_and_fails(workers: ForkedWorkers) -> None:
    end = await run(workers, "print('said'); 1 / 0")
    assert (end.status, end.out) == (1, "said\n")
    assert end.err.endswith("ZeroDivisionError: division by zero\n")


async def test_what_a_cell_took_is_reported(workers: ForkedWorkers) -> None:
    program = "import time; data = bytearray(b'x') * 100_000_000\nwhile time.process_time() < 0.2: pass"
    async with started(workers, program) as child:
        await ended(child)
    assert child.spent is not None
    assert 100_000 < child.spent.max_rss_kb < 200_000
    assert 0.2 <= child.spent.cpu_seconds < 10


async def test_the_pid_is_known_as_long_as_the_cell_lives_and_after(workers: ForkedWorkers) -> None:
    async with started(workers, "import os; print(os.getpid())") as child:
        end = await ended(child)
        assert end.out == f"{child.pid}\n"


async def test_a_signal_sent_before_there_is_a_cell_reaches_it(own_workers: ForkedWorkers) -> None:
    async with started(own_workers, LIVES) as child:
        assert child.pid is None
        child.send(signal.SIGTERM)
        assert await child.exited() == -signal.SIGTERM


async def test_a_cell_nobody_wants_any_more_is_never_forked(own_workers: ForkedWorkers, tmp_path: Path) -> None:
    async with started(own_workers, f"open({str(tmp_path / 'ran')!r}, 'w')") as child:
        child.hurry()
        assert (await ended(child)).status == UNSEEN
    assert not (tmp_path / "ran").exists()


async def test_a_directory_that_is_not_there_is_a_failure_to_start(workers: ForkedWorkers, tmp_path: Path) -> None:
    async with started(workers, "pass", tmp_path / "none") as child:
        end = await ended(child)
    assert (end.status, child.failure and child.failure.errno) == (1, errno.ENOENT)


@pytest.mark.parametrize("environment", [{"A=B": "c"}, {"": "c"}, {"A": "b\0c"}])
async def test_an_environment_that_cannot_be_is_refused(workers: ForkedWorkers, environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"null byte|environment variable"):
        workers.server.spawn(environment, "/")


async def test_an_environment_of_a_megabyte_arrives(workers: ForkedWorkers) -> None:
    many = {f"V{number}": "x" * 10_000 for number in range(100)}
    end = await run(workers, "import os; print(sum(len(v) for k, v in os.environ.items() if k[0] == 'V'))", **many)
    assert end.out == "1000000\n"


async def test_many_cells_at_once_keep_their_streams_apart(own_workers: ForkedWorkers) -> None:
    ends: dict[int, Ended] = {}

    async def one(number: int) -> None:
        ends[number] = await run(own_workers, f"print({number}); raise SystemExit({number})")

    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(one, number)
    assert ends == {number: Ended(number, f"{number}\n", "", 0) for number in range(40)}
    assert server_of(own_workers).children() == []


async def test_the_server_has_one_thread_no_descriptor_of_a_cell_and_nothing_of_the_hosts_environment(
    own_workers: ForkedWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    await run(own_workers, "pass")
    server = server_of(own_workers)
    before = server.num_fds()
    for _ in range(5):
        await run(own_workers, "pass")
    assert (server.num_threads(), server.num_fds()) == (1, before)
    assert set(server.environ()) <= {"HOME", "LANG", "PATH", "LC_CTYPE"}
    assert server.cwd() == "/"


STRAYS = """
import os, subprocess, sys, signal
LIVES = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]
subprocess.Popen(LIVES)
subprocess.Popen(LIVES, start_new_session=True)
subprocess.Popen(["/bin/sh", "-c", '(nohup "$@" &)', "sh", *LIVES])
subprocess.Popen(["/usr/bin/env", "-i", *LIVES])
"""


async def see_up(child: Child, count: int) -> None:
    seen = 0
    while seen < count:
        seen += (await child.stdout.read()).count(b"up\n")


@pytest.mark.parametrize("end", ["signal.pause()", "sys.stdin.read()"])
async def test_what_a_dead_cell_left_is_ended_and_counted(workers: ForkedWorkers, end: str) -> None:
    async with started(workers, LIVES) as another, started(workers, STRAYS + end, **{MARKER: "marker"}) as child:
        await up(another)
        await see_up(child, 4)
        if "pause" in end:
            child.send(signal.SIGKILL)
        child.stdin.close()
        assert await child.exited() == (-signal.SIGKILL if "pause" in end else 0)
        assert await child.swept() == 4
        assert [process.pid for process in server_of(workers).children(recursive=True)] == [another.pid]
        assert another.status is None


async def test_two_cells_that_die_at_once_are_told_only_of_their_own_strays(workers: ForkedWorkers) -> None:
    one = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {LIVES!r}]); sys.stdin.read()"
    async with (
        started(workers, STRAYS + "sys.stdin.read()", **{MARKER: "first"}) as first,
        started(workers, one, **{MARKER: "second"}) as second,
    ):
        await see_up(first, 4)
        await see_up(second, 1)
        os.kill(server_of(workers).pid, signal.SIGSTOP)
        for child in (first, second):
            child.send(signal.SIGKILL)
        os.kill(server_of(workers).pid, signal.SIGCONT)
        swept = [await child.swept() for child in (first, second)]
    assert sum(swept) == 5
    assert swept in ([4, 1], [3, 2])  # one has no marker, and could be either's


async def test_a_stray_that_ignores_sigterm_is_killed_and_starts_are_not_held_up(workers: ForkedWorkers) -> None:
    leaves = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); sys.stdin.read()"
    async with started(workers, leaves) as child:
        await see_up(child, 1)
        child.stdin.close()
        await child.exited()
        assert await run(workers, "print('meanwhile')") == Ended(0, "meanwhile\n", "", 0)
        assert len(server_of(workers).children()) == 1  # it has its two seconds
        child.hurry()
        began = time.monotonic()
        assert await child.swept() == 1
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize(("options", "is_clear"), [((), True), ((forking.UNLISTED,), False)])
async def test_strays_are_found_whether_the_kernel_lists_children_or_not(options: tuple[str], is_clear: bool) -> None:
    workers = ForkedWorkers(*options)
    with closing(workers.server):
        async with started(workers, LIVES), started(workers, STRAYS + "sys.stdin.read()") as child:
            await see_up(child, 4)
            child.stdin.close()
            assert (await child.exited(), await child.swept(), child.is_clear) == (0, 4, is_clear)


async def test_a_zombie_that_a_dead_cell_left_is_reaped(own_workers: ForkedWorkers) -> None:
    program = "import os, sys\nif os.fork() == 0: os._exit(0)\nos.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)"
    assert (await run(own_workers, program)).swept == 0
    await run(own_workers, "pass")
    assert server_of(own_workers).children() == []


async def test_a_cell_whose_host_let_it_go_is_ended(workers: ForkedWorkers) -> None:
    async with started(workers, STUBBORN) as child:
        await up(child)
        process = psutil.Process(child.pid)
    assert not process.is_running() or process.wait(BOUND_SECONDS) is None


HOST = """
import json, os, select, signal, sys
from agentcell.forkserver import ForkServer
server = ForkServer((sys.executable, "-P", sys.argv[1]))
program = "import signal, sys; sys.stdin.readline(); signal.pause()"
child = server.spawn({"TEST_CELL_ARGV": json.dumps(["-c", program])}, "/")
while child.pid is None:
    select.select([child._report], [], [], 60)
fork = os.fork()  # it holds our ends of all sockets and pipes
if fork:
    print(json.dumps([server.pid, child.pid, fork]), flush=True)
signal.pause()
"""


def test_a_host_that_dies_is_missed_though_what_it_forked_holds_its_sockets() -> None:
    with ending(subprocess.Popen([sys.executable, "-c", HOST, forking.__file__], stdout=subprocess.PIPE)) as host:
        assert host.stdout is not None
        server, cell, fork = map(psutil.Process, json.loads(host.stdout.readline()))
        host.kill()
        _, alive = psutil.wait_procs([server, cell], timeout=BOUND_SECONDS)
        held = fork.is_running()
        fork.kill()
    assert (alive, held) == ([], True)


async def test_cells_outlive_a_lost_server_and_the_next_start_brings_a_new_one(own_workers: ForkedWorkers) -> None:
    program = "import sys; print('up', flush=True); print(sys.stdin.read()); raise SystemExit(3)"
    async with started(own_workers, program) as child:
        await up(child)
        lost = server_of(own_workers)
        lost.kill()
        lost.wait(BOUND_SECONDS)
        assert await run(own_workers, "print('new')") == Ended(0, "new\n", "", 0)
        assert server_of(own_workers) != lost
        assert child.status is None
        await child.stdin.write(b"still here")
        child.stdin.close()
        assert await ended(child) == Ended(UNSEEN, "still here\n", "", 0)
        assert not child.is_clear


async def test_a_cell_of_a_lost_server_can_be_signalled(own_workers: ForkedWorkers) -> None:
    async with started(own_workers, LIVES) as child:
        await up(child)
        server_of(own_workers).kill()
        child.send(signal.SIGTERM)
        assert (await ended(child)).status == UNSEEN


async def test_a_server_that_cannot_come_up_says_why() -> None:
    server = ForkServer((sys.executable, "-c", "raise SystemExit('no such thing')"))
    child = server.spawn({"PATH": "/usr/bin"}, "/")
    try:
        with anyio.fail_after(BOUND_SECONDS):
            assert (await ended(child)).status == UNSEEN
        assert str(child.failure) == f"[Errno {errno.EPIPE}] the fork server was lost: no such thing"
    finally:
        child.close()
        server.close()


async def test_a_host_that_does_not_listen_holds_nothing_up(workers: ForkedWorkers) -> None:
    async with started(workers, LIVES) as slow:
        await up(slow)
        with socket.socket(fileno=os.dup(slow._report.fileno())) as report:
            report.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        slow.send(signal.SIGKILL)
        for _ in range(20):
            assert (await run(workers, "pass")).status == 0


async def test_an_idle_server_ends_at_once(own_workers: ForkedWorkers) -> None:
    await run(own_workers, "pass")
    server = server_of(own_workers)
    began = time.monotonic()
    own_workers.server.close()
    assert time.monotonic() - began < 0.5
    assert not server.is_running()


async def test_a_server_that_is_still_coming_up_ends_at_once() -> None:
    server = ForkServer((sys.executable, "-c", "import time; time.sleep(3600)"))
    child = server.spawn({"PATH": "/usr/bin"}, "/")
    began = time.monotonic()
    server.close()
    assert time.monotonic() - began < 0.5
    assert child.status == UNSEEN
    child.close()


async def test_a_closing_server_ends_its_cells(own_workers: ForkedWorkers) -> None:
    async with started(own_workers, LIVES) as child:
        await up(child)
        own_workers.server.close()
        assert (await ended(child)).status == -signal.SIGTERM


def test_where_there_is_no_fork_server_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_fork()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not can_fork()


def lowest_free_descriptor(process: psutil.Process) -> int:
    taken = {int(entry.name) for entry in Path(f"/proc/{process.pid}/fd").iterdir()}
    return next(fd for fd in range(len(taken) + 1) if fd not in taken)


async def test_a_server_without_a_descriptor_left_tells_of_a_death_and_ends_what_is_left_later(
    own_workers: ForkedWorkers,
) -> None:
    async with started(own_workers, LIVES) as another, started(own_workers, STRAYS + "sys.stdin.read()") as child:
        await up(another)
        await see_up(child, 4)
        server = server_of(own_workers)
        before = server.rlimit(psutil.RLIMIT_NOFILE)
        server.rlimit(psutil.RLIMIT_NOFILE, (lowest_free_descriptor(server), before[1]))
        child.stdin.close()
        assert await child.exited() == 0
        server.rlimit(psutil.RLIMIT_NOFILE, before)
        assert (await child.swept(), child.is_clear) == (4, True)
        assert [process.pid for process in server.children(recursive=True)] == [another.pid]


@pytest.fixture
def cat() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process


async def test_a_cell_is_known_by_its_pid_where_there_was_no_descriptor_left_for_it(
    cat: "subprocess.Popen[bytes]",
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pipes = {name: FileIO(os.open(os.devnull, os.O_RDWR)) for name in ("stdin", "stdout", "stderr")}
    with theirs, closing(ForkedChild(ours, str, **pipes)) as child:
        child.send(signal.SIGTERM)
        send_report(theirs, {"pid": cat.pid})
        assert child.pid == cat.pid
        send_report(theirs, {"status": cat.wait(BOUND_SECONDS), "max_rss_kb": 1, "cpu_seconds": 0.0})
        assert (await child.exited(), child.failure) == (-signal.SIGTERM, None)
