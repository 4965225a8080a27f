"""The agent types, and the flow that hands the caller's message on."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker.script import SUCCESS, fake_cli, request, scripted

from agentcell_protocol.credentials import HINT
from agentcell_protocol.errors import Category, RequestError
from agentcell_protocol.request import parse_request
from agentcell_worker import preflight, session
from agentcell_worker.agents import conversation
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.registry import AGENT_CONFIGS, BUILD_TOOLS, AgentType, agent_named
from agentcell_worker.outcome import Seen, failure
from agentcell_worker.report import Report
from agentcell_worker.trace import Trace


def test_the_build_phases_are_known() -> None:
    known = {name: (agent.phase, agent.tools, agent.permission_mode) for name, agent in AGENT_CONFIGS.items()}
    phases = {"planner": "planning", "coder": "coding", "qa_reviewer": "validation", "qa_fixer": "validation"}
    assert {name: known[name] for name in phases} == {
        name: (phase, BUILD_TOOLS, "acceptEdits") for name, phase in phases.items()
    }


def test_an_unknown_type_lists_the_known() -> None:
    own = "a type of your own needs its agents_dir"
    with pytest.raises(RequestError, match=rf"agent_type: 'codr' is not known; use .*; did you mean coder\?; {own}$"):
        agent_named("codr")
    with pytest.raises(RequestError, match=r"agent_type: 'painter' is not known; use one of planner, coder"):
        agent_named("painter")


PAINTER = AgentType(
    "painter",
    "coding",
    needs_message=False,
    context={"colours": dict, "is_bright": bool, "brush": str, "size": float},
)


@pytest.mark.parametrize(
    ("context", "refusal"),
    [
        ({"colours": {}, "is_bright": False, "brush": "", "size": 1}, None),
        ({"colours": None, "is_bright": None, "brush": None, "size": None}, None),
        ({"size": 0.5}, None),
        ({"frame": None}, "context.frame: is not taken by painter; it takes colours, is_bright, brush, size"),
        ({"colours": []}, "context.colours: an array is not allowed here; give an object"),
        ({"is_bright": 1}, "context.is_bright: a number is not allowed here; give true or false"),
        ({"brush": 1}, "context.brush: a number is not allowed here; give a string"),
        ({"size": True}, "context.size: a boolean is not allowed here; give a number"),
    ],
)
def test_context_holds_the_parameters_of_the_type_and_null_leaves_one_out(
    tmp_path: Path, context: dict[str, Any], refusal: str | None
) -> None:
    asked = parse_request(request(tmp_path, context=context))
    if refusal is None:
        preflight.check_request(asked, PAINTER)
    else:
        with pytest.raises(RequestError, match=f"^{re.escape(refusal)}$"):
            preflight.check_request(asked, PAINTER)


@pytest.mark.parametrize(
    ("user", "variables", "is_refused"),
    [(0, {}, True), (0, {"IS_SANDBOX": "true"}, True), (0, {"IS_SANDBOX": "1"}, False), (1000, {}, False)],
)
def test_root_cannot_bypass_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, variables: dict[str, str], is_refused: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    asked, coder = parse_request(request(tmp_path, permission_mode="bypassPermissions")), agent_named("coder")
    assert (preflight.check_permissions(asked, coder, variables) is not None) == is_refused
    assert preflight.check_permissions(parse_request(request(tmp_path)), coder, variables) is None


@pytest.mark.anyio
async def test_the_flow_reports_its_outcome_before_the_client_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[dict[str, Any]] = []
    members = {"cli_path": fake_cli(tmp_path), "env": scripted(SUCCESS), "system_prompt": "Be brief."}
    report = Report(parse_request(request(tmp_path, **members)))
    seen: list[Any] = []

    async def watched(client: Any, message: str, spec_dir: Any, **named: Any) -> Any:
        seen.append((message, spec_dir, named["phase"]))
        return "continue", "hello", {}, Trace(session_id="s", num_turns=1)

    monkeypatch.setattr(session, "run_agent_session", watched)
    with anyio.fail_after(30):
        result = await conversation.run(Job(agent_named("coder"), report, events.append, 1.0))
    assert seen == [("Be brief.\n\nhi", None, "coding")]
    assert (result.status, result.response, result.session_id, result.num_turns) == ("continue", "hello", "s", 1)
    assert [event["type"] for event in events] == ["outcome"]


@pytest.mark.anyio
async def test_a_cli_that_does_not_come_up_is_a_result(tmp_path: Path) -> None:
    members = {"cli_path": str(tmp_path / "nothing"), "session_id": "11111111-1111-4111-8111-111111111111"}
    report = Report(parse_request(request(tmp_path, **members)))
    with anyio.fail_after(30):
        result = await conversation.run(Job(agent_named("coder"), report, lambda _: None, 1.0))
    assert result.error is not None
    assert (result.error.category, result.session_id) == ("cli_not_found", members["session_id"])


@pytest.mark.parametrize(
    ("source", "message"),
    [(None, f"there are no credentials for the API; {HINT}"), ("login", "the API refused the credentials")],
)
def test_credentials_that_are_not_there_were_not_refused(tmp_path: Path, source: str | None, message: str) -> None:
    refused = failure(Category.AUTHENTICATION, Seen())
    report = Report(parse_request(request(tmp_path)), source)
    result = report.of("error", refused.message, {}, Trace(error=refused))
    assert result.error is not None
    assert (result.response, result.error.message) == (message, message)
    assert (result.error.hint, str(result.error)) == (HINT, message if source is None else f"{message}; {HINT}")
