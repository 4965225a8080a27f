"""What a plan file says about the work."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentcell_worker.plan import plan_status

DONE, OPEN = {"status": "completed"}, {"status": "in_progress"}


@pytest.mark.parametrize(
    ("plan", "status"),
    [
        ({"subtasks": [DONE]}, "complete"),
        ({"phases": [{"subtasks": [DONE, DONE]}, {"subtasks": [DONE]}]}, "complete"),
        ({"phases": [{"subtasks": [DONE]}], "subtasks": [OPEN]}, "continue"),
        ({"phases": [{"subtasks": [DONE, OPEN]}]}, "continue"),
        ({"phases": [{"subtasks": [{}]}]}, "continue"),
        ({"phases": [{"subtasks": []}]}, "continue"),
        ({"phases": [None, {"subtasks": None}, {"subtasks": ["odd"]}]}, "continue"),
        ({}, "continue"),
    ],
)
def test_all_subtasks_completed_is_complete(tmp_path: Path, plan: dict[str, Any], status: str) -> None:
    (tmp_path / "implementation_plan.json").write_text(json.dumps(plan, indent=2))
    assert plan_status(tmp_path) == (status, None)


def test_without_a_spec_the_work_is_complete() -> None:
    assert plan_status(None) == ("complete", None)


@pytest.mark.parametrize(
    ("content", "code"), [(None, "plan_missing"), ("{", "plan_unreadable"), ("[]", "plan_unreadable")]
)
def test_a_plan_that_cannot_be_read_is_named(tmp_path: Path, content: str | None, code: str) -> None:
    if content is not None:
        (tmp_path / "implementation_plan.json").write_text(content)
    status, notice = plan_status(tmp_path)
    assert (status, notice and notice.code) == ("continue", code)
