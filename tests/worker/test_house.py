"""What the worker may lean on: the real client's own attributes, and the SDK only where a session runs."""

import subprocess
import sys

from claude_agent_sdk import ClaudeSDKClient
from tests.worker.fakes import FakeClient

SECONDS = 60


def test_the_fake_client_has_nothing_that_the_real_one_lacks() -> None:
    public = {name for name in dir(FakeClient([])) if not name.startswith("_")}
    assert public <= {name for name in dir(ClaudeSDKClient()) if not name.startswith("_")}


WITHOUT_THE_SDK = ("signals", "agents.registry", "agents.job", "outcome", "options", "translate", "account", "main")

LOOK = f"""
import importlib, sys
for module in {WITHOUT_THE_SDK!r}:
    importlib.import_module(f"agentcell_worker.{{module}}")
    if "claude_agent_sdk" in sys.modules:
        sys.exit(f"{{module}} brings the SDK along")
"""


def test_the_rest_of_the_worker_does_not_bring_the_sdk_along() -> None:
    look = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (look.returncode, look.stderr) == (0, "")
