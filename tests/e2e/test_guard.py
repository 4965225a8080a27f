"""`agentcell-worker` as a shell and as a program use it, on the real SDK and the real CLI."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ending import ending

from agentcell.offline import offline_environment, offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BOUND_SECONDS = 60

GUARD = Path(sys.executable).with_name("agentcell-worker")

LINE = '{"session_name":"a","agent_type":"coder","project_dir":".","starting_message":"hi"}'

BEGINNING = b'{"status":"complete","response":"Hello.","session_name":"a",'


def test_a_line_piped_in_gives_a_line_out(tmp_path: Path) -> None:
    pipeline = f"printf '%s\\n' {shlex.quote(LINE)} | {shlex.quote(str(GUARD))}"
    with offline_model({"turns": [{"text": "Hello."}]}) as endpoint:
        ended = subprocess.run(
            ["/bin/sh", "-c", pipeline],
            env=offline_environment(endpoint, tmp_path),
            cwd=tmp_path,
            capture_output=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
    assert (ended.returncode, ended.stderr, ended.stdout.count(b"\n")) == (0, b"", 1)
    assert ended.stdout.startswith(BEGINNING)


def test_it_answers_while_stdin_stays_open(tmp_path: Path) -> None:
    with (
        offline_model({"turns": [{"text": "Hello."}]}) as endpoint,
        ending(
            subprocess.Popen(
                [GUARD],
                env=offline_environment(endpoint, tmp_path),
                cwd=tmp_path,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            ),
            BOUND_SECONDS,
        ) as guard,
    ):
        assert guard.stdin is not None
        assert guard.stdout is not None
        guard.stdin.write(LINE.replace("coder", "qa_fixer").encode() + b"\n")
        out = guard.stdout.read()
        assert guard.wait(BOUND_SECONDS) == 0
    assert out is not None
    assert out.startswith(BEGINNING)
    assert json.loads(out)["agent_type"] == "qa_fixer"
