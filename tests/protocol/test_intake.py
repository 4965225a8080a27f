"""The first line is read as soon as it is there."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentcell_protocol.errors import RequestError
from agentcell_protocol.intake import LATER_LINES, SEND_ALL, SEND_ONE_LINE, Intake, read_message


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb"), os.fdopen(write_end, "wb"):
        yield read_end, write_end


def test_a_line_is_read_while_the_stream_stays_open(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b'{"a": 1}\n')
    assert read_message(pipe[0]) == Intake({"a": 1})


def test_a_byte_order_mark_a_carriage_return_and_blank_lines_are_tolerated(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b'\n  \r\n\xef\xbb\xbf{"a": 1}\r\n')
    assert read_message(pipe[0]) == Intake({"a": 1})


@pytest.mark.parametrize("rest", [b'{"b": 2}\n', b'{"b"'])
def test_what_came_with_the_first_line_is_noted(pipe: tuple[int, int], rest: bytes) -> None:
    os.write(pipe[1], b'{"a": 1}\n' + rest)
    assert read_message(pipe[0]) == Intake({"a": 1}, (LATER_LINES,))


def test_a_missing_line_end_is_forgiven_at_the_end_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "request"
    file.write_bytes(b'{"a": 1}')
    with file.open("rb") as stream:
        assert read_message(stream.fileno()) == Intake({"a": 1})


def refusal_of(file: Path, content: bytes) -> tuple[str, str]:
    file.write_bytes(content)
    with file.open("rb") as stream, pytest.raises(RequestError) as refused:
        read_message(stream.fileno())
    return refused.value.reason, refused.value.remedy


@pytest.mark.parametrize(
    "part", [b"{", b'{"session_name": "a', '{"session_name": "ü'.encode()[:-1], b'{"a": 1,', b"[1"]
)
def test_a_stream_that_ends_in_the_middle_of_its_line_is_told_so(tmp_path: Path, part: bytes) -> None:
    ended = ("the line is cut: stdin ended in the middle of it", SEND_ALL)
    assert refusal_of(tmp_path / "request", part) == ended
    assert refusal_of(tmp_path / "request", part + b"\n") != ended


def test_a_stream_that_ends_after_what_is_no_json_is_told_that(tmp_path: Path) -> None:
    told = "the line is not valid JSON: unexpected character, expected a JSON value: line 1 column 1 (char 0)"
    assert refusal_of(tmp_path / "request", b"hello") == (told, "send one JSON object on one line")


def test_a_line_of_thirty_mebibytes_is_read(pipe: tuple[int, int]) -> None:
    line = b'{"a": "' + b"x" * (30 * 1024 * 1024) + b'"}\n'
    writer = threading.Thread(target=_write, args=(pipe[1], line), daemon=True)
    writer.start()
    assert len(read_message(pipe[0]).message["a"]) == 30 * 1024 * 1024
    writer.join(10)


def test_dev_null_is_an_empty_stdin() -> None:
    with Path(os.devnull).open("rb") as stream, pytest.raises(RequestError) as refused:
        read_message(stream.fileno())
    assert refused.value.member is None


def test_a_closed_descriptor_is_an_empty_stdin() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    os.close(write_end)
    with pytest.raises(RequestError, match="without a line"):
        read_message(read_end)


def test_a_terminal_is_refused() -> None:
    leader, follower = os.openpty()
    with os.fdopen(leader, "rb"), os.fdopen(follower, "rb"), pytest.raises(RequestError, match="terminal"):
        read_message(follower)


def test_a_pipe_that_never_sends_is_given_up(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b'{"a"')
    with pytest.raises(RequestError) as refused:
        read_message(pipe[0], wait_seconds=0.05)
    assert str(refused.value) == str(RequestError(None, "no whole line came within 0.05 s", SEND_ONE_LINE))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{\n", "write the whole object on one line"),
        (b'{"session_name": "a",\n', "write the whole object on one line"),
        (b"[1]\n", "an array, not an object"),
        (b"nonsense\n", "not valid JSON"),
    ],
)
def test_what_is_no_object_is_refused(pipe: tuple[int, int], line: bytes, words: str) -> None:
    os.write(pipe[1], line)
    with pytest.raises(RequestError, match=words):
        read_message(pipe[0])


def test_blank_lines_alone_are_an_empty_stdin() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb"), os.fdopen(write_end, "wb") as writer:
        writer.write(b"\n \n")
        writer.close()
        with pytest.raises(RequestError, match="stdin ended without a line"):
            read_message(read_end)


def test_no_stdin_at_all_is_an_empty_one() -> None:
    with pytest.raises(RequestError, match="stdin ended without a line"):
        read_message(None)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
