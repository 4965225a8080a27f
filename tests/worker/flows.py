"""A model for flows: clients that only count, and sessions that answer as a test says."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from tests.worker.node_tools import IT, install_node_tools, put

from agentcell_protocol.request import parse_request
from agentcell_protocol.result import Notice
from agentcell_worker import client, session
from agentcell_worker.agents.base import role_prompt
from agentcell_worker.agents.documentation_generator import run_documentation_generator_session
from agentcell_worker.agents.fixture_generator import generate_fixtures
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.migration_assistant import run_migration_assistant
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.agents.test_generator import run_test_generator_session
from agentcell_worker.checks.frameworks import NEW_FILES
from agentcell_worker.report import Report
from agentcell_worker.trace import Trace

Product = dict[str, Any]

USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 1}

SESSION_ID = "11111111-1111-4111-8111-111111111111"


class CountingClient:
    """Can be entered and left, and nothing else."""

    def __init__(self) -> None:
        self.entered = 0
        self.left = 0

    async def __aenter__(self) -> Self:
        self.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.left += 1


@dataclass
class Model:
    """What flows are given in place of the SDK.

    `answers` are given in turn, the last one again and again: what `run_agent_session` returns, or an exception. Before
    each, `works` does what the agent's tools would do.
    """

    answers: list[Any] = field(default_factory=lambda: [answer()])
    works: Callable[[int], object] = lambda _: None
    opened: list[tuple[CountingClient, dict[str, Any]]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def create_client(self, **arguments: Any) -> CountingClient:
        """Stands in for the function of that name."""
        self.opened.append((CountingClient(), arguments))
        return self.opened[-1][0]

    async def run_agent_session(self, **arguments: Any) -> Any:
        """Stands in for the function of that name."""
        assert arguments["client"].entered == arguments["client"].left + 1
        self.asked.append(arguments)
        self.works(len(self.asked))
        ended = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(ended, BaseException):
            raise ended
        return ended

    @property
    def clients(self) -> list[CountingClient]:
        """Those that were opened, the first one first."""
        return [opened for opened, _ in self.opened]

    @property
    def messages(self) -> list[str]:
        """What was asked, in turn."""
        return [arguments["message"] for arguments in self.asked]

    def is_left(self) -> bool:
        """Whether every client was left as often as it was entered."""
        return all(each.entered == each.left for each in self.clients)


def answer(status: str = "complete", response: str = "Done.", **members: Any) -> tuple[Any, ...]:
    """What `run_agent_session` returns; `members` are those of the trace."""
    trace = {"session_id": "s-1", "model": "m-1", "cost_usd": 0.25, "num_turns": 2, "tool_calls": 3, **members}
    return status, response, dict(USAGE), Trace(**trace)


def install(patch: pytest.MonkeyPatch, model: Model) -> Model:
    """Puts the model where flows look for clients and sessions."""
    patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # that of a flow's own check comes up in half the time
    patch.setattr(client, "create_client", model.create_client)
    patch.setattr(session, "run_agent_session", model.run_agent_session)
    return model


@dataclass(frozen=True)
class Case:
    """One flow, as it runs in one session when `work` has made what its agent should.

    `context` are its own parameters, `carried` is what the message has of them, `fields` fill its role prompt beside
    the directories, `empty` is the shape of its failure, `product` what it gives when it succeeds, `checks` what it
    does itself, `warnings` what it finds odd.
    """

    function: Callable[..., Awaitable[Product]]
    agent_type: str
    context: Mapping[str, Any]
    carried: str
    empty: Product
    product: Product
    fields: Mapping[str, object] = field(default_factory=dict)
    work: Callable[[Path], object] = lambda _: None
    checks: Sequence[str] = ("validate",)
    warnings: Sequence[Notice] = ()

    def role(self, project: Path, spec: Path | None) -> str:
        """The role prompt, filled."""
        return role_prompt(self.agent_type, {"project_dir": project, "spec_dir": spec or "none", **self.fields})

    def failure(self, error: str) -> Product:
        """What the flow gives when it fails."""
        return {**self.empty, "success": False, "error": error}

    def job(self, folder: Path, events: list[dict[str, Any]], **members: Any) -> Job:
        """A request for the flow, as a worker takes it; `events` gets what is told of it."""
        asked = {"session_name": "s", "agent_type": self.agent_type, "project_dir": str(folder)}
        request = parse_request({**asked, "context": dict(self.context), **members})
        return Job(agent_named(self.agent_type), Report(request), events.append, 1.0)


NO_CHECKPOINTS = {
    "valid": False,
    "issues": [".migration-checkpoints: there is no such directory"],
    "checkpoint_info": {},
}


NO_GIT = Notice(code="no_git", message="the project is in no git work tree: there may be no commits that lead back")


def write_tests(project: Path) -> None:
    """What an agent for vitest writes, and what one for pytest does."""
    install_node_tools(project, tsc="exit 0")
    put(project, "src/made.test.ts", IT)
    put(project, "tests/test_made.py", "def test_made():\n    assert True\n")


FLOWS: Iterable[Case] = (
    Case(
        run_documentation_generator_session,
        "documentation_generator",
        context={"analysis_results": {"functions": [{"name": "größe", "file": "a.py", "line": 1}]}},
        carried='```json\n{"functions":[{"name":"größe","file":"a.py","line":1}]}\n```',
        empty={"generated_files": [], "validation": {"valid": False, "issues": []}},
        product={
            "generated_files": ["made.md"],
            "success": True,
            "error": None,
            "validation": {"valid": True, "issues": []},
        },
        work=lambda project: (project / "made.md").write_text("# Made"),
    ),
    Case(
        run_migration_assistant,
        "migration_assistant",
        context={"migration_context": {"from": "a", "to": "b"}},
        carried='```json\n{"from":"a","to":"b"}\n```',
        empty={
            "checkpoints_created": 0,
            "migration_plan_path": None,
            "validation": {"valid": False, "issues": [], "checkpoint_info": {}},
        },
        product={
            "checkpoints_created": 0,
            "success": True,
            "migration_plan_path": "migration_plan.md",
            "validation": NO_CHECKPOINTS,
        },
        work=lambda project: (project / "migration_plan.md").write_text("# Plan"),
        warnings=(NO_GIT,),
    ),
    Case(
        run_test_generator_session,
        "test_generator",
        context={"analysis_results": {"components": ["größe"]}, "generate_fixtures_first": False},
        carried='```json\n{"components":["größe"]}\n```',
        empty={
            "generated_files": [],
            "framework": "",
            "coverage_analyzed": False,
            "coverage_percent": None,
            "coverage_percent_before": None,
            "coverage_gaps": 0,
            "gaps": [],
            "improved": False,
            "fixture_files": [],
            "validation": {"valid": False, "issues": [], "warnings": []},
        },
        product={
            "generated_files": ["src/made.test.ts"],
            "success": True,
            "error": None,
            "framework": "vitest",
            "coverage_analyzed": False,
            "coverage_percent": None,
            "coverage_percent_before": None,
            "coverage_gaps": 0,
            "gaps": [],
            "improved": False,
            "fixture_files": [],
            "validation": {"valid": True, "issues": [], "warnings": []},
        },
        fields={"framework": "vitest", "test_files": NEW_FILES["vitest"]},
        work=write_tests,
        checks=("types", "validate"),
    ),
    Case(
        generate_fixtures,
        "fixture_generator",
        context={"analysis_results": {"classes": ["größe"]}},
        carried='```json\n{"classes":["größe"]}\n```',
        empty={"generated_files": [], "framework": ""},
        product={
            "generated_files": ["tests/conftest.py"],
            "success": True,
            "error": None,
            "framework": "pytest-fixtures",
        },
        work=lambda project: put(project, "tests/conftest.py", "import pytest\n"),
        checks=(),
    ),
)
