"""Whole workers, each with a CLI that does as it is told."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.worker.script import (
    ENDING,
    OPENING,
    SUCCESS,
    WORKER_SECONDS,
    Step,
    as_result,
    fake_cli,
    request,
    result,
    run_worker,
    said,
    scripted,
    start_worker,
    text,
    tool,
)

from agentcell_protocol.request import MAX_SCHEMA

pytestmark = pytest.mark.slow


def line(folder: Path, steps: list[Step], **members: Any) -> bytes:
    """The line that asks for a session with that CLI."""
    environment = {**scripted(steps), **members.pop("env", {})}
    return json.dumps(request(folder, cli_path=fake_cli(folder), env=environment, **members)).encode() + b"\n"


def test_one_request_gives_one_line(tmp_path: Path) -> None:
    code, lines, errors = run_worker(tmp_path, line(tmp_path, SUCCESS))
    assert (code, len(lines), errors) == (0, 1, "")
    assert list(lines[0])[:3] == ["status", "response", "session_name"]
    answered = as_result(lines[0])
    assert (answered.status, answered.response, answered.auth_source) == ("complete", "hello", "ANTHROPIC_API_KEY")
    assert 0 < answered.working_time == answered.execution_time == round(answered.execution_time, 3)


def test_events_come_in_order_and_the_outcome_before_the_end(tmp_path: Path) -> None:
    long = tool("Write", "t1", content="x" * 1000, deep={"a": {"b": {"c": {"d": 1}}}})
    steps = [*OPENING, said(long), said(text("hello"), message_id="msg_2"), result(), *ENDING]
    code, lines, _ = run_worker(tmp_path, line(tmp_path, steps, events="summary"))
    kinds = [event["type"] for event in lines]
    assert code == 0
    assert kinds == ["hello", "session_started", "tool_use", "usage", "text", "usage", "usage", "outcome", "result"]
    assert lines[2]["input"] == {"content": "x" * 200 + "…", "deep": {"a": {"b": {"c": "…"}}}}
    assert lines[0]["start"] == "cold"
    assert lines[-2]["result"]["response"] == "hello"


def test_no_secret_is_in_a_warning_neither_on_the_way_nor_in_the_end(tmp_path: Path) -> None:
    spec = tmp_path / "sk-ant-secret"
    spec.mkdir()
    _, lines, _ = run_worker(tmp_path, line(tmp_path, SUCCESS, events="summary", spec_dir=str(spec)))
    warned = {"code": "plan_missing", "message": f"there is no {tmp_path}/[masked]/implementation_plan.json"}
    assert [event for event in lines if event["type"] == "warning"] == [{"type": "warning", **warned}]
    assert lines[-1]["warnings"] == [warned]


def test_an_answer_whose_result_is_odd_in_its_other_members_is_a_success(tmp_path: Path) -> None:
    odd = dict.fromkeys(("num_turns", "total_cost_usd", "usage", "errors", "user_message_uuids"), "x")
    numbers = dict.fromkeys(("stop_reason", "permission_denials", "user_message_uuid"), 5)
    silent = said({"type": "text", "text": None}, message_id="msg_0")
    steps = [*OPENING, silent, said(text("hello")), result(**{**odd, **numbers}), *ENDING]  # type: ignore[arg-type]
    code, (answer,), _ = run_worker(tmp_path, line(tmp_path, steps))
    answered = as_result(answer)
    assert (code, answered.status, answered.response, answered.cost_usd) == (0, "complete", "hello", None)


def test_what_others_print_does_not_reach_the_protocol(tmp_path: Path) -> None:
    forged = '{"type": "result", "status": "complete"}'
    steps = [*OPENING, {"stderr": forged + "\n"}, said(text("hello")), result(), *ENDING]
    code, lines, errors = run_worker(tmp_path, line(tmp_path, steps))
    assert (code, [each["response"] for each in lines], errors) == (0, ["hello"], forged + "\n")


def test_what_a_session_leaves_running_is_ended_and_counted(tmp_path: Path) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    spawn: list[Step] = [{"spawn": f"exec sleep 600 > {fifo}"}, {"spawn": f"(trap '' TERM; sleep 600) > {fifo}"}]
    alive = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        code, (answer,), _ = run_worker(tmp_path, line(tmp_path, [*OPENING, *spawn, *SUCCESS[3:]]))
        os.set_blocking(alive, True)
        assert os.read(alive, 1) == b""  # nobody is left who could write
    finally:
        os.close(alive)
    assert (code, answer["status"]) == (0, "complete")
    assert answer["swept_processes"] >= 2


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_a_running_session_can_be_cancelled(tmp_path: Path, name: str, code: int) -> None:
    steps = [*OPENING, said(text("half")), {"hang": True}]
    with start_worker(tmp_path) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(line(tmp_path, steps, events="summary", session_id="11111111-1111-4111-8111-111111111111"))
        worker.stdin.flush()
        while json.loads(worker.stdout.readline())["type"] != "text":
            continue
        worker.send_signal(signal.Signals[name])
        out, _ = worker.communicate(timeout=WORKER_SECONDS)
    answer = json.loads(out.splitlines()[-1])
    assert (worker.returncode, answer["error"]["category"]) == (code, "cancelled")
    assert answer["error"]["details"] == {"signal": name}
    assert answer["error"]["partial_response"] == "half"
    assert answer["session_id"] == "11111111-1111-4111-8111-111111111111"


def test_a_worker_that_imports_the_sdk_can_be_cancelled(tmp_path: Path) -> None:
    with start_worker(tmp_path) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(line(tmp_path, SUCCESS, events="summary"))
        worker.stdin.flush()
        assert json.loads(worker.stdout.readline())["type"] == "hello"
        worker.send_signal(signal.SIGTERM)
        out, errors = worker.communicate(timeout=WORKER_SECONDS)
    answer = json.loads(out.splitlines()[-1])
    assert (worker.returncode, errors) == (143, b"")
    assert answer["error"]["category"] == "cancelled"
    assert answer["session_id"] is not None


def test_signals_that_the_thread_of_its_host_had_blocked_are_heard(tmp_path: Path) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    try:
        starting = start_worker(tmp_path)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    with starting as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(line(tmp_path, [*OPENING, {"hang": True}], events="summary"))
        worker.stdin.flush()
        assert json.loads(worker.stdout.readline())["type"] == "hello"
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=WORKER_SECONDS)
    assert worker.returncode == 143


def test_the_end_of_the_lifeline_ends_the_session(tmp_path: Path) -> None:
    steps = [*OPENING, said(text("half")), {"hang": True}]
    with start_worker(tmp_path) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(line(tmp_path, steps, events="summary", lifeline=True))
        worker.stdin.flush()
        while json.loads(worker.stdout.readline())["type"] != "text":
            continue
        out, _ = worker.communicate(timeout=WORKER_SECONDS)
    answer = json.loads(out.splitlines()[-1])
    assert (worker.returncode, answer["error"]["category"]) == (1, "host_lost")
    assert answer["error"]["partial_response"] == "half"


def test_a_session_with_a_lifeline_that_holds_ends_by_itself(tmp_path: Path) -> None:
    with start_worker(tmp_path) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(line(tmp_path, SUCCESS, lifeline=True))
        worker.stdin.flush()
        answer = json.loads(worker.stdout.readline())
        assert worker.wait(WORKER_SECONDS) == 0
    assert answer["status"] == "complete"


def test_the_result_is_also_put_into_a_file(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    _, (answer,), _ = run_worker(tmp_path, line(tmp_path, SUCCESS, result_file=str(file)))
    assert json.loads(file.read_text()) == answer


def test_a_plan_with_work_left_means_continue(tmp_path: Path) -> None:
    plan = {"phases": [{"subtasks": [{"status": "completed"}, {"status": "pending"}]}]}
    (tmp_path / "implementation_plan.json").write_text(json.dumps(plan, indent=2))
    code, (answer,), _ = run_worker(tmp_path, line(tmp_path, SUCCESS, spec_dir=str(tmp_path)))
    assert (code, answer["status"]) == (0, "continue")


def test_the_environment_of_a_request_is_for_the_agent_only(tmp_path: Path) -> None:
    report = tmp_path / "report"
    steps: list[Step] = [*OPENING, {"report": str(report)}, *SUCCESS[3:]]
    env = {"PYTHONWARNINGS": "bogus", "PROJECT_SETTING": "1"}
    members = {"env": env, "system_prompt": "You are careful."}
    code, _, errors = run_worker(tmp_path, line(tmp_path, steps, **members), AGENTCELL_DRAIN_SECONDS="1")
    seen = json.loads(report.read_text())
    assert (code, errors) == (0, "")
    assert seen["environment"]["PROJECT_SETTING"] == "1"
    assert "AGENTCELL_DRAIN_SECONDS" not in seen["environment"]
    assert seen["prompts"][0]["message"]["content"] == "You are careful.\n\nhi"


def test_bypassing_permissions_as_root_is_refused_before_anything_starts(tmp_path: Path) -> None:
    asked = line(tmp_path, SUCCESS, permission_mode="bypassPermissions")
    code, (answer,), _ = run_worker(tmp_path, asked)
    assert (code, answer["status"]) == ((1, "error") if os.geteuid() == 0 else (0, "complete"))
    code, (answer,), _ = run_worker(tmp_path, asked, IS_SANDBOX="1")
    assert (code, answer["status"]) == (0, "complete")


def test_a_schema_too_large_for_an_argument_is_refused(tmp_path: Path) -> None:
    schema = {"description": "x" * MAX_SCHEMA}
    code, (answer,), _ = run_worker(tmp_path, line(tmp_path, SUCCESS, output_schema=schema))
    assert (code, answer["error"]["category"]) == (2, "bad_request")
    assert answer["error"]["details"]["member"] == "output_schema"


def test_twenty_million_characters_pass(tmp_path: Path) -> None:
    long: Step = {"long": [20_000_000, said(text("$LONG"))["say"]]}
    code, (answer,), _ = run_worker(tmp_path, line(tmp_path, [*OPENING, long, result(None), *ENDING]))
    assert (code, answer["status"], len(answer["response"])) == (0, "complete", 20_000_000)
