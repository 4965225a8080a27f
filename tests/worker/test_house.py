"""What the worker may lean on: the real client's own attributes, and the SDK only where a session runs."""

import subprocess
import sys

import pytest
from claude_agent_sdk import ClaudeSDKClient
from tests.worker.fakes import FakeClient

SECONDS = 60


def test_the_fake_client_has_nothing_that_the_real_one_lacks() -> None:
    public = {name for name in dir(FakeClient([])) if not name.startswith("_")}
    assert public <= {name for name in dir(ClaudeSDKClient()) if not name.startswith("_")}


@pytest.mark.parametrize(
    "module", ["stop", "main", "agents.registry", "agents.job", "outcome", "options", "translate", "account"]
)
def test_the_rest_of_the_worker_does_not_bring_the_sdk_along(module: str) -> None:
    code = f"import sys, agentcell_worker.{module}; sys.exit('claude_agent_sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=SECONDS, check=False).returncode == 0
