"""The only writer of lines."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.events import Detail
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.result import SessionResult, failed
from agentcell_protocol.text import PARTIAL_CHARACTERS
from agentcell_worker.emit import Emitter

GOOD = SessionResult(status="complete", response="hello", session_name="s")


class Sink:
    """A file that takes what an emitter writes."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT)
        self._path = path

    def lines(self) -> list[dict[str, Any]]:
        """What was written."""
        return [json.loads(line) for line in self._path.read_bytes().splitlines()]


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    """One."""
    sink = Sink(tmp_path / "sink")
    yield sink
    os.close(sink.fd)


def nested(depth: int) -> dict[str, Any]:
    """An object within an object, that many."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(("detail", "kinds"), [("none", []), ("summary", ["text"]), ("full", ["text", "text_delta"])])
def test_only_what_the_reader_asked_for_is_written(sink: Sink, detail: Detail, kinds: list[str]) -> None:
    emitter = Emitter(sink.fd, detail)
    emitter.event({"type": "text", "text": "a"})
    emitter.event({"type": "text_delta", "text": "a"})
    assert [line["type"] for line in sink.lines()] == kinds


def test_an_event_over_the_limit_becomes_a_warning(sink: Sink) -> None:
    Emitter(sink.fd, "summary").event({"type": "text", "text": "x" * LINE_LIMIT})
    (line,) = sink.lines()
    assert (line["type"], line["code"]) == ("warning", "event_too_long")
    assert line["message"].startswith("a text event of ")


def test_an_event_that_is_nested_too_deep_is_cut_with_a_warning(sink: Sink) -> None:
    Emitter(sink.fd, "full").event({"type": "tool_use", "id": "t", "name": "n", "input": nested(900)})
    assert [line.get("code", line["type"]) for line in sink.lines()] == ["nesting_cut", "tool_use"]


def test_what_is_no_json_is_written_as_json_anyway(sink: Sink) -> None:
    odd = {"nan": float("nan"), "lone": "\ud800", "big": 2**70, "set": {1}}
    Emitter(sink.fd, "full").event({"type": "tool_use", "id": "t", "name": "n", "input": odd})
    (line,) = sink.lines()
    assert line["input"] == {"nan": None, "lone": "\ufffd", "big": float(2**70), "set": "{1}"}


def test_a_result_over_the_limit_becomes_an_error_with_a_part_of_the_text(sink: Sink) -> None:
    long = GOOD.model_copy(update={"response": "x" * LINE_LIMIT, "structured_output": {"a": 1}})
    written = Emitter(sink.fd).result(long)
    assert sink.lines() == [written.to_message(hosted=False)]
    assert written.error is not None
    assert (written.status, written.error.category) == ("error", Category.PROTOCOL)
    assert written.error.partial_response == "x" * PARTIAL_CHARACTERS


def test_a_failed_result_over_the_limit_is_bounded_as_well(sink: Sink) -> None:
    error = session_error(Category.CRASHED, "died", partial_response="x" * LINE_LIMIT)
    written = Emitter(sink.fd).result(failed(error))
    assert written.error is not None
    assert (written.error.category, len(written.error.partial_response or "")) == (
        Category.PROTOCOL,
        PARTIAL_CHARACTERS,
    )


def test_a_result_that_is_nested_too_deep_says_so(sink: Sink) -> None:
    written = Emitter(sink.fd).result(GOOD.model_copy(update={"structured_output": nested(600)}))
    assert [notice.code for notice in written.warnings] == ["nesting_cut"]


def test_a_result_is_put_into_its_file_whole(sink: Sink, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    Emitter(sink.fd).result(GOOD, file=str(folder / "r.json"))
    assert [path.name for path in folder.iterdir()] == ["r.json"]
    assert json.loads((folder / "r.json").read_text()) == sink.lines()[0]


def test_a_file_that_cannot_be_written_is_a_warning(sink: Sink, tmp_path: Path) -> None:
    written = Emitter(sink.fd).result(GOOD, file=str(tmp_path / "nowhere" / "r.json"))
    assert (written.status, [notice.code for notice in written.warnings]) == ("complete", ["result_file"])
    assert sink.lines() == [written.to_message(hosted=False)]


def test_a_reader_that_is_gone_raises_nothing() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    emitter = Emitter(writes, "full")
    try:
        emitter.event({"type": "text", "text": "a"})
        assert emitter.result(GOOD) == GOOD
    finally:
        os.close(writes)


def test_a_reader_that_is_slow_gets_everything_through_a_pipe_that_does_not_block() -> None:
    import threading

    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    got: list[bytes] = []

    def read() -> None:
        while chunk := os.read(reads, 4096):
            got.append(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    Emitter(writes).result(GOOD.model_copy(update={"response": "x" * 1_000_000}))
    os.close(writes)
    reader.join(timeout=10)
    os.close(reads)
    assert len(json.loads(b"".join(got))["response"]) == 1_000_000
