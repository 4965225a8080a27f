"""What a flow's own parameters must be."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentcell_protocol.codec import kind
from agentcell_protocol.errors import RequestError
from agentcell_worker.agents.registry import AgentType
from agentcell_worker.checks.coverage import percent_problem
from agentcell_worker.checks.interpreter import interpreter_problem

Rule = tuple[Callable[[Any, Path], str | None], str]
"""Says what is wrong with a value in a project, and what to give instead."""

RULES: Mapping[str, Rule] = {
    "python": (interpreter_problem, "give the path of a Python interpreter, or its name if it is on PATH"),
    "minimum_coverage": (lambda value, _: percent_problem(value), "give a number from 0 to 100"),
}


def check_context(context: Mapping[str, Any], agent: AgentType, project_dir: Path) -> None:
    """Raises RequestError for what the agent type does not take. Null leaves a parameter out."""
    for name, value in context.items():
        if name not in agent.context:
            known = ", ".join(agent.context) or "nothing"
            raise RequestError(f"context.{name}", f"is not taken by {agent.name}", f"it takes {known}")
        if value is None:
            continue
        check_kind(name, agent.context[name], value)
        check_value(name, value, project_dir)


def check_kind(name: str, expected: type, value: Any) -> None:
    """Raises RequestError for a value of another type."""
    if not _is_of(expected, value):
        wanted = "true or false" if expected is bool else kind(expected())
        raise RequestError(f"context.{name}", f"{kind(value)} is not allowed here", f"give {wanted}")


def check_value(name: str, value: Any, project_dir: Path) -> None:
    """Raises RequestError for a value that cannot be meant."""
    if name in RULES:
        problem_of, remedy = RULES[name]
        if problem := problem_of(value, project_dir):
            raise RequestError(f"context.{name}", problem, remedy)


def _is_of(expected: type, value: object) -> bool:
    if expected is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, Mapping if expected is dict else expected)
