"""The worker runs on asyncio only, and has a small project to work on."""

from pathlib import Path

import pytest
from tests.worker.node_tools import put
from tests.worker.shop import SHOP


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop the SDK's client is used on."""
    return "asyncio"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose pytest comes up faster, without the plugins that are installed for the tests of agentcell."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = tmp_path / "a project"
    put(folder, "shop.py", SHOP)
    return folder
