"""Who imports whom within the worker, and who talks to the SDK."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeSDKClient
from tests.worker.fakes import FakeClient

import agentcell_worker

ROOM = Path(agentcell_worker.__file__).parent
MODULES = sorted(ROOM.rglob("*.py"))

SECONDS = 60


def imported(path: Path) -> set[str]:
    """The top-level packages a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_only_the_session_and_the_client_import_the_sdk() -> None:
    assert {path.name for path in MODULES if "claude_agent_sdk" in imported(path)} == {"client.py", "session.py"}


def test_the_worker_does_not_know_the_host() -> None:
    assert not [path for path in MODULES if "agentcell" in imported(path)]


def test_only_the_session_prompts_the_model() -> None:
    for call in (".query(", "receive_response"):
        assert {path.name for path in MODULES if call in path.read_text()} == {"session.py"}


def test_the_fake_client_has_nothing_that_the_real_one_lacks() -> None:
    public = {name for name in dir(FakeClient([])) if not name.startswith("_")}
    assert public <= {name for name in dir(ClaudeSDKClient()) if not name.startswith("_")}


@pytest.mark.parametrize("module", ["stop", "main", "agents.registry", "agents.job", "outcome", "translate", "account"])
def test_the_rest_of_the_worker_does_not_bring_the_sdk_along(module: str) -> None:
    code = f"import sys, agentcell_worker.{module}; sys.exit('claude_agent_sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=SECONDS, check=False).returncode == 0
