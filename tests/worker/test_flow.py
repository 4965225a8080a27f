"""A flow of several sessions: what they come to, taken together."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker.flows import SESSION_ID, USAGE, Model, answer, install

from agentcell_protocol.errors import Category, SessionError, session_error
from agentcell_protocol.masking import Mask
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import Denial, Notice, SessionResult, Usage
from agentcell_worker.agents.base import prepare, run_generator_session
from agentcell_worker.agents.flow import FlowError, deliver, flow
from agentcell_worker.agents.job import Job
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.report import Report

pytestmark = pytest.mark.anyio

SECONDS = 30

OVERLOADED = session_error(Category.OVERLOADED, "the API is overloaded")


@flow(made=[])
async def helped(project_dir: str, spec_dir: str | None, *, sessions: Sessions, **_: object) -> dict[str, Any]:
    """A helper first, whose failure does not matter, and then two sessions of one agent."""
    helper = await run_generator_session("fixture_generator", project_dir, spec_dir, "Help.", sessions=sessions)
    agent = prepare(
        "documentation_generator",
        project_dir,
        spec_dir,
        model=None,
        max_thinking_tokens=None,
        verbose=False,
        sessions=sessions,
    )
    await agent.ask("Begin.")
    await agent.ask("Go on.")
    if not helper["success"]:
        sessions.warn("helper", helper["error"])
    return {"made": ["main", "more"], "success": True, "error": None}


@flow(made=[])
async def spoiled(project_dir: str, spec_dir: str | None, *, sessions: Sessions, **named: object) -> dict[str, Any]:
    """Sessions that succeed, and a product that is not as it should be."""
    product = await helped(project_dir, spec_dir, sessions=sessions, **named)
    raise FlowError("it is no good", made=product["made"])


@flow(validation={})
async def careless(*, analysis_results: object, **_: object) -> dict[str, Any]:
    """Checks that say too much; `found` is what the model made."""
    assert analysis_results is None
    issues = ["a.py: the key is sk-ant-secret"]
    raise FlowError("refused: sk-ant-secret", validation={"valid": False, "issues": issues}, found=issues)


@flow(made=[])
async def mistaken(**_: object) -> dict[str, Any]:
    """A mistake."""
    raise RuntimeError("odd")


def asked(folder: Path, **members: Any) -> dict[str, Any]:
    """A request."""
    return {"session_name": "s", "agent_type": "documentation_generator", "project_dir": str(folder), **members}


async def serve(folder: Path, function: Any = helped, **members: Any) -> tuple[SessionResult, list[dict[str, Any]]]:
    """The flow as a worker runs it."""
    events: list[dict[str, Any]] = []
    report = Report(parse_request(asked(folder, **members)))
    job = Job(agent_named("documentation_generator"), report, events.append, 1.0)
    with anyio.fail_after(SECONDS):
        return await deliver(job, function), events


def three(*, helper: SessionError | None = None) -> list[Any]:
    """The answers of three sessions."""
    denied = (Denial(tool_name="Bash", tool_use_id="t"),)
    odd = (Notice(code="odd", message="one"),)
    return [
        answer(
            "error" if helper else "complete",
            helper.message if helper else "helper",
            session_id="s-1",
            error=helper,
            warnings=odd,
        ),
        answer("continue", "main", session_id="s-2", stop_reason="end_turn", structured_output={"a": 1}),
        answer("complete", "more", session_id="s-3", permission_denials=denied, waited_seconds=1.0),
    ]


async def test_what_was_spent_is_added_up_and_the_first_of_the_type_asked_for_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = install(monkeypatch, Model(three()))
    result, _ = await serve(tmp_path)
    assert result.flow == {
        "made": ["main", "more"],
        "success": True,
        "error": None,
        "session_ids": ["s-1", "s-2", "s-3"],
    }
    assert (result.status, result.response, result.session_id) == ("continue", "main", "s-2")
    assert result.usage == Usage(**{name: 3 * count for name, count in USAGE.items()})
    assert (result.cost_usd, result.num_turns, result.tool_calls) == (0.75, 6, 9)
    assert (result.structured_output, result.stop_reason) == ({"a": 1}, "end_turn")
    assert [denial.tool_name for denial in result.permission_denials] == ["Bash"]
    assert [notice.code for notice in result.warnings] == ["odd"]
    assert [(each.entered, each.left) for each in model.clients] == [(1, 1), (2, 2)]


async def test_a_cost_that_one_session_does_not_know_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Model([answer(), answer(cost_usd=None)]))
    result, _ = await serve(tmp_path)
    assert result.cost_usd is None


async def test_what_a_request_says_of_one_session_is_for_the_first_of_its_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = install(monkeypatch, Model(three()))
    members = {"session_id": SESSION_ID, "system_prompt": "Be brief.", "starting_message": "Hurry.", "effort": "low"}
    await serve(tmp_path, **members)
    helper, main = (arguments for _, arguments in model.opened)
    assert ("session_id" in helper, main["session_id"]) == (False, SESSION_ID)
    assert (helper["effort"], main["effort"]) == ("low", "low")
    first, *others = model.messages
    assert first.startswith("# Role")
    assert first.endswith("\n\nHelp.")
    assert others == ["Be brief.\n\nBegin.\n\nHurry.", "Be brief.\n\nGo on.\n\nHurry."]


async def test_a_failed_part_is_only_what_the_flow_makes_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Model(three(helper=OVERLOADED)))
    result, events = await serve(tmp_path)
    assert (result.status, result.error) == ("continue", None)
    warned = {"code": "helper", "message": "the API is overloaded"}
    assert [notice.model_dump() for notice in result.warnings] == [{"code": "odd", "message": "one"}, warned]
    assert events[:-1] == [
        {"type": "session_ended", "session_id": "s-1", "status": "error"},
        {"type": "session_ended", "session_id": "s-2", "status": "continue"},
        {"type": "session_ended", "session_id": "s-3", "status": "complete"},
        {"type": "warning", **warned},
    ]
    assert events[-1] == {"type": "outcome", "result": result.to_message(hosted=False)}


async def test_a_product_that_is_no_good_is_an_error_that_keeps_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Model(three(helper=OVERLOADED)))
    result, events = await serve(tmp_path, spoiled)
    known = {"made": ["main", "more"], "success": False, "error": "it is no good"}
    assert result.flow == {**known, "session_ids": ["s-1", "s-2", "s-3"]}
    assert result.error == session_error(Category.DELIVERABLE, "it is no good", partial_response="main")
    assert (result.status, result.response, result.session_id) == ("error", "it is no good", "s-2")
    assert [event["type"] for event in events][-2:] == ["warning", "outcome"]


async def test_a_later_session_that_fails_gives_its_own_category(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = answer("error", OVERLOADED.message, session_id="s-3", error=OVERLOADED)
    install(monkeypatch, Model([*three()[:2], failed]))
    result, _ = await serve(tmp_path)
    assert (result.error, result.session_id) == (OVERLOADED, "s-2")
    assert result.flow == {
        "made": [],
        "success": False,
        "error": OVERLOADED.message,
        "session_ids": ["s-1", "s-2", "s-3"],
    }


async def test_a_mistake_is_named_and_leaves_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, Model())
    result, _ = await serve(tmp_path, mistaken, session_id=SESSION_ID)
    assert result.flow == {"made": [], "success": False, "error": "RuntimeError: odd", "session_ids": []}
    assert result.error is not None
    assert (result.error.category, result.session_id) == (Category.INTERNAL, SESSION_ID)
    assert "RuntimeError: odd" in caplog.text


async def test_no_secret_is_in_what_a_flow_says_and_what_it_made_stays_as_it_is(tmp_path: Path) -> None:
    report = Report(parse_request(asked(tmp_path, context={"analysis_results": None})), mask=Mask())
    result = await deliver(Job(agent_named("documentation_generator"), report, lambda _: None, 1.0), careless)
    assert result.flow == {
        "validation": {"valid": False, "issues": ["a.py: the key is [masked]"]},
        "found": ["a.py: the key is sk-ant-secret"],
        "success": False,
        "error": "refused: [masked]",
        "session_ids": [],
    }


async def test_a_session_has_ended_before_its_client_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = install(monkeypatch, Model(three()))
    left: list[list[int]] = []

    def listen(event: dict[str, Any]) -> None:
        if event["type"] == "session_ended":
            left.append([each.left for each in model.clients])

    job = Job(agent_named("documentation_generator"), Report(parse_request(asked(tmp_path))), listen, 1.0)
    await deliver(job, helped)
    assert left == [[0], [1, 0], [1, 1]]


async def test_usage_events_are_totals_of_the_whole_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = install(monkeypatch, Model(three()))

    def tell(_: int) -> None:
        listen = model.asked[-1]["on_event"]
        listen({"type": "usage", **dict.fromkeys(USAGE, 1)})
        listen({"type": "text", "text": "working"})
        listen({"type": "usage", **USAGE})

    model.works = tell
    _, events = await serve(tmp_path)
    spent = [event["input_tokens"] for event in events if event["type"] == "usage"]
    assert spent == [1, 10, 11, 20, 21, 30]
    assert [event["type"] for event in events][-3:] == ["usage", "session_ended", "outcome"]


async def test_without_a_request_nobody_hears_and_nothing_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = install(monkeypatch, Model())
    product = await run_generator_session("fixture_generator", tmp_path, None, "Begin.", model="m-1", verbose=True)
    assert product == {"success": True, "error": None}
    assert (len(model.opened), model.asked[0]["verbose"]) == (1, True)
    assert set(model.opened[0][1]) == {"project_dir", "spec_dir", "model", "agent_type", "max_thinking_tokens"}


async def test_a_type_without_a_role_prompt_is_no_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Model())
    product = await run_generator_session("coder", tmp_path, None, "Begin.")
    assert product == {"success": False, "error": "Failed to load coder prompt: coder has none"}
