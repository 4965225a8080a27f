"""What the values of a flow's own parameters must be, beyond their types."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentcell_protocol.errors import RequestError
from agentcell_worker.agents.coverage import percent_problem
from agentcell_worker.agents.interpreter import interpreter_problem

Rule = tuple[Callable[[Any, Path], str | None], str]
"""Says what is wrong with a value in a project, and what to give instead."""

RULES: Mapping[str, Rule] = {
    "python": (interpreter_problem, "give the path of a Python interpreter, or its name if it is on PATH"),
    "minimum_coverage": (lambda value, _: percent_problem(value), "give a number from 0 to 100"),
}


def check_value(name: str, value: Any, project_dir: Path) -> None:
    """Raises RequestError for a value that cannot be meant."""
    if name in RULES:
        problem_of, remedy = RULES[name]
        if problem := problem_of(value, project_dir):
            raise RequestError(f"context.{name}", problem, remedy)
