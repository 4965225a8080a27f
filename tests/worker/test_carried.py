"""A session that goes on with a conversation costs what it cost itself."""

from pathlib import Path

import pytest

from agentcell_worker.carried import carried_cost, own_cost

ID = "5a5e0b5e-0000-4000-8000-000000000001"


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    folder = tmp_path / "projects/-p"
    folder.mkdir(parents=True)
    return folder / f"{ID}.jsonl"


def carried(tmp_path: Path, session_id: str = ID) -> float:
    return carried_cost(session_id, {"CLAUDE_CONFIG_DIR": str(tmp_path)})


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0.0),
        ('{"type":"user"}\n', 0.0),
        ('{"type":"cost-state","totalCostUSD":0.25}\n', 0.25),
        ('{"type":"cost-state","totalCostUSD":0.25}\n{"type":"user"}\n{"type":"cost-state","totalCostUSD":1}\n', 1.0),
        ('{"type":"cost-state","totalCostUSD":0.25}\n{"type":"cost-state","totalCo', 0.25),
        ('{"type":"cost-state","totalCostUSD":"much"}\n', 0.0),
        ('{"type":"user","content":"\\"cost-state\\"","totalCostUSD":3}\n', 0.0),
        ('{"type":"user","of":"cost-state","totalCostUSD":3}\n', 0.0),
    ],
)
def test_the_last_cost_that_was_noted_counts(conversation: Path, tmp_path: Path, text: str, cost: float) -> None:
    conversation.write_text(text)
    assert carried(tmp_path) == cost


@pytest.mark.parametrize("session_id", [ID, "*", "../../x", "a/b", ""])
def test_what_is_not_there_has_cost_nothing(tmp_path: Path, session_id: str) -> None:
    assert carried(tmp_path, session_id) == 0.0


def test_another_conversation_does_not_count(conversation: Path, tmp_path: Path) -> None:
    conversation.write_text('{"type":"cost-state","totalCostUSD":0.25}\n')
    assert carried(tmp_path, "*") == 0.0


@pytest.mark.parametrize(
    ("counted", "carried", "own"), [(0.3, 0.1, 0.2), (0.3, 0.0, 0.3), (0.1, 0.1, 0.0), (0.1, 0.3, 0.1)]
)
def test_its_own_cost_is_what_is_counted_beyond_that(counted: float, carried: float, own: float) -> None:
    assert own_cost(counted, carried) == own
