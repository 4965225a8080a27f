"""Whole workers: what a model or a CLI may write, however odd, comes out as strict JSON, and nothing of it is lost."""

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.worker.script import (
    ENDING,
    OPENING,
    WORKER_SECONDS,
    Step,
    fake_cli,
    request,
    result,
    said,
    scripted,
    start_worker,
    text,
    tool,
)

from agentcell_protocol.codec import CUT

pytestmark = pytest.mark.slow

TEXT = "fox 🦊, separators \u2028\u2029\x85, NUL \0, lone \ud83d."

ARRIVED = TEXT.replace("\ud83d", "\ufffd")


def answered(folder: Path, steps: list[Step], **variables: str) -> list[dict[str, Any]]:
    """The lines of a worker whose CLI takes these steps, each read strictly."""
    asked = request(folder, cli_path=fake_cli(folder), env=scripted(steps), events="full", session_name="🦊")
    with start_worker(folder, **variables) as worker:
        out, _ = worker.communicate(json.dumps(asked, ensure_ascii=False).encode() + b"\n", timeout=WORKER_SECONDS)
    assert worker.returncode == 0
    return [json.loads(line, parse_constant=refuse) for line in out.decode("utf-8").removesuffix("\n").split("\n")]


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def deep(levels: int) -> Step:
    """A call of a tool whose input is nested that deep; as text, because a script is not."""
    line = json.dumps(said(tool("Write", "t1", deep="DEEP"), message_id="msg_0")["say"])
    return {"raw": line.replace('"DEEP"', "[" * levels + "1" + "]" * levels) + "\n"}


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_odd_text_is_kept_under_any_locale(tmp_path: Path, locale: str) -> None:
    steps = [*OPENING, said(text(TEXT)), result(TEXT, total_cost_usd=float("nan")), *ENDING]
    *events, ended = answered(tmp_path, steps, LC_ALL=locale, PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert [event["text"] for event in events if event["type"] == "text"] == [ARRIVED]
    assert (ended["status"], ended["response"], ended["session_name"]) == ("complete", ARRIVED, "🦊")
    assert ended["cost_usd"] is None


@pytest.mark.parametrize(("levels", "is_cut"), [(240, False), (255, True), (1_000, True)])
def test_a_deeply_nested_input_is_cut_where_it_must_be(tmp_path: Path, levels: int, is_cut: bool) -> None:
    *events, ended = answered(tmp_path, [*OPENING, deep(levels), said(text("done")), result("done"), *ENDING])
    (called,) = [event for event in events if event["type"] == "tool_use"]
    assert (ended["status"], ended["response"], ended["tool_calls"]) == ("complete", "done", 1)
    assert (CUT in json.dumps(called, ensure_ascii=False)) == is_cut
    assert ("nesting_cut" in [event.get("code") for event in events]) == is_cut
