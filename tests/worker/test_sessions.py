"""Sessions with a CLI that does as it is told: what comes of each ending."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import AssistantMessage, ProcessError, ResultMessage, TextBlock
from tests.worker.fakes import FakeClient
from tests.worker.script import ENDING, OPENING, SUCCESS, Step, fake_client, result, said, system, text, tool

from agentcell_protocol.errors import Category
from agentcell_worker import session
from agentcell_worker.client import AgentClient, closing_notices
from agentcell_worker.trace import Trace

pytestmark = pytest.mark.anyio

SECONDS = 30


class Ran:
    """What a session gave."""

    def __init__(self, client: AgentClient, returned: tuple[Any, ...], events: list[dict[str, Any]]) -> None:
        self.client = client
        self.status, self.response, self.usage, trace = returned
        assert isinstance(trace, Trace)
        self.trace = trace
        self.events = events

    @property
    def error(self) -> tuple[Category, str | None]:
        """The category and the partial response."""
        assert self.trace.error is not None
        return self.trace.error.category, self.trace.error.partial_response

    @property
    def warnings(self) -> list[str]:
        """Codes, those of the closing included."""
        return [notice.code for notice in [*self.trace.warnings, *closing_notices(self.client)]]


async def run(folder: Path, steps: list[Step], **options: Any) -> Ran:
    """One session, entered and left."""
    events: list[dict[str, Any]] = []
    client = fake_client(folder, steps, **options)
    with anyio.fail_after(SECONDS):
        async with client:
            returned = await session.run_agent_session(client, "hi", None, on_event=events.append)
    return Ran(client, returned, events)


async def test_an_answer_is_a_success(tmp_path: Path) -> None:
    ran = await run(tmp_path, SUCCESS, session_id="11111111-1111-4111-8111-111111111111")
    usage = {
        "input_tokens": 10,
        "output_tokens": 7,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    assert (ran.status, ran.response, ran.usage) == ("complete", "hello", usage)
    assert ran.trace == Trace(
        session_id="11111111-1111-4111-8111-111111111111",
        model="m-1",
        cost_usd=0.5,
        num_turns=1,
        stop_reason="end_turn",
    )
    assert [event["type"] for event in ran.events] == ["session_started", "text", "usage", "usage"]
    assert ran.warnings == []


async def test_an_answer_in_several_blocks_is_given_whole(tmp_path: Path) -> None:
    ran = await run(tmp_path, [*OPENING, said(text("one ")), said(text("two")), result("two"), *ENDING])
    assert ran.response == "one two"


async def test_the_text_before_a_tool_is_not_part_of_the_answer(tmp_path: Path) -> None:
    first = said(text("looking"), tool("Read", "t1", file_path="a"), message_id="msg_1")
    ran = await run(tmp_path, [*OPENING, first, said(text("done"), message_id="msg_2"), result("done"), *ENDING])
    assert (ran.response, ran.trace.tool_calls) == ("done", 1)


async def test_tools_without_a_last_word_are_a_success_with_a_warning(tmp_path: Path) -> None:
    ran = await run(tmp_path, [*OPENING, said(tool("Read", "t1")), result(""), *ENDING])
    assert (ran.status, ran.response, ran.warnings) == ("complete", "", ["no_text"])


async def test_nothing_at_all_is_an_empty_response(tmp_path: Path) -> None:
    ran = await run(tmp_path, [*OPENING, result(""), *ENDING])
    assert (ran.status, ran.error) == ("error", (Category.EMPTY_RESPONSE, None))


async def test_a_failed_api_call_is_told_in_our_words(tmp_path: Path) -> None:
    prose = said(text("API Error: 500 sorry"), model="<synthetic>", error="server_error")
    ended = result("API Error: 500 sorry", is_error=True, terminal_reason="api_error", api_error_status=500)
    ran = await run(tmp_path, [*OPENING, prose, ended, {"await": "eof"}, {"exit": 1}])
    assert (ran.response, ran.error) == ("the API failed (HTTP 500)", (Category.SERVER_ERROR, None))
    assert ran.trace.error is not None
    assert ran.trace.error.http_status == 500
    assert "text" not in [event["type"] for event in ran.events]


async def test_credentials_that_are_refused_end_the_session_at_once(tmp_path: Path) -> None:
    retry = system("api_retry", attempt=1, max_retries=10, retry_delay_ms=60_000, error_status=401, error="x")
    ran = await run(tmp_path, [*OPENING, retry, {"hang": True}])
    assert (ran.error, ran.trace.must_end_now) == ((Category.AUTHENTICATION, None), True)
    assert ran.client.exit_code == -15


async def test_an_end_without_a_result_keeps_the_text_so_far(tmp_path: Path) -> None:
    ran = await run(tmp_path, [*OPENING, said(text("half")), {"exit": 0}])
    assert ran.error == (Category.NO_RESULT, "half")


@pytest.mark.parametrize(
    ("end", "exit_code", "words"),
    [
        ({"exit": 3}, 3, "the CLI exited with code 3: last words"),
        ({"signal": "SIGSEGV"}, -11, "the CLI was ended by SIGSEGV: last words"),
    ],
)
async def test_a_cli_that_dies_is_named_with_its_last_words(
    tmp_path: Path, end: Step, exit_code: int, words: str
) -> None:
    ran = await run(tmp_path, [*OPENING, said(text("half")), {"stderr": "last words\n"}, end])
    assert (ran.response, ran.error) == (words, (Category.CLI_FAILED, "half"))
    assert ran.trace.error is not None
    assert ran.trace.error.details == {"exit_code": exit_code, "stderr_tail": "last words"}


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ([{"await": "eof"}, {"exit": 1}], "cli_exit"),
        ([{"exit": 1}], "cli_exit"),
        ([result("no", is_error=True, subtype="error_during_execution"), *ENDING], "late_failure"),
        ([{"raw": "{half\n"}, *ENDING], "cli_output"),
    ],
)
async def test_an_odd_ending_does_not_undo_a_success(tmp_path: Path, after: list[Step], code: str) -> None:
    ran = await run(tmp_path, [*OPENING, said(text("hello")), result(), *after])
    assert (ran.status, ran.response, ran.warnings) == ("complete", "hello", [code])


@pytest.mark.slow
async def test_a_cli_that_will_not_end_is_ended(tmp_path: Path) -> None:
    steps = [{"ignore": "SIGTERM"}, *OPENING, said(text("hello")), result(), {"hang": True}]
    ran = await run(tmp_path, steps)
    assert (ran.status, ran.warnings, ran.client.exit_code) == ("complete", ["cli_hung"], -9)


@pytest.mark.parametrize(
    "broken",
    [
        {"raw": '{"type": "assistant", "mess\n'},
        {"raw": "\ufeff" + '{"type": "system", "subtype": "status"}\n'},
        {"raw": "{" + '"a": {' * 15_000 + "\n"},
        {"say": {"type": "control_response", "response": "odd"}},
        {"say": {"type": "rate_limit_event", "rate_limit_info": "odd", "uuid": "u", "session_id": "s"}},
    ],
    ids=["half a line", "a byte order mark", "a nesting without end", "an answer that is no object", "an odd member"],
)
async def test_broken_lines_are_named(tmp_path: Path, broken: Step) -> None:
    ran = await run(tmp_path, [*OPENING, said(text("half")), broken, {"await": "eof"}, {"hang": True}])
    assert ran.error == (Category.PROTOCOL, "half")
    assert ran.response.startswith("the CLI wrote what is no message: ")


async def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    noise: list[Step] = [{"stderr_hex": "ff0a"}, {"stderr": "x" * 100_000 + "\n"}, {"stderr_hex": "61ff0a"}]
    broken = {"hex": b'{"type": "note", "text": "\xff"}\n'.hex()}
    ran = await run(tmp_path, [*OPENING, *noise, broken, said(text("hello")), result(), *ENDING])
    assert (ran.status, ran.response) == ("complete", "hello")
    assert ran.client.tail.text().endswith("a\ufffd")


async def test_a_cli_too_old_for_verbatim_prompts_is_warned_of(tmp_path: Path) -> None:
    old = system("init", model="m-1", claude_code_version="2.1.0")
    steps: list[Step] = [{"await": "initialize"}, {"await": "prompt"}, old, said(text("hello")), result(), *ENDING]
    ran = await run(tmp_path, steps)
    assert (ran.status, ran.warnings) == ("complete", ["sdk_warning"])


async def test_a_server_that_did_not_start_is_warned_of_once(tmp_path: Path) -> None:
    init = system("init", model="m-1", mcp_servers=[{"name": "tickets", "status": "failed"}])
    ran = await run(tmp_path, [*OPENING, init, init, said(text("hello")), result(), *ENDING])
    assert (ran.status, ran.warnings) == ("complete", ["mcp_server"])


async def test_a_result_that_lacks_members_is_a_named_failure(tmp_path: Path) -> None:
    ran = await run(
        tmp_path, [*OPENING, said(text("half")), {"say": {"type": "result", "subtype": "success"}}, *ENDING]
    )
    assert ran.error == (Category.PROTOCOL, "half")
    assert "duration_ms" in ran.response


async def test_a_result_with_a_member_of_another_type_is_a_named_failure(tmp_path: Path) -> None:
    ran = await run(tmp_path, [*OPENING, said(text("half")), result(deferred_tool_use="odd"), *ENDING])
    assert ran.error == (Category.PROTOCOL, "half")


async def test_messages_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    unknown: list[Step] = [
        {"say": {"type": "new_kind", "a": 1}},
        system("new_subtype"),
        {"say": {"type": "assistant", "message": {"content": "not a list"}}},
        {"raw": "[SandboxDebug] plain text\n\n"},
    ]
    ran = await run(tmp_path, [*OPENING, *unknown, said(text("hello")), result(), *ENDING])
    assert (ran.status, ran.response, ran.warnings) == ("complete", "hello", ["unreadable_message"])


async def test_background_work_is_waited_for_with_the_turn_it_causes(tmp_path: Path) -> None:
    started = system("task_started", task_id="b1", description="tests", task_type="local_bash")
    updated = system("task_updated", task_id="b1", patch={"status": "completed"})
    told = system("task_notification", task_id="b1", status="completed", output_file="f", summary="done")
    after = [said(text("they passed"), message_id="msg_2"), result("they passed", user_message_uuid=None)]
    first = [said(text("started")), result("started")]
    ran = await run(tmp_path, [*OPENING, started, *first, updated, told, *after, *ENDING])
    assert (ran.status, ran.response, ran.warnings) == ("complete", "started", [])
    assert (ran.usage["output_tokens"], ran.trace.num_turns) == (14, 2)


async def test_background_work_that_takes_too_long_is_reported(tmp_path: Path) -> None:
    started = system("task_started", task_id="b1", description="a long build", task_type="local_bash")
    steps = [*OPENING, started, said(text("started")), result("started"), {"hang": True}]
    ran = await run(tmp_path, steps, drain_seconds=0.05)
    assert (ran.status, ran.warnings, ran.trace.must_end_now) == ("complete", ["background_cut"], True)
    assert ran.trace.warnings[0].message == "background work was cut off: a long build"


async def test_a_turn_that_tells_no_usage_counts_what_its_messages_used(tmp_path: Path) -> None:
    spent = result(None, subtype="error_max_budget_usd", is_error=True, usage={"input_tokens": 0, "output_tokens": 0})
    ran = await run(tmp_path, [*OPENING, said(text("half")), spent, *ENDING], max_budget_usd=0.1)
    assert (ran.error, ran.usage["input_tokens"], ran.usage["output_tokens"]) == ((Category.MAX_BUDGET, "half"), 10, 1)


async def test_what_was_denied_is_listed(tmp_path: Path) -> None:
    denied = system("permission_denied", tool_name="Write", tool_use_id="t1")
    both = [{"tool_name": "Write", "tool_use_id": "t1"}, {"tool_name": "Bash", "tool_use_id": "t2"}]
    steps = [*OPENING, denied, said(text("no")), result("no", permission_denials=both), *ENDING]
    ran = await run(tmp_path, steps)
    assert [denial.model_dump() for denial in ran.trace.permission_denials] == both


async def test_a_million_characters_pass(tmp_path: Path) -> None:
    long = {"long": [3_000_000, said(text("$LONG"))["say"]]}
    ran = await run(tmp_path, [*OPENING, long, result(None), *ENDING])
    assert len(ran.response) == 3_000_000


async def test_a_message_over_the_limit_is_a_named_failure(tmp_path: Path) -> None:
    long = {"long": [40_000, said(text("$LONG"))["say"]]}
    steps = [*OPENING, said(text("half"), message_id="msg_0"), long, result(None), *ENDING]
    ran = await run(tmp_path, steps, max_buffer_size=20_000)
    assert ran.error == (Category.PROTOCOL, "half")


async def test_a_session_runs_on_any_client_of_the_sdk(capsys: pytest.CaptureFixture[str]) -> None:
    spoken = AssistantMessage(content=[TextBlock("hello")], model="m", message_id="1")
    ended = ResultMessage("success", 1, 1, is_error=False, num_turns=1, session_id="s", result="hello")
    client: Any = FakeClient([spoken, ended])
    with anyio.fail_after(SECONDS):
        async with client:
            status, response, usage, trace = await session.run_agent_session(
                client, "hi", None, True, "validation", subtask_id="7"
            )
    assert (status, response, sum(usage.values()), trace.num_turns) == ("complete", "hello", 0, 1)
    assert capsys.readouterr().err == "[validation 7] hello\n"


async def test_a_client_that_breaks_is_a_failed_session() -> None:
    client: Any = FakeClient([ProcessError("gone", exit_code=9)])
    with anyio.fail_after(SECONDS):
        status, response, *_ = await session.run_agent_session(client, "hi", None)
    assert (status, response) == ("error", "the CLI exited with code 9")
