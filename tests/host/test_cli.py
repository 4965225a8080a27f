"""The command `agentcell` itself, and its small commands."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.host.command_line import BOUND_SECONDS, environment, run_command, started

from agentcell.cli import agentcell
from agentcell_protocol.schema import KINDS, Kind, committed
from agentcell_protocol.version import __version__

WATCHED = """
import sys
from agentcell.cli import main
try:
    main()
finally:
    heavy = {"pydantic", "claude_agent_sdk", "anyio", "yaml", "rich", "uvicorn"}
    print(heavy & set(sys.modules), file=sys.stderr)
"""
"""The console script, telling on stderr which costly packages it has loaded."""

INTERRUPTED_EARLY = """
import sys
from agentcell.console import main
class Interrupt:
    def find_spec(self, name, *_):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
main()
"""
"""The console script, interrupted while it loads what it needs."""

SCRIPT = "turns:\n  - text: hello\n"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"], ["doctor", "--help"]])
def test_help_and_version_import_neither_pydantic_nor_the_sdk(arguments: list[str], tmp_path: Path) -> None:
    ended = run_command([sys.executable, "-c", WATCHED, *arguments], tmp_path)
    assert (ended.returncode, ended.stderr) == (0, b"set()\n")


def test_the_version_is_the_distributions() -> None:
    ended = CliRunner().invoke(agentcell, ["--version"])
    assert (ended.exit_code, ended.output) == (0, f"agentcell {__version__}\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_printed_as_it_ships(kind: Kind) -> None:
    ended = CliRunner().invoke(agentcell, ["schema", kind])
    assert (ended.exit_code, ended.stdout) == (0, committed(kind))


def test_an_unknown_schema_is_refused_with_the_known_ones() -> None:
    ended = CliRunner().invoke(agentcell, ["schema", "limits"])
    assert ended.exit_code == 2
    assert "'limits' is not one of 'request', 'event', 'result'" in ended.stderr


def test_a_reader_that_leaves_early_causes_no_traceback(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "from agentcell.cli import main; main()", "schema", "result"]
    with started(argv, tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(BOUND_SECONDS) != 0


def test_the_offline_model_prints_its_address_and_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(SCRIPT)
    argv = [sys.executable, "-c", "from agentcell.cli import main; main()", "offline-model", "--script", "script.yaml"]
    with started(argv, tmp_path) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
        asked = urllib.request.Request(f"{address}/v1/messages", body, {"content-type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=BOUND_SECONDS) as answer:
            assert json.load(answer)["content"] == [{"type": "text", "text": "hello"}]
        process.send_signal(signal.SIGINT)
        assert process.wait(BOUND_SECONDS) == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        ("nonsense: 1", "nonsense"),
        ("a: [", "is not valid"),
    ],
)
def test_a_script_that_cannot_be_played_is_named(tmp_path: Path, content: str | None, reason: str) -> None:
    file = tmp_path / "script.yaml"
    if content is not None:
        file.write_text(content)
    ended = CliRunner().invoke(agentcell, ["offline-model", "--script", str(file)])
    assert ended.exit_code == 2
    assert "--script" in ended.stderr
    assert reason in ended.stderr


def test_an_interrupt_while_it_loads_ends_it_without_a_traceback(tmp_path: Path) -> None:
    ended = run_command([sys.executable, "-c", INTERRUPTED_EARLY, "--help"], tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


def test_the_console_script_exits_with_the_usage_code(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("agentcell")
    ended = subprocess.run(
        [script, "run", "--nonsense"],
        env=environment(tmp_path),
        capture_output=True,
        timeout=BOUND_SECONDS,
        check=False,
    )
    assert ended.returncode == 2
    assert b"No such option" in ended.stderr
