"""The child process of a flow's own check."""

import os
import sys
import time
from pathlib import Path

import anyio
import psutil
import pytest

from agentcell_worker.checks import child
from agentcell_worker.checks.child import Ran, clean, run_child
from agentcell_worker.cli_process import until

pytestmark = pytest.mark.anyio

SECONDS = 60
"""A bound that no test reaches, unless something is wrong."""

DAEMON = """
import os, signal
is_up, up = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open("daemon", "w") as file:
            file.write(str(os.getpid()))
        os.write(up, b"!")
        signal.pause()
    os._exit(0)
os.wait()
os.read(is_up, 1)
"""

LIVING = "import os, time; open('daemon', 'w').write(str(os.getpid())); time.sleep(600)"

SAYS_IT_LIVES = """
import os, signal, sys
with open("daemon", "w") as file:
    file.write(str(os.getpid()))
os.write(int(sys.argv[1]), b"!")
signal.pause()
"""


async def run(program: str, cwd: Path, seconds: float = SECONDS) -> Ran:
    with anyio.fail_after(SECONDS):
        return await run_child([sys.executable, "-c", program], cwd=cwd, seconds=seconds)


def is_running(file: Path) -> bool:
    return psutil.pid_exists(int(file.read_text())) and psutil.Process(int(file.read_text())).status() != "zombie"


async def test_a_child_says_how_it_ended(tmp_path: Path) -> None:
    ran = await run("import os, sys; print(os.getcwd()); sys.stderr.write('oh\\n'); sys.exit(3)", tmp_path)
    assert (ran.exit_code, sorted(ran.output.split())) == (3, sorted([str(tmp_path), "oh"]))
    assert (await run("print('\\n  last  \\n\\n')", tmp_path)).last_line == "last"


async def test_a_child_that_a_signal_ended_has_its_number_as_code(tmp_path: Path) -> None:
    assert await run("import os; os.kill(os.getpid(), 9)", tmp_path) == Ran(-9, "")


async def test_a_child_gets_no_more_than_its_time(tmp_path: Path) -> None:
    ran = await run(
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True); time.sleep(600)", tmp_path, 1
    )
    assert ran.exit_code is None
    assert ran.ending.startswith("its time was up")


async def test_a_child_that_holds_its_output_open_by_a_daemon_is_not_waited_for_and_the_daemon_ends(
    tmp_path: Path,
) -> None:
    began = time.monotonic()
    ran = await run(DAEMON, tmp_path)
    assert ran.exit_code == 0
    assert not is_running(tmp_path / "daemon")
    assert time.monotonic() - began < SECONDS / 2


async def test_a_daemon_that_forgot_its_environment_ends_while_it_is_in_the_session(tmp_path: Path) -> None:
    lines = [
        "import os, sys",
        "is_up, up = os.pipe()",
        "os.set_inheritable(up, True)",
        f"os.spawnve(os.P_NOWAIT, sys.executable, ['python', '-c', {SAYS_IT_LIVES!r}, str(up)], {{}})",
        "os.read(is_up, 1)",
    ]
    assert (await run("\n".join(lines), tmp_path)).exit_code == 0
    assert not is_running(tmp_path / "daemon")


async def test_a_cancelled_check_leaves_nothing_running(tmp_path: Path) -> None:
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, LIVING, tmp_path)
            await until(lambda: (tmp_path / "daemon").exists() and bool((tmp_path / "daemon").read_text()))
            tasks.cancel_scope.cancel()
    assert not is_running(tmp_path / "daemon")


async def test_a_flood_is_kept_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "OUTPUT_BYTES", 100_000)
    program = "for _ in range(300): print('x' * 9_999, flush=True)\nimport time; time.sleep(0.1); print('the end')"
    ran = await run(program, tmp_path)
    assert (ran.exit_code, ran.last_line, len(ran.output) <= child.TAIL_BYTES) == (0, "the end", True)


async def test_a_child_that_cannot_be_started_ends_as_in_a_shell(tmp_path: Path) -> None:
    assert await run_child([tmp_path / "nothing"], cwd=tmp_path, seconds=1) == Ran(127, "No such file or directory")


async def test_a_child_gets_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("ANTHROPIC_API_KEY", "MY_TOKEN", "DB_PASSWORD", "SMTP_PASS", "MYSQL_PWD", "NPM_CONFIG__AUTH", "GITHUB_PAT")
    for name in (*names, "CLAUDE_CODE_USE_BEDROCK", "PYTHONPATH", "CLAUDECODE"):
        monkeypatch.setenv(name, "secret-value")
    monkeypatch.setenv("HARMLESS_NAME", "sk-ant-abc")
    monkeypatch.setenv("DATABASE_URL", "postgres://shop:secret-value@db.example/shop")
    monkeypatch.setenv("AGENTCELL_CELL", "a-cell")
    ran = await run("import os\nfor name in os.environ: print(name, os.environ[name])", tmp_path)
    assert "secret-value" not in ran.output
    assert "sk-ant" not in ran.output
    assert "AGENTCELL_CELL a-cell" in ran.output
    assert "PYTHONDONTWRITEBYTECODE 1" in ran.output


def test_what_is_no_credential_passes() -> None:
    given = {
        "PATH": "/bin",
        "HOME": "/h",
        "DJANGO_SETTINGS_MODULE": "shop",
        "PWD": "/h",
        "OLDPWD": "/",
        "MY_PATH": "/h",
    }
    given |= {"DATABASE_URL": "postgres://shop@db.example:5432/shop?mail=a@b.example", "NO_PROXY": "::1,127.0.0.1"}
    assert clean({**given, "AWS_SECRET_ACCESS_KEY": "x"}) == {**given, "PYTHONDONTWRITEBYTECODE": "1"}
    assert clean(os.environ)["PATH"] == os.environ["PATH"]
