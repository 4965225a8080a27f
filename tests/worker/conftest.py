"""The worker runs on asyncio only."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop the SDK's client is used on."""
    return "asyncio"
