"""What all flows promise: how they open clients and run sessions, and what comes of each ending."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker.flows import FLOWS, SESSION_ID, USAGE, Case, Model, answer, install

from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import SessionResult, Usage
from agentcell_worker import client
from agentcell_worker.agents import prompts
from agentcell_worker.agents.registry import agent_named
from agentcell_worker.client import CannotStart

pytestmark = pytest.mark.anyio

SECONDS = 30

each_flow = pytest.mark.parametrize("case", FLOWS, ids=lambda case: case.agent_type)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    folder = tmp_path / "spec"
    folder.mkdir()
    return folder


def playing(case: Case, project: Path, patch: pytest.MonkeyPatch, *answers: Any) -> Model:
    """A model that makes what the flow wants, and then answers so."""
    model = Model(works=lambda _: case.work(project))
    model.answers = list(answers) or model.answers
    return install(patch, model)


async def call(case: Case, project: Path, spec: Path | None, **named: Any) -> dict[str, Any]:
    """The flow's function, with its parameters by name."""
    with anyio.fail_after(SECONDS):
        return await case.function(project_dir=project, spec_dir=spec, **case.context, **named)


async def serve(
    case: Case, project: Path, **members: Any
) -> tuple[SessionResult, dict[str, Any], list[dict[str, Any]]]:
    """The flow as a worker runs it for a request: the result, what the flow says in it, and the events."""
    events: list[dict[str, Any]] = []
    job = case.job(project, events, **members)
    with anyio.fail_after(SECONDS):
        result = await job.agent.load()(job)
    return result, result.flow, events


@each_flow
async def test_one_session_is_run_in_a_client_of_its_own(
    case: Case, project: Path, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = playing(case, project, monkeypatch)
    product = await call(case, project, spec, model="m-1", max_thinking_tokens=4000, verbose=True)
    assert product == case.product
    ((opened, arguments),) = model.opened
    assert arguments == {
        "project_dir": project,
        "spec_dir": spec,
        "model": "m-1",
        "agent_type": case.agent_type,
        "max_thinking_tokens": 4000,
    }
    ((message, asked),) = [(one.pop("message"), one) for one in model.asked]
    assert callable(asked.pop("on_event"))
    phase = agent_named(case.agent_type).phase
    assert asked == {"client": opened, "spec_dir": spec, "phase": phase, "verbose": True}
    assert (opened.entered, opened.left, hasattr(opened, "create_agent_session")) == (1, 1, False)
    assert message.startswith(case.role(project, spec) + "\n\n")
    assert case.carried in message


@each_flow
async def test_parameters_may_be_given_in_their_order(
    case: Case, project: Path, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = playing(case, project, monkeypatch)
    own, *more = case.context.values()
    with anyio.fail_after(SECONDS):
        product = await case.function(project, spec, own, "m-1", 4000, True, *more)
    assert (product, len(model.asked)) == (case.product, 1)
    assert (model.opened[0][1]["model"], model.opened[0][1]["max_thinking_tokens"]) == ("m-1", 4000)


@each_flow
async def test_a_parameter_that_is_no_object_fails_before_a_session(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = playing(case, project, monkeypatch)
    name = next(iter(case.context))
    case = replace(case, context={**case.context, name: ["odd"]})
    error = f"context.{name}: an array is not allowed here; give an object"
    assert (await call(case, project, None), model.asked) == (case.failure(error), [])


@each_flow
async def test_no_spec_directory_is_said_to_be_none(case: Case, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = playing(case, project, monkeypatch)
    assert (await call(case, project, None))["success"]
    assert model.messages[0].startswith(case.role(project, None))
    assert (model.opened[0][1]["spec_dir"], model.asked[0]["spec_dir"]) == (None, None)
    assert (model.opened[0][1]["model"], model.opened[0][1]["max_thinking_tokens"]) == (None, None)


@each_flow
async def test_a_session_without_work_left_and_one_with_are_both_successes(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing(case, project, monkeypatch, answer("continue"))
    assert await call(case, project, None) == case.product


@each_flow
@pytest.mark.parametrize("length", [2, 4])
async def test_a_failed_session_fails_the_flow_in_its_own_words(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    model = playing(case, project, monkeypatch, answer("error", "the API failed (HTTP 500)")[:length])
    assert await call(case, project, None) == case.failure("the API failed (HTTP 500)")
    assert model.is_left()


@each_flow
@pytest.mark.parametrize(
    ("broken", "words"),
    [(ValueError("odd"), "odd"), (OSError(5, "no disk"), "[Errno 5] no disk"), (KeyError(), "KeyError")],
)
@pytest.mark.parametrize(
    ("place", "beginning"),
    [
        ("agentcell_worker.agents.prompts.load", "Failed to load {} prompt: "),
        ("agentcell_worker.client.create_client", "Failed to create Claude SDK client: "),
        ("agentcell_worker.session.run_agent_session", ""),
    ],
    ids=["prompt", "client", "session"],
)
async def test_what_is_raised_fails_the_flow(  # noqa: PLR0917 - pytest gives them by name
    case: Case,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    beginning: str,
    broken: Exception,
    words: str,
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise broken

    model = playing(case, project, monkeypatch)
    monkeypatch.setattr(place, breaks)
    assert await call(case, project, None) == case.failure(beginning.format(case.agent_type) + words)
    assert (model.asked, model.is_left()) == ([], True)


@each_flow
async def test_a_prompt_that_does_not_fit_its_fields_fails_the_flow(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing(case, project, monkeypatch)
    monkeypatch.setattr(prompts, "load", lambda _: "You work in $somewhere.")
    product = await call(case, project, None)
    expected = f"Failed to load {case.agent_type} prompt: there is no value for somewhere"
    assert product == case.failure(expected)


@each_flow
async def test_a_client_that_does_not_come_up_fails_the_flow(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        async def __aenter__(self) -> None:
            raise CannotStart(session_error(Category.CLI_NOT_FOUND, "there is no CLI"))

        async def __aexit__(self, *_: object) -> None:
            raise AssertionError("it was never entered")

        options = None

    playing(case, project, monkeypatch)
    monkeypatch.setattr(client, "create_client", lambda **_: Refusing())
    monkeypatch.setattr("agentcell_worker.agents.exchange.session_id_of", lambda _: "s-9")
    result, flow, _ = await serve(case, project)
    assert flow == {**case.failure("there is no CLI"), "session_ids": ["s-9"]}
    assert result.error is not None
    assert (result.error.category, result.session_id) == (Category.CLI_NOT_FOUND, "s-9")


@each_flow
async def test_the_shape_of_a_failure_is_each_callers_own(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing(case, project, monkeypatch, answer("error", "no"))
    first = await call(case, project, None)
    for value in first.values():
        if isinstance(value, list):
            value.append("spoiled")
    if "validation" in first:
        first["validation"]["issues"].append("spoiled")
    assert await call(case, project, None) == case.failure("no")


@each_flow
async def test_a_cancellation_stays_one(case: Case, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = playing(case, project, monkeypatch)
    is_running = anyio.Event()

    async def hangs(**_: object) -> None:
        is_running.set()
        await anyio.sleep_forever()

    monkeypatch.setattr("agentcell_worker.session.run_agent_session", hangs)
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, case, project, None)
            await is_running.wait()
            tasks.cancel_scope.cancel()
    assert tasks.cancel_scope.cancelled_caught
    assert (model.clients[0].entered, model.is_left()) == (1, True)


@each_flow
async def test_a_worker_puts_the_product_into_its_result(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing(case, project, monkeypatch, answer("continue", "All is done.", stop_reason="end_turn"))
    result, flow, events = await serve(case, project)
    assert flow == {**case.product, "session_ids": ["s-1"]}
    assert result == SessionResult(
        status="continue",
        response="All is done.",
        session_name="s",
        id="s",
        agent_type=case.agent_type,
        session_id="s-1",
        model="m-1",
        usage=Usage(**USAGE),
        cost_usd=0.25,
        num_turns=2,
        stop_reason="end_turn",
        tool_calls=3,
        execution_time=result.execution_time,
        working_time=result.working_time,
        warnings=list(case.warnings),
        flow=flow,
    )
    assert [event["type"] for event in events].count("outcome") == 1
    assert events[-1] == {"type": "outcome", "result": result.to_message(hosted=False)}
    checks = [(event["name"], event["state"]) for event in events if event["type"] == "check"]
    assert checks == [(name, state) for name in case.checks for state in ("started", "ended")]


@each_flow
async def test_a_failed_session_gives_the_result_its_category(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = session_error(Category.RATE_LIMIT, "the API refused: too many requests", partial_response="half")
    playing(case, project, monkeypatch, answer("error", error.message, error=error))
    result, flow, events = await serve(case, project)
    assert flow == {**case.failure(error.message), "session_ids": ["s-1"]}
    assert (result.status, result.response, result.error) == ("error", error.message, error)
    assert (result.usage, result.cost_usd) == (Usage(**USAGE), 0.25)
    assert [event["type"] for event in events][-1] == "outcome"


@each_flow
async def test_what_is_raised_gives_the_result_of_a_mistake(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing(case, project, monkeypatch)

    def breaks(**_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(client, "create_client", breaks)
    result, flow, _ = await serve(case, project, session_id=SESSION_ID)
    text = "Failed to create Claude SDK client: odd"
    assert flow == {**case.failure(text), "session_ids": []}
    assert result.error is not None
    assert (result.error.category, result.error.message) == (Category.INTERNAL, text)
    assert (result.session_id, result.usage, result.cost_usd) == (SESSION_ID, Usage(), None)


@each_flow
async def test_a_request_decides_about_the_session(
    case: Case, project: Path, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = playing(case, project, monkeypatch)
    members = {"session_id": SESSION_ID, "spec_dir": str(spec), "model": "m-2", "max_thinking_tokens": 7}
    await serve(case, project, phase="planning", permission_mode="plan", **members)
    assert model.opened[0][1] == {
        "project_dir": str(project),
        "spec_dir": str(spec),
        "model": "m-2",
        "agent_type": case.agent_type,
        "max_thinking_tokens": 7,
        "session_id": SESSION_ID,
        "permission_mode": "plan",
        "drain_seconds": 1.0,
    }
    assert model.asked[0]["phase"] == "planning"


@each_flow
async def test_a_request_puts_a_role_prompt_in_place_and_a_wish_behind(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = playing(case, project, monkeypatch)
    await serve(case, project, system_prompt="Be $brief.", starting_message="Only the core.")
    (message,) = model.messages
    assert message.startswith("Be $brief.\n\n")
    assert message.endswith("\n\nOnly the core.")
    assert case.carried in message


@each_flow
async def test_what_json_has_no_form_for_is_carried_nevertheless(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = playing(case, project, monkeypatch)
    name, *_ = case.context
    odd = {"b": float("nan"), "a": "\ud800 ``` \n$x", "path": project}
    with anyio.fail_after(SECONDS):
        product = await case.function(project, None, **{**case.context, name: odd})
    assert product["success"]
    assert f'```json\n{{"b":null,"a":"\ufffd ``` \\n$x","path":"{project}"}}\n```' in model.messages[0]
