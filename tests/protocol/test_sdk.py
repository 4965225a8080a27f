"""The SDK is looked up, not imported."""

import importlib.util
import subprocess
import sys

import pytest

from agentcell_protocol.sdk import bundled_cli


def test_the_cli_that_comes_with_the_sdk_is_found_without_importing_it() -> None:
    program = "import sys, agentcell_protocol.sdk as sdk; print(sdk.bundled_cli(), sdk.PACKAGE in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split()[0].endswith("claude_agent_sdk/_bundled/claude")
    assert ran.stdout.split()[1] == "False"


def test_without_the_sdk_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert bundled_cli() is None
