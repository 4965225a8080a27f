"""What the plan file of a spec says about the work: all of it done, or more to do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from agentcell_protocol.codec import decode
from agentcell_protocol.errors import WireError
from agentcell_protocol.result import Notice

PLAN = "implementation_plan.json"

PlanStatus = Literal["complete", "continue"]


def plan_status(spec_dir: str | Path | None) -> tuple[PlanStatus, Notice | None]:
    """`complete` without a spec, or when its plan has subtasks and all are completed; else `continue`.

    A plan that is not there or cannot be read is named in a notice.
    """
    if spec_dir is None:
        return "complete", None
    path = Path(spec_dir) / PLAN
    try:
        plan = decode(path.read_bytes())
    except FileNotFoundError:
        return "continue", Notice(code="plan_missing", message=f"there is no {path}")
    except (OSError, WireError) as error:
        return "continue", Notice(code="plan_unreadable", message=f"{path} cannot be read: {error}")
    statuses = [subtask.get("status") for subtask in _subtasks(plan)]
    is_done = bool(statuses) and all(status == "completed" for status in statuses)
    return "complete" if is_done else "continue", None


def _subtasks(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for holder in [plan, *_objects(plan.get("phases"))]:
        yield from _objects(holder.get("subtasks"))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
