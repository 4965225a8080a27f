"""What an ended cell left is looked for once more if the kernel has said that nothing of it is left, else twice."""

from typing import Any

import anyio
import pytest

from agentcell.reap import sweep
from agentcell_protocol import cell

pytestmark = pytest.mark.anyio


class Gone:
    """A worker that has ended and was swept."""

    is_swept = True

    def __init__(self, *, is_clear: bool) -> None:
        self.is_clear = is_clear

    async def swept(self) -> int:
        return 3


@pytest.mark.parametrize(("is_clear", "times"), [(True, 1), (False, 2)])
async def test_the_marker_is_looked_for(is_clear: bool, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def find(marker: str) -> list[Any]:
        looked.append(marker)
        return []

    monkeypatch.setattr(cell, "marked", find)
    gone: Any = Gone(is_clear=is_clear)
    assert await sweep(gone, "its", [], anyio.Event(), afterwards=lambda: looked.append("done")) == 3
    assert looked == ["its"] * times + ["done"]
