"""Many runs through one pipe: each has one result, whatever is sent and whenever it ends."""

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from tests.host.command_line import gate
from tests.host.serve.client import HANG, Client, ends, serving
from tests.host.stand_ins import forked_stand_ins

from agentcell import outlet
from agentcell.inlet import hear
from agentcell.orders import Order
from agentcell.run import attempt
from agentcell.serve import runs
from agentcell.serve.serving import Serving
from agentcell_protocol.schema import committed

pytestmark = pytest.mark.anyio

OUTPUT = Draft202012Validator(json.loads(committed("serve-output")))


@pytest.fixture(scope="module", autouse=True)
def _forked_stand_ins() -> Iterator[None]:
    with forked_stand_ins():
        yield


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path) as client:
        yield client


def refused(member: str | None, reason: str, hint: str, **names: str) -> dict[str, Any]:
    """As told, without what is the same in all of them."""
    return {"type": "refused", **names, "member": member, "reason": reason, "hint": hint}


def told(message: dict[str, Any]) -> dict[str, Any]:
    OUTPUT.validate(message)
    error = message["error"]
    details = error["details"]
    names = {key: message[key] for key in ("type", "id") if key in message}
    assert error["category"] == "bad_request"
    beginning = f"{details['member']}: " if details["member"] else ""  # otherwise it is about the line, and says so
    assert error["message"] == f"{beginning}{details['reason']}; {error['hint']}"
    assert beginning or details["reason"].startswith(("the line is ", "a line is "))
    return {**names, **details, "hint": error["hint"]}


async def test_the_first_line_says_who_is_there(client: Client) -> None:
    hello = await client.next()
    OUTPUT.validate(hello)
    assert list(hello) == ["type", "protocol", "pid", "agentcell", "sdk", "cli", "max_sessions", "capabilities"]
    assert (hello["type"], hello["protocol"], hello["max_sessions"]) == ("hello", 1, 2)
    assert hello["capabilities"] == ["run", "cancel", "shutdown"]


async def test_a_run_has_its_events_and_its_result_under_the_id_of_its_line(client: Client) -> None:
    await client.run("r1", {"text": "one"}, {"tool": {"name": "Read", "input": {}}}, events="summary")
    _, *events, result = await client.all_until("result")
    for line in (*events, result):
        OUTPUT.validate(line)
    kinds = ["hello", "session_started", "text", "tool_use", "tool_result", "outcome"]
    assert [event["type"] for event in events] == kinds
    assert {(list(event)[1], event["id"]) for event in events} == {("id", "r1")}
    assert [event["tool_use_id"] for event in events[3:5]] == ["toolu_1", "toolu_1"]
    assert list(result)[:6] == ["status", "response", "session_name", "type", "protocol", "id"]
    assert (result["status"], result["response"], result["id"], result["start"]) == ("complete", "one", "r1", "fork")


async def test_without_events_a_run_is_one_line(client: Client) -> None:
    await client.run("r1", {"text": "one"})
    await client.run("r2", {"text": "two"}, id="r2")
    await client.send({"type": "shutdown"})
    _, *results = await client.rest()
    assert sorted((result["id"], result["response"]) for result in results) == [("r1", "one"), ("r2", "two")]


@pytest.mark.parametrize("named", [None, "r2"])
async def test_what_a_worker_calls_its_session_does_not_change_whose_result_it_is(
    client: Client, named: str | None
) -> None:
    await client.run("r1", {"result": {"id": named}})
    assert (await client.until("result"))["id"] == "r1"


async def test_limits_beside_the_request_are_kept(client: Client) -> None:
    line = {"type": "run", "id": "r1", "request": client.request(HANG), "limits": {"max_execution_seconds": 0.2}}
    await client.send(line)
    result = await client.until("result")
    assert (result["error"]["category"], result["violated_limits"]) == ("timeout", ["max_execution_seconds"])


async def test_no_more_run_at_a_time_than_was_said(tmp_path: Path) -> None:
    async with serving(tmp_path, 1) as client:
        await client.run("r1", HANG, events="summary")
        await client.until("session_started", "r1")
        await client.run("r2", {"text": "two"}, events="summary")
        await client.send({"type": "cancel", "id": "none"})
        assert (await client.next())["code"] == "unknown_run"
        await client.send({"type": "cancel", "id": "r1"})
        seen = await client.all_until("result", "r2")
        assert [line["type"] for line in seen if line["id"] == "r1"] == ["outcome", "result"]
        assert [line["id"] for line in seen].index("r2") > 1


async def test_a_run_that_is_cancelled_has_its_result(client: Client) -> None:
    await client.run("r1", {"text": "half"}, HANG, events="summary")
    await client.until("text")
    await client.send({"type": "cancel", "id": "r1"})
    result = await client.until("result")
    error = result["error"]
    assert (error["category"], error["message"]) == ("cancelled", "the session was cancelled, as was asked")
    assert (error["partial_response"], error["details"]) == ("half", {"signal": None, "by": "cancel"})


async def test_a_queued_run_that_is_cancelled_has_its_result_at_once_and_costs_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, 1) as client:
        await client.run("r1", HANG, events="summary")
        await client.until("session_started", "r1")
        await client.run("r2", {"text": "two"}, events="full", result_file=str(tmp_path / "r2.json"))
        await client.send({"type": "cancel", "id": "r2"})
        result = await client.next()
        OUTPUT.validate(result)
        assert (result["id"], result["error"]["category"], result["cost_usd"]) == ("r2", "cancelled", 0.0)
        assert json.loads((tmp_path / "r2.json").read_bytes()) == result
        await client.run("r2", {"text": "again"})
        await client.send({"type": "cancel", "id": "r1"}, {"type": "shutdown"})
        assert ends(await client.rest()) == {"r1": "cancelled", "r2": "complete"}


async def test_a_run_that_minds_nothing_is_killed_when_it_is_cancelled_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcell.reap.GRACE_SECONDS", 3600)
    await client.run("r1", {"ignore": ["SIGTERM"]}, {"text": "deaf"}, HANG, events="summary")
    await client.until("text")
    await client.send({"type": "cancel", "id": "r1"}, {"type": "cancel", "id": "r1"})
    result = await client.until("result")
    assert (result["error"]["category"], result["signal"]) == ("cancelled", "SIGKILL")


async def test_a_shutdown_takes_no_more_runs_and_lets_all_finish(tmp_path: Path) -> None:
    async with serving(tmp_path, 1) as client:
        await client.run("r1", {"text": "one"}, {"wait": 0.2})
        await client.run("r2", {"text": "two"})
        await client.send({"type": "shutdown"})
        await client.run("r3", {"text": "three"})
        client.end()
        _, refusal, *results = await client.rest()
        reason, hint = "no run is begun after a shutdown", "start another agentcell serve for it"
        assert told(refusal) == refused("type", reason, hint, id="r3")
        assert ends(results) == {"r1": "complete", "r2": "complete"}
    assert client.code == 0


async def test_when_stdin_ends_all_runs_are_cancelled_and_told(tmp_path: Path) -> None:
    async with serving(tmp_path, 1) as client:
        await client.run("r1", HANG, events="summary")
        await client.until("session_started")
        await client.run("r2", HANG)
        await client.send(b'{"type":"run","id":"r3","request":' + json.dumps(client.request()).encode() + b"}")
        client.end()
        lines = await client.rest()
        assert ends(lines) == {"r1": "cancelled", "r2": "cancelled", "r3": "cancelled"}
        errors = [line["error"] for line in lines if line["type"] == "result"]
        assert {error["message"] for error in errors} == {"the session was cancelled: stdin has ended"}
        hint = 'keep stdin open until the results are there, or send {"type":"shutdown"} before it ends'
        assert {error["hint"] for error in errors} == {hint}
    assert client.code == 0


async def test_the_first_reason_for_an_end_is_the_one_that_is_told(client: Client) -> None:
    await client.run("r1", {"text": "half"}, HANG, events="summary")
    await client.until("text")
    await client.send({"type": "cancel", "id": "r1"})
    client.end()
    result = (await client.rest())[-1]
    assert (result["error"]["message"], result["signal"]) == ("the session was cancelled, as was asked", None)


async def test_an_id_is_refused_while_its_run_lives_and_free_afterwards(client: Client) -> None:
    await client.run("r1", HANG, events="summary")
    await client.until("session_started")
    await client.run("r1", {"text": "second"})
    reason, hint = '"r1" is the id of a run that has no result yet', "give each run an id of its own"
    assert told(await client.until("refused")) == refused("id", reason, hint, id="r1")
    await client.send({"type": "cancel", "id": "r1"})
    assert (await client.until("result"))["status"] == "error"
    await client.run("r1", {"text": "third"})
    assert (await client.until("result"))["response"] == "third"


async def test_more_than_so_many_cannot_wait(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MAX_WAITING", 3)
    await client.run("r0", HANG, events="summary")
    await client.run("r1", HANG, events="summary")
    await client.until("session_started")
    await client.until("session_started")
    for number in range(2, 6):
        await client.run(f"r{number}")
    refusal = await client.until("refused")
    assert (refusal["id"], refusal["error"]["hint"]) == ("r5", "send it when there are results")
    client.end()
    assert ends(await client.rest()) == {f"r{number}": "cancelled" for number in range(5)}


async def test_what_waits_has_only_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcell.serve.runs.MAX_WAITING_BYTES", 10_000)
    async with serving(tmp_path, 1) as client:
        await client.run("r0", HANG, events="summary")
        await client.until("session_started")
        for number in range(1, 4):
            await client.run(f"r{number}", starting_message="x" * 4_500)
        refusal = told(await client.until("refused"))
        assert refusal["member"] == "type"
        assert refusal["reason"].startswith("with this line those of the runs that wait would have more than ")
        assert refusal["hint"] == "send it when there are results, or put large inputs into files"
        await client.send({"type": "cancel", "id": "r1"})
        assert (await client.until("result"))["id"] == "r1"
        await client.run("r3", starting_message="x" * 4_500)
        await client.run("r4", starting_message="x" * 4_500)
        assert (await client.until("refused"))["id"] == "r4"
        client.end()
        assert ends(await client.rest()) == dict.fromkeys(("r0", "r2", "r3"), "cancelled")


ONE_LINE = "send one JSON object on one line"
NO_BREAKS = "write the whole object on one line, without line breaks"
NAMES = "give printable characters without '/', and not '.' or '..'"
MEMBERS = "send one JSON object with the request's members"
RUN = '{"type":"run","id":"r1","request":{…}}'
INSIDE = f"put it into the request: {RUN}"


@pytest.mark.parametrize(
    ("line", "member", "hint", "names"),
    [
        (b"hello\n", None, ONE_LINE, {}),
        (b"[1]\n", None, ONE_LINE, {}),
        (b"{\n", None, NO_BREAKS, {}),
        (b'{"type":"run","id":"x","request"\n', None, NO_BREAKS, {}),
        (b'{"type":"cancel","id":"x"\n', None, NO_BREAKS, {}),
        (b"{}\n", "type", f"say what the line is, such as {RUN}", {}),
        (b'{"type":7,"id":7}\n', "type", "give run, cancel or shutdown", {}),
        (b'{"type":"cancle","id":"x"}\n', "type", "did you mean cancel?", {"id": "x"}),
        (b'{"type":"cancel"}\n', "id", "add it: every cancel line has one", {}),
        (b'{"type":"cancel","id":7}\n', "id", "give a string", {}),
        (b'{"type":"cancel","id":"a/b"}\n', "id", NAMES, {"id": "a/b"}),
        (b'{"type":"shutdown","now":true}\n', "now", "leave it out; the members are type", {}),
        (b'{"type":"run","id":"x"}\n', "request", "add it: every run line has one", {"id": "x"}),
        (b'{"type":"run","id":"x","request":[]}\n', "request", MEMBERS, {"id": "x"}),
        (b'{"type":"run","id":"x","session_name":"a"}\n', "session_name", INSIDE, {"id": "x"}),
        (b'{"type":"run","id":"x","request":{},"limit":{}}\n', "limit", "did you mean limits?", {"id": "x"}),
    ],
)  # fmt: skip
async def test_what_is_no_line_is_refused_and_stops_nothing(
    client: Client, line: bytes, member: str | None, hint: str, names: dict[str, str]
) -> None:
    await client.send(line)
    await client.run("r1", {"text": "one"})
    refusal = told(await client.until("refused"))
    assert refusal == refused(member, refusal["reason"], hint, **names)
    assert (await client.until("result", "r1"))["status"] == "complete"


async def test_a_line_in_the_middle_of_which_stdin_ends_is_told_so(client: Client) -> None:
    await client.send(b'{"type":"run","id":"r1","requ')
    client.end()
    hint = "write the whole object and a line feed before you close stdin"
    assert [told(line) for line in await client.rest() if line["type"] == "refused"] == [
        refused(None, "the line is cut: stdin ended in the middle of it", hint)
    ]


async def test_a_line_without_its_end_is_told_and_taken_when_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcell.serve.serving.hear", partial(hear, seconds=0.02))
    async with serving(tmp_path) as client:
        line = json.dumps({"type": "run", "id": "r1", "request": client.request({"text": "one"})}).encode()
        await client.send(line)
        warning = await client.until("warning")
        OUTPUT.validate(warning)
        message = "stdin has part of a line and no line end: end each line with a line feed, and flush"
        assert warning == {"type": "warning", "code": "unfinished_line", "message": message}
        await client.send(b"\n")
        assert (await client.next())["response"] == "one"


async def test_an_object_on_many_lines_is_told_that_it_goes_on_one(client: Client) -> None:
    line = {"type": "run", "id": "r1", "request": client.request()}
    await client.send(json.dumps(line, indent=2).encode() + b"\n", line)
    _, first, *others = await client.all_until("result")
    assert told(first)["hint"] == NO_BREAKS
    assert {other["type"] for other in others[:-1]} == {"refused"}


BESIDE = "limits travel beside the request, as a member of the line"


@pytest.mark.parametrize(
    ("members", "member", "hint"),
    [
        ({"message": "hi"}, "request.message", "did you mean starting_message?"),
        ({"starting_mesage": "hi"}, "request.starting_mesage", "did you mean starting_message?"),
        ({"max_turns": 0}, "request.max_turns", "give 1 or more"),
        ({"limits": {"max_memory_mb": 1}}, "request.limits", BESIDE),
        ({"timeout": 3}, "request.timeout", f"did you mean the limit max_execution_seconds? {BESIDE}"),
        ({"id": "other"}, "request.id", "leave it out, or give the line's"),
        ({"project_dir": "/no/such/directory"}, "request.project_dir", "name the directory the agent works in"),
    ],
)
async def test_a_wrong_request_is_refused_by_its_member(
    client: Client, members: dict[str, Any], member: str, hint: str
) -> None:
    await client.run("r1", **members)
    refusal = told(await client.until("refused"))
    assert refusal == refused(member, refusal["reason"], hint, id="r1")


@pytest.mark.parametrize(
    ("limits", "member"),
    [([], "limits"), ({"max_memory": 1}, "limits.max_memory"), ({"max_memory_mb": -1}, "limits.max_memory_mb")],
)
async def test_wrong_limits_are_refused_by_their_name(client: Client, limits: Any, member: str) -> None:
    await client.send({"type": "run", "id": "r1", "request": client.request(), "limits": limits})
    assert told(await client.until("refused"))["member"] == member


async def test_what_only_the_cell_can_find_wrong_is_the_result(client: Client) -> None:
    steps = {"fail": {"category": "bad_request", "message": "agent_type: is unknown", "member": "agent_type"}}
    await client.run("r1", steps)
    assert (await client.until("result"))["error"]["category"] == "bad_request"


@pytest.mark.slow
async def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_whole(client: Client) -> None:
    await client.send(b'{"type":"run","id":"' + b"x" * (32 * 1024 * 1024) + b'"}\n')
    await client.run("r1", {"text": "one"})
    refusal = told(await client.until("refused"))
    assert refusal["hint"] == "put large inputs into files and name them in the message"
    assert (await client.until("result"))["status"] == "complete"


TEXTS = 500
"""Of 4 kB each: several times what a pipe and the host have room for."""


async def test_events_are_thinned_for_a_reader_that_does_not_read_and_results_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "WAIT_SECONDS", 0.1)
    async with serving(tmp_path, 1) as client:
        with gate(tmp_path / "gate") as (opens, wait):
            for number in range(3):
                await client.run(f"r{number}", {"text": "x" * 4000, "times": TEXTS}, events="summary")
            await client.run("last", {"spawn": opens})
            await anyio.to_thread.run_sync(wait, abandon_on_cancel=True)
        await client.send({"type": "shutdown"})
        _, *lines = await client.rest()
    assert ends(lines) == dict.fromkeys(("r0", "r1", "r2", "last"), "complete")
    for number in range(3):
        own = [line for line in lines if line["id"] == f"r{number}"]
        kinds = [line["type"] for line in own]
        dropped = sum(line["dropped"] for line in own if line["type"] == "thinned")
        written = len(own) - kinds.count("thinned") - 1
        assert (dropped > 0, dropped + written, kinds[-1]) == (True, TEXTS + 3, "result")
    assert all(OUTPUT.is_valid(line) for line in lines)


async def test_a_reader_that_comes_back_in_time_misses_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, 1) as client:
        await client.run("r1", {"text": "x" * 4000, "times": TEXTS}, events="summary")
        await client.send({"type": "shutdown"})
        kinds = [line["type"] for line in await client.rest()]
    assert (kinds.count("text"), kinds.count("thinned"), kinds[-1]) == (TEXTS, 0, "result")


async def test_a_signal_cancels_all_runs_and_its_number_is_the_exit_code(tmp_path: Path) -> None:
    hosts: list[Serving] = []
    async with serving(tmp_path, 1, prepare=hosts.append) as client:
        await client.run("r1", HANG, events="summary")
        await client.until("session_started")
        await client.run("r2", HANG)
        await client.send({"type": "cancel", "id": "r9"})
        await client.until("warning")
        hosts[0].ending.cancel("SIGHUP")
        lines = await client.rest()
        assert ends(lines) == {"r1": "cancelled", "r2": "cancelled"}
        assert {line["error"]["details"]["signal"] for line in lines if line["type"] == "result"} == {"SIGHUP"}
    assert client.code == 129


async def test_a_second_signal_kills_what_minds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcell.reap.GRACE_SECONDS", 3600)
    hosts: list[Serving] = []
    async with serving(tmp_path, 1, prepare=hosts.append) as client:
        await client.run("r1", {"ignore": ["SIGTERM"]}, {"text": "deaf"}, HANG, events="summary")
        await client.until("text")
        for name in ("SIGINT", "SIGTERM"):
            hosts[0].ending.cancel(name)
        result = (await client.rest())[-1]
        assert (result["error"]["details"]["signal"], result["signal"]) == ("SIGINT", "SIGKILL")
    assert client.code == 130


async def test_after_a_signal_nothing_more_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcell.reap.GRACE_SECONDS", 3600)
    hosts: list[Serving] = []
    async with serving(tmp_path, 1, prepare=hosts.append) as client:
        await client.run("r1", {"ignore": ["SIGTERM"]}, {"text": "deaf"}, HANG, events="summary")
        await client.run("r2")
        await client.until("text")
        hosts[0].ending.cancel("SIGTERM")
        await client.send(b"1\n")
        await client.until("result", "r2")
        await client.send(b"1\n", {"type": "cancel", "id": "r9"})
        hosts[0].ending.cancel("SIGTERM")
        assert {line["type"] for line in await client.rest()} == {"result"}
    assert client.code == 143


async def test_after_a_signal_the_last_lines_are_waited_for_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr("agentcell.serve.ending.LAST_LINES_SECONDS", 0.1)
    hosts: list[Serving] = []
    async with serving(tmp_path, 1, prepare=hosts.append) as client:
        with gate(tmp_path / "gate") as (opens, wait):
            await client.run("r1", {"text": "x" * 4000, "times": TEXTS}, {"spawn": opens}, HANG, events="summary")
            await anyio.to_thread.run_sync(wait, abandon_on_cancel=True)
            hosts[0].ending.cancel("SIGTERM")
            await client.ended.wait()
        assert (client.code, hosts[0].given_up) == (143, ["r1"])


async def test_without_a_signal_the_last_lines_are_waited_for_as_long_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr("agentcell.serve.ending.LAST_LINES_SECONDS", 0.01)
    hosts: list[Serving] = []
    async with serving(tmp_path, 1, prepare=hosts.append) as client:
        with gate(tmp_path / "gate") as (opens, wait):
            await client.run("r1", {"text": "x" * 4000, "times": TEXTS}, {"spawn": opens}, events="summary")
            await client.send({"type": "shutdown"})
            await anyio.to_thread.run_sync(wait, abandon_on_cancel=True)
        with anyio.move_on_after(0.2):
            await client.ended.wait()
        assert client.code is None
        assert ends(await client.rest()) == {"r1": "complete"}
    assert client.code == 0
    assert not hosts[0].given_up


async def test_when_nobody_reads_any_more_everything_is_cancelled(tmp_path: Path) -> None:
    hosts: list[Serving] = []
    async with serving(tmp_path, 1, prepare=hosts.append) as client:
        await client.run("r1", {"text": "half"}, HANG, events="summary", result_file=str(tmp_path / "r1.json"))
        await client.until("text")
        client.leave()
        await client.ended.wait()
    assert (client.code, hosts[0].failure) == (1, "Broken pipe")
    assert json.loads((tmp_path / "r1.json").read_bytes())["error"]["category"] == "host_lost"


Raised = list[ExceptionGroup[Exception]]


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> Raised:
    """What hosts have raised; their exit code is 1 then, as a traceback's."""
    groups: Raised = []
    run = Serving.run

    async def watch(host: Serving) -> int:
        try:
            return await run(host)
        except ExceptionGroup as group:
            groups.append(group)
            return 1

    monkeypatch.setattr(Serving, "run", watch)
    return groups


def make_mistakes(monkeypatch: pytest.MonkeyPatch, *, besides: str = "") -> None:
    """In all runs but one."""

    async def mistaken(order: Order, *rest: Any) -> Any:
        if order.request.id != besides:
            raise LookupError("gone")
        return await attempt(order, *rest)

    monkeypatch.setattr("agentcell.executors.local.attempt", mistaken)


async def test_a_mistake_of_ours_is_the_result_of_all_that_have_none_before_it_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Raised
) -> None:
    make_mistakes(monkeypatch)
    async with serving(tmp_path, 1) as client:
        line = {"type": "run", "request": client.request()}
        await client.send(b"".join(json.dumps({**line, "id": name}).encode() + b"\n" for name in ("r1", "r2")))
        _, *results = await client.rest()
    assert all(OUTPUT.is_valid(result) for result in results)
    assert ends(results) == {"r1": "internal", "r2": "internal"}
    assert {result["error"]["message"] for result in results} == {"LookupError: gone"}
    assert [repr(one) for group in raised for one in group.exceptions] == ["LookupError('gone')"]


async def test_after_a_mistake_of_ours_what_waits_is_answered_while_others_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Raised
) -> None:
    make_mistakes(monkeypatch, besides="r1")
    async with serving(tmp_path, 2) as client:
        await client.run("r1", HANG, events="summary")
        await client.until("session_started", "r1")
        line = {"type": "run", "request": client.request(result_file=str(tmp_path / "last.json"))}
        await client.send(b"".join(json.dumps({**line, "id": name}).encode() + b"\n" for name in ("r2", "r3", "r4")))
        answered = [await client.until("result") for _ in range(3)]
        assert ends(answered) == dict.fromkeys(("r2", "r3", "r4"), "internal")
        assert [result["cost_usd"] for result in answered] == [None, 0.0, 0.0]
        assert json.loads((tmp_path / "last.json").read_bytes()) == answered[-1]
        await client.send({"type": "cancel", "id": "r1"})
        assert ends(await client.rest()) == {"r1": "cancelled"}
        await client.ended.wait()
    assert (client.code, len(raised)) == (1, 1)
