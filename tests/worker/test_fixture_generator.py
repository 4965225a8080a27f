"""The flow that has fixtures written."""

from pathlib import Path

import anyio
import pytest
from tests.worker.flows import Model, answer, install
from tests.worker.node_tools import put

from agentcell_worker.agents.fixture_generator import generate_fixtures
from agentcell_worker.agents.sessions import Sessions

pytestmark = pytest.mark.anyio

SECONDS = 30


async def test_what_is_new_or_changed_is_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "tests/conftest.py", "import pytest\n")
    put(tmp_path, "tests/test_old.py", "")

    def works(_: int) -> None:
        put(tmp_path, "tests/conftest.py", "import pytest\n\n\n@pytest.fixture\ndef one():\n    return 1\n")
        put(tmp_path, "tests/fixtures/order.json", "{}")

    model = install(monkeypatch, Model(works=works))
    with anyio.fail_after(SECONDS):
        product = await generate_fixtures(tmp_path, None, {"functions": []})
    files = ["tests/conftest.py", "tests/fixtures/order.json"]
    assert product == {"generated_files": files, "success": True, "error": None, "framework": "pytest-fixtures"}
    assert [asked["phase"] for asked in model.asked] == ["validation"]


async def test_code_that_needs_no_fixtures_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Model())
    with anyio.fail_after(SECONDS):
        product = await generate_fixtures(tmp_path, None, {})
    assert product == {"generated_files": [], "success": True, "error": None, "framework": "pytest-fixtures"}


async def test_without_an_analysis_one_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "shop.py", "def add(a, b):\n    return a + b\n")
    model = install(monkeypatch, Model())
    with anyio.fail_after(SECONDS):
        assert (await generate_fixtures(tmp_path, None, None))["success"]
    assert '"functions":[{"name":"add","file":"shop.py","line":1}]' in model.messages[0]


async def test_a_failure_leaves_its_reason_with_the_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Model(answers=[answer("error", "no"), OSError("no disk")]))
    sessions = Sessions()
    with anyio.fail_after(SECONDS):
        first = await generate_fixtures(tmp_path, None, {}, sessions=sessions)
        second = await generate_fixtures(tmp_path, None, {}, sessions=sessions)
    assert first == {"generated_files": [], "success": False, "error": "no", "framework": ""}
    assert second == {"generated_files": [], "success": False, "error": "no disk", "framework": ""}
    assert sessions.error is not None
    assert sessions.error.message == "no disk"
