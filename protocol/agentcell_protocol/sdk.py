"""The SDK and the CLI that comes with it, looked up without importing them."""

import importlib.util
from functools import cache
from importlib.metadata import version
from pathlib import Path

SDK = "claude-agent-sdk"
"""The distribution."""

PACKAGE = "claude_agent_sdk"
"""What is imported; also the root of its loggers."""


@cache
def sdk_version() -> str:
    """The version of the distribution that is installed. Raises PackageNotFoundError."""
    return version(SDK)


def bundled_cli() -> Path | None:
    """The SDK's own CLI; None without one."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in spec.submodule_search_locations or () if spec else ():
        bundled = Path(folder) / "_bundled" / "claude"
        if bundled.is_file():
            return bundled
    return None
