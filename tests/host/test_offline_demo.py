"""The demo runs one real session, shows what came of it, and reaches nothing but this machine."""

import os
import re
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

SECONDS = 120.0
"""A bound on the demo, which takes four seconds on an idle machine."""

DEMO = (sys.executable, "-P", "-W", "error", "-m", "agentcell.offline.demo")


def run_demo(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables}
    return subprocess.run(DEMO, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_it_shows_one_session_that_wrote_and_ran_a_script_and_uses_nothing_of_its_surroundings(tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        address = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        demo = run_demo(
            HOME=str(home),
            TMPDIR=str(temporary),
            ANTHROPIC_BASE_URL=address,
            ANTHROPIC_API_KEY="sk-ant-real",
            ANTHROPIC_AUTH_TOKEN="real",
            HTTPS_PROXY=address,
            http_proxy=address,
            CLAUDECODE="1",
            CLAUDE_CONFIG_DIR=str(home / "config"),
            PYTHONPATH=str(tmp_path),
        )
        was_reached = bool(select.select([elsewhere], [], [], 0)[0])
    assert (demo.returncode, demo.stderr) == (0, "")
    marker = re.search(r"marker ([0-9a-f-]{36})", demo.stdout)
    assert marker is not None
    shown = [line.strip() for line in demo.stdout.splitlines()]
    for line in (
        "• Write count.sh",
        "• Bash sh count.sh",
        "3 apple",
        f"counted in cell {marker[1]}",
        "complete: Done. The counts are in count.txt.",
        "left running: nothing; the scratch project is removed",
    ):
        assert line in shown
    assert not was_reached
    assert list(home.iterdir()) == []
    assert [path.name for path in temporary.iterdir() if path.name.startswith("agentcell")] == []


def test_a_session_that_fails_is_said_and_gives_an_exit_code(tmp_path: Path) -> None:
    code = "import sys; from agentcell.offline.demo import main; sys.exit(main(sys.argv[1]))"
    script = tmp_path / "fails.yaml"
    script.write_text("turns: [{error: {status: 400, message: refused}, times: always}]")
    argv = [sys.executable, "-P", "-c", code, str(script)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    demo = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (demo.returncode, demo.stderr) == (1, "")
    assert "\n  error: " in demo.stdout
    assert "left running: nothing" in demo.stdout
