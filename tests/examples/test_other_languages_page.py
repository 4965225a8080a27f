"""What docs/other-languages.md shows and says is so."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.examples.clients import BOUND_SECONDS, STALLS, WORKS, User, at_work, interpreter, wait_for_tool
from tests.meta.pages import blocks, page
from tests.meta.source import ROOT

from agentcell.inlet import UNFINISHED_SECONDS
from agentcell.limits import Limits
from agentcell.offline import offline_model
from agentcell.serve.runs import MAX_WAITING
from agentcell_protocol.errors import RequestError
from agentcell_protocol.intake import WAIT_SECONDS, read_message
from agentcell_protocol.schema import committed
from agentcell_protocol.serving import parse_line

PAGE = page("docs/other-languages.md")

BLOCKS = blocks(PAGE)

LANGUAGES = {"sh": "shell", "javascript": "node", "perl": "perl"}
"""What the blocks that run are marked with."""

SUFFIXES = {"sh": "sh", "javascript": "mjs", "perl": "pl"}

WITH_WORKER = [(kind, block) for kind, block in BLOCKS if kind in LANGUAGES and "agentcell-worker" in block]
WITH_SERVE = [(kind, block) for kind, block in BLOCKS if kind in LANGUAGES and "agentcell serve" in block]

SENT, READ = [block.splitlines() for kind, block in BLOCKS if kind == "json"]

MAX_BLOCK_LINES = 10

each_ten_lines = pytest.mark.parametrize(("kind", "block"), WITH_WORKER, ids=[kind for kind, _ in WITH_WORKER])

REQUEST = {"session_name": "a", "agent_type": "coder", "project_dir": "."}


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    with offline_model({"turns": [{"text": "Hello."}]}) as endpoint:
        yield User.at(tmp_path, endpoint)


def program(user: User, kind: str, block: str) -> list[str]:
    """The command of a block, which is put into a file as it is."""
    file = user.home / f"block.{SUFFIXES[kind]}"
    file.write_text(block, "utf-8")
    return [interpreter(LANGUAGES[kind]), str(file)]


@pytest.mark.slow
@pytest.mark.e2e
@each_ten_lines
def test_ten_lines_are_enough_for_a_session(user: User, kind: str, block: str) -> None:
    ended = user.run(program(user, kind, block))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"complete\W.*Hello\.", ended.stdout)
    assert len([line for line in block.splitlines() if line]) <= MAX_BLOCK_LINES


@pytest.mark.slow
@pytest.mark.e2e
@each_ten_lines
def test_whoever_kills_them_ends_the_session(tmp_path: Path, kind: str, block: str) -> None:
    with offline_model({"turns": [WORKS, STALLS]}) as endpoint:
        user = User.at(tmp_path, endpoint)
        with at_work(user) as up, user.starting(program(user, kind, block)) as process:
            wait_for_tool(up)
            process.kill()
            process.wait(BOUND_SECONDS)
            user.nothing_runs()


@pytest.mark.slow
@pytest.mark.e2e
def test_runs_and_a_shutdown_can_be_piped_in(user: User) -> None:
    [(kind, block)] = WITH_SERVE
    ended = user.run(program(user, kind, block))
    assert (ended.returncode, ended.stderr) == (0, "")
    hello, *results = map(json.loads, ended.stdout.splitlines())
    assert (hello["type"], hello["max_sessions"]) == ("hello", 2)
    assert sorted((result["id"], result["response"]) for result in results) == [("r1", "Hello."), ("r2", "Hello.")]


def test_each_language_that_has_examples_has_ten_lines() -> None:
    assert {LANGUAGES[kind] for kind, _ in WITH_WORKER} == set(LANGUAGES.values())
    assert all("lifeline" in block for _, block in WITH_WORKER)


def test_every_block_says_what_it_is() -> None:
    assert PAGE.count("```") == 2 * len(BLOCKS)
    assert {kind for kind, _ in BLOCKS} == {*LANGUAGES, "json"}


@pytest.mark.parametrize("line", SENT)
def test_what_is_sent_is_understood(line: str) -> None:
    message = json.loads(line)
    assert parse_line(message).type == message["type"]
    Limits.from_mapping(message.get("limits"))
    validate("serve-input", message)


@pytest.mark.parametrize("line", READ)
def test_what_is_read_is_what_is_written(line: str) -> None:
    validate("serve-output", json.loads(line))


def validate(kind: Any, message: Any) -> None:
    Draft202012Validator(json.loads(committed(kind))).validate(message)


def test_every_file_it_points_at_exists() -> None:
    linked = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", PAGE)
    assert [path for path in linked if not (ROOT / "docs" / path).exists()] == []


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"up to {MAX_WAITING:,};" in PAGE
    assert f"a warning after {UNFINISHED_SECONDS:g} s" in PAGE
    assert f"no whole line came within {WAIT_SECONDS:g} s" in PAGE


def line(**members: Any) -> bytes:
    return json.dumps({**REQUEST, **members}).encode() + b"\n"


def run_line(request: dict[str, Any], **members: Any) -> bytes:
    return json.dumps({"type": "run", "id": "r1", "request": request, **members}).encode() + b"\n"


MISTAKES = {
    "indented": ("worker", json.dumps(REQUEST, indent=2).encode()),
    "indented to serve": ("serve", json.dumps({"type": "run", "id": "r1"}, indent=2).encode()),
    "a part of the line": ("worker", line()[:20]),
    "a part of a line to serve": ("serve", b'{"type":"run",'),
    "message": ("worker", line(message="hi")),
    "message to serve": ("serve", run_line({**REQUEST, "message": "hi"})),
    "a number in quotes": ("worker", line(starting_message="hi", max_turns="3")),
    "a bare request to serve": ("serve", line(starting_message="hi")),
    "limits in the request": ("serve", run_line({**REQUEST, "starting_message": "hi", "limits": {}})),
    "lifeline": ("worker", line(starting_message="hi", lifeline=True)),
    "stdin of serve has ended": ("serve", run_line({**REQUEST, "starting_message": "hi"})),
}

COMMANDS = {"worker": ["agentcell-worker"], "serve": ["agentcell", "serve"]}


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_the_line_that_the_page_says(user: User, mistake: str) -> None:
    door, sent = MISTAKES[mistake]
    messages = [json.loads(each) for each in user.run(COMMANDS[door], sent).stdout.splitlines()]
    error = next(message["error"] for message in messages if message["type"] != "hello")
    assert f'"{error["message"].removeprefix("the request: ").replace("request.message", "message")}"' in PAGE


@pytest.mark.slow
@pytest.mark.e2e
def test_the_result_of_who_is_gone_is_in_its_file(user: User) -> None:
    user.run(COMMANDS["worker"], line(starting_message="hi", lifeline=True, result_file="result.json"))
    assert json.loads((user.project / "result.json").read_text("utf-8"))["error"]["category"] == "host_lost"


@pytest.mark.slow
@pytest.mark.e2e
def test_who_has_no_key_is_told_so(tmp_path: Path) -> None:
    with offline_model({"turns": [{"text": "Hello."}]}) as endpoint:
        user = User.at(tmp_path, endpoint).without("ANTHROPIC_API_KEY")
        error = json.loads(user.run(COMMANDS["worker"], line(starting_message="hi")).stdout)["error"]
    assert (error["category"], error["hint"] in error["message"]) == ("authentication", True)
    assert f'"{error["message"]}"' in PAGE


@pytest.mark.slow
def test_a_line_without_its_end_is_told_to_who_waits(user: User) -> None:
    with user.starting(COMMANDS["serve"], stdin=subprocess.PIPE) as serve:
        assert serve.stdin is not None
        assert serve.stdout is not None
        serve.stdin.write(b'{"type":"shutdown"}')
        hello, warning = (json.loads(serve.stdout.readline()) for _ in range(2))
        serve.stdin.close()
        assert serve.wait(BOUND_SECONDS) == 0
    assert (hello["type"], warning["code"]) == ("hello", "unfinished_line")
    assert f'"{warning["message"]}"' in PAGE


def test_a_worker_waits_for_the_end_of_its_line_for_a_bounded_time(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b'{"session_name":"a"}')
        with pytest.raises(RequestError, match=r"no whole line came within 0\.01 s"):
            read_message(reader, wait_seconds=0.01)
    finally:
        os.close(reader)
        os.close(writer)
