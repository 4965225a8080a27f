"""The offline endpoint speaks the Messages API and plays each kind of turn, request by request."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.ending import ending

from agentcell.offline import Endpoint, offline_environment, offline_model

SECONDS = 20.0
"""A bound on every wait here; what is waited for takes well under one second."""

AFTER_LAST = "The script has no further turn."


def message(prompt: str = "hi", *, session: str | None = "s1", stream: bool = False, **members: Any) -> dict[str, Any]:
    """A request to the messages API, as small as it can be."""
    user = {} if session is None else {"metadata": {"user_id": json.dumps({"session_id": session})}}
    return {"model": "m", "stream": stream, "messages": [{"role": "user", "content": prompt}], **user, **members}


@contextmanager
def asked(
    endpoint: Endpoint, body: object, *, path: str = "/v1/messages?beta=true", **headers: str
) -> Iterator[HTTPResponse]:
    """What the endpoint answers; its body is not yet read."""
    connection = HTTPConnection(urlsplit(endpoint.url).netloc, timeout=SECONDS)
    try:
        connection.request("POST", path, json.dumps(body).encode(), headers)
        with connection.getresponse() as response:
            yield response
    finally:
        connection.close()


def ask(endpoint: Endpoint, body: object, **headers: str) -> dict[str, Any]:
    with asked(endpoint, body, **headers) as response:
        answer: dict[str, Any] = json.loads(response.read())
    return answer


def said(endpoint: Endpoint, prompt: str = "hi", session: str | None = "s1", **headers: str) -> str:
    """The text of the next answer in a session."""
    return "".join(block["text"] for block in ask(endpoint, message(prompt, session=session), **headers)["content"])


def until_asked(endpoint: Endpoint) -> None:
    """Wait until the first request is there."""
    give_up_at = time.monotonic() + SECONDS
    while not endpoint.requests:
        assert time.monotonic() < give_up_at
        os.sched_yield()


def events(stream: bytes) -> list[dict[str, Any]]:
    """The data of a stream of server-sent events, whose names must agree with it."""
    found = []
    for event in stream.decode().split("\n\n")[:-1]:
        name, data = event.split("\n", 1)
        decoded = json.loads(data.removeprefix("data: "))
        assert name == f"event: {decoded['type']}"
        found.append(decoded)
    return found


def test_a_streamed_answer_has_the_events_of_the_api() -> None:
    turn = {
        "thinking": "hm",
        "text": "hello",
        "chunks": 2,
        "tools": [{"name": "Read", "input": {"file_path": "a"}}],
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }
    with offline_model({"turns": [turn]}) as endpoint, asked(endpoint, message(stream=True)) as response:
        kind = response.headers["content-type"]
        stream = events(response.read())
    usage = {"input_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    started, tool = stream[0]["message"], stream[9]["content_block"]
    assert kind == "text/event-stream"
    assert started == {
        "id": started["id"],
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 0},
    }
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    assert stream[1:] == [
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "offline"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "hel"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": tool["id"], "name": "Read", "input": {}},
        },
        *(
            {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": part}}
            for part in ('{"file_pa', 'th": "a"}')
        ),
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {**usage, "output_tokens": 3},
        },
        {"type": "message_stop"},
    ]


def test_the_same_answer_comes_whole_to_a_request_that_does_not_stream() -> None:
    tools = [{"name": "Read", "input": {"file_path": "a"}}, {"name": "Glob"}]
    with offline_model({"turns": [{"text": ["a", "b"], "tools": tools}]}) as endpoint:
        answer = ask(endpoint, message())
    ids = [block.pop("id") for block in answer["content"] if block["type"] == "tool_use"]
    assert len(set(ids)) == 2
    assert answer == {
        "id": answer["id"],
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b"},
            {"type": "tool_use", "name": "Read", "input": {"file_path": "a"}},
            {"type": "tool_use", "name": "Glob", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


@pytest.mark.parametrize(
    ("turn", "content", "reason"),
    [
        ({}, [], "end_turn"),
        ({"text": ""}, [{"type": "text", "text": ""}], "end_turn"),
        ({"text": "x", "stop_reason": "tool_use"}, [{"type": "text", "text": "x"}], "tool_use"),
        ({"stop_reason": "refusal"}, [], "refusal"),
        ({"text": "x", "stop_reason": "max_tokens"}, [{"type": "text", "text": "x"}], "max_tokens"),
        ({"text": "é😀", "repeat": 3}, [{"type": "text", "text": "é😀é😀é😀"}], "end_turn"),
        ({"text": "lone \ud800"}, [{"type": "text", "text": "lone \ud800"}], "end_turn"),
    ],
)
def test_odd_answers_are_sent_as_written(turn: dict[str, Any], content: list[dict[str, Any]], reason: str) -> None:
    with offline_model({"turns": [turn]}) as endpoint:
        answer = ask(endpoint, message())
    assert (answer["content"], answer["stop_reason"]) == (content, reason)


def test_a_huge_answer_arrives_whole() -> None:
    with (
        offline_model({"turns": [{"text": "aé😀", "repeat": 700_000}]}) as endpoint,
        asked(endpoint, message(stream=True)) as response,
    ):
        stream = events(response.read())
    text = "".join(event["delta"].get("text", "") for event in stream if "delta" in event)
    assert text == "aé😀" * 700_000


def test_an_error_has_its_status_headers_and_body_so_many_times() -> None:
    error = {"status": 529, "message": "busy", "headers": {"Retry-After": 7}}
    with offline_model({"turns": [{"error": error, "times": 2}, {"text": "at last"}]}) as endpoint:
        for _ in range(2):
            with asked(endpoint, message(stream=True)) as response:
                assert (response.status, response.headers["retry-after"]) == (529, "7")
                assert json.loads(response.read()) == {
                    "type": "error",
                    "error": {"type": "overloaded_error", "message": "busy"},
                }
        assert said(endpoint) == "at last"


def test_a_body_comes_as_it_is_with_status_200() -> None:
    turn = {"body": "<html>", "content_type": "text/html"}
    with offline_model({"turns": [turn]}) as endpoint, asked(endpoint, message(stream=True)) as response:
        assert (response.status, response.headers["content-type"], response.read()) == (200, "text/html", b"<html>")


def test_an_answer_waits_for_its_delay_and_paces_its_events() -> None:
    turn = {"text": "abc", "chunks": 3, "delay": 0.2, "pace": 0.05}
    with offline_model({"turns": [turn]}) as endpoint, asked(endpoint, message(stream=True)) as response:
        began = time.monotonic()
        count = len(events(response.read()))
    assert time.monotonic() - began >= 0.05 * (count - 1)


@pytest.mark.parametrize("stream", [True, False])
def test_a_connection_is_dropped_before_anything_is_sent(stream: bool) -> None:
    with (
        offline_model({"turns": [{"drop": "start"}]}) as endpoint,
        pytest.raises((ConnectionError, HTTPException)),
        asked(endpoint, message(stream=stream)),
    ):
        raise AssertionError


@pytest.mark.parametrize("stream", [True, False])
def test_a_connection_is_dropped_in_the_middle_of_an_answer(stream: bool) -> None:
    with (
        offline_model({"turns": [{"text": "hello", "drop": "middle"}]}) as endpoint,
        asked(endpoint, message(stream=stream)) as response,
        pytest.raises(IncompleteRead) as cut,
    ):
        response.read()
    assert b"message" in cut.value.partial
    assert b'stop_reason": "end_turn' not in cut.value.partial


@pytest.mark.parametrize("moment", ["start", "middle"])
def test_a_stalled_answer_ends_with_the_endpoint_which_stops_at_once(moment: str) -> None:
    endings: list[Exception] = []

    def wait(endpoint: Endpoint) -> None:
        try:
            with asked(endpoint, message(stream=True)) as response:
                response.read()
        except (ConnectionError, HTTPException) as ending:
            endings.append(ending)

    with offline_model({"turns": [{"text": "x", "stall": moment}]}) as endpoint:
        waiting = threading.Thread(target=wait, args=[endpoint])
        waiting.start()
        until_asked(endpoint)
        stopping_at = time.monotonic()
    stopped_after = time.monotonic() - stopping_at
    waiting.join(SECONDS)
    assert len(endings) == 1
    assert stopped_after < 3


def test_a_stalled_answer_ends_when_its_client_goes() -> None:
    with offline_model({"turns": [{"stall": "start"}, {"text": "next"}]}) as endpoint:
        host, port = urlsplit(endpoint.url).netloc.split(":")
        with socket.create_connection((host, int(port))) as client:
            body = json.dumps(message()).encode()
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            until_asked(endpoint)
        assert said(endpoint) == "next"


def test_each_session_plays_the_script_from_its_beginning() -> None:
    with offline_model({"turns": [{"text": "one"}, {"text": "two"}]}) as endpoint:
        answers = [said(endpoint, session=session) for session in ("a", "b", "a", "b", "a")]
        assert answers == ["one", "one", "two", "two", AFTER_LAST]
        assert [(request.session_id, request.turn) for request in endpoint.requests] == [
            *(("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3))
        ]


def test_a_turn_for_always_is_never_used_up() -> None:
    with offline_model({"turns": [{"text": "again", "times": "always"}, {"text": "never"}]}) as endpoint:
        assert [said(endpoint) for _ in range(3)] == ["again"] * 3


def test_a_session_has_the_conversation_that_fits_its_prompt_or_its_place() -> None:
    script = {
        "sessions": [
            {"match": "weather", "turns": [{"text": "rain"}]},
            {"session": 2, "turns": [{"text": "second"}]},
        ],
        "turns": [{"text": "any"}],
    }
    reminder = {"type": "text", "text": "<system-reminder>\nweather\n</system-reminder>"}
    with offline_model(script) as endpoint:
        assert said(endpoint, "hello", "a") == "any"
        assert said(endpoint, "hello", "b") == "second"
        assert said(endpoint, "the weather, please", "c") == "rain"
        body = message(session="d", messages=[{"role": "user", "content": [reminder, {"type": "text", "text": "hi"}]}])
        assert ask(endpoint, body)["content"][0]["text"] == "any"
        assert endpoint.requests[-1].prompt == "hi"


def test_a_subagent_is_a_conversation_of_its_own_that_only_a_match_fits() -> None:
    script = {"sessions": [{"match": "explore", "turns": [{"text": "found"}]}], "turns": [{"text": "main"}]}
    agent = "X-Claude-Code-Agent-Id"
    with offline_model(script) as endpoint:
        assert said(endpoint, "go") == "main"
        assert said(endpoint, "explore it", **{agent: "1"}) == "found"
        assert said(endpoint, "something else", **{agent: "2"}) == AFTER_LAST
        assert [request.agent_id for request in endpoint.requests] == [None, "1", "2"]


def test_what_is_asked_beside_a_conversation_takes_no_turn() -> None:
    title = message(tools=[], output_config={"format": {"type": "json_schema", "schema": {}}})
    search = message(tools=[{"type": "web_search_20250305", "name": "web_search"}])
    with offline_model({"turns": [{"text": "mine"}]}) as endpoint:
        assert json.loads(ask(endpoint, title)["content"][0]["text"]) == {"title": "Offline session"}
        assert ask(endpoint, search)["content"][0]["text"] == "Nothing is found offline."
        assert ask(endpoint, message(tools=[{"name": "Read"}]))["content"][0]["text"] == "mine"
        assert [(request.kind, request.turn) for request in endpoint.requests] == [
            *(("title", None), ("search", None), ("turn", 1))
        ]


def test_a_session_is_known_by_its_header_where_the_body_does_not_name_it() -> None:
    with offline_model({"turns": [{"text": "one"}]}) as endpoint:
        said(endpoint, session=None, **{"X-Claude-Code-Session-Id": "from-header"})
        said(endpoint, session=None)
        assert [request.session_id for request in endpoint.requests] == ["from-header", None]


def test_what_was_asked_is_kept_without_secrets() -> None:
    body = message("hello", stream=True, system=[{"type": "text", "text": "be"}, {"type": "text", "text": "brief"}])
    with (
        offline_model({"turns": [{"text": "hi"}]}) as endpoint,
        asked(endpoint, body, **{"X-Api-Key": "sk-secret", "Authorization": "Bearer secret"}) as response,
    ):
        response.read()
        [request] = endpoint.requests
    assert (request.method, request.path, request.model) == ("POST", "/v1/messages?beta=true", "m")
    assert (request.prompt, request.system, request.is_streamed) == ("hello", "be\nbrief", True)
    assert (request.headers["x-api-key"], request.headers["authorization"]) == ("***", "***")
    assert request.body == body
    assert "secret" not in repr(request)


def test_tokens_are_counted_and_everything_else_is_answered_as_unknown() -> None:
    with offline_model({}) as endpoint:
        with asked(endpoint, message(), path="/v1/messages/count_tokens?beta=true") as counted:
            assert json.loads(counted.read())["input_tokens"] > 0
        connection = HTTPConnection(urlsplit(endpoint.url).netloc, timeout=SECONDS)
        statuses = []
        for method in ("HEAD", "GET", "POST"):
            connection.request(method, "/api/hello")
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()
        assert statuses == [200, 404, 404]
        assert [request.kind for request in endpoint.requests] == ["other"] * 4


@pytest.mark.parametrize("body", [[], "text", None])
def test_a_message_that_is_no_object_is_refused(body: object) -> None:
    with offline_model({}) as endpoint, asked(endpoint, body) as response:
        assert response.status == 400
        assert json.loads(response.read())["error"]["type"] == "invalid_request_error"


def test_the_environment_leads_to_the_endpoint_and_nowhere_else() -> None:
    surrounding = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HOME": "/home/somebody",
        "ANTHROPIC_API_KEY": "sk-ant-real",
        "ANTHROPIC_AUTH_TOKEN": "real",
        "CLAUDE_CONFIG_DIR": "/home/somebody/.claude",
        "CLAUDECODE": "1",
        "AWS_SECRET_ACCESS_KEY": "real",
        "HTTPS_PROXY": "http://proxy:3128",
        "PYTHONPATH": "/src",
    }
    with offline_model({}) as endpoint:
        environment = offline_environment(endpoint, "/scratch/home", surrounding)
    assert environment == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HOME": "/scratch/home",
        "ANTHROPIC_BASE_URL": endpoint.url,
        "ANTHROPIC_API_KEY": "sk-ant-offline",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    with (
        offline_model({}) as endpoint,
        pytest.raises(OSError, match="in use"),
        offline_model({}, int(endpoint.url.rpartition(":")[2])),
    ):
        raise AssertionError


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_in_the_foreground_until_a_signal(number: signal.Signals) -> None:
    code = (
        "from agentcell.offline import serve_forever\n"
        "serve_forever({'turns': [{'stall': 'start'}]}, 0, lambda endpoint: print(endpoint.url, flush=True))\n"
        "print('stopped')\n"
    )
    argv = [sys.executable, "-P", "-W", "error", "-c", code]
    with ending(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE), SECONDS) as server:
        assert server.stdout is not None
        host, port = server.stdout.readline().decode().strip().removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS) as client:
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            server.send_signal(number)
            output, complaints = server.communicate()
    assert (server.returncode, output, complaints) == (0, b"stopped\n", b"")
