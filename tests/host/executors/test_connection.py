"""Who asks a keeper for an attempt gets whole lines, however they come."""

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from agentcell.executors.connection import attempt_lines

BOUND_SECONDS = 30.0


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "s")


@pytest.fixture
def listener(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.settimeout(BOUND_SECONDS)
        listening.bind(address)
        listening.listen()
        yield listening


def test_halves_become_whole_lines_and_the_last_half_is_dropped(address: str, listener: socket.socket) -> None:
    heard: list[bytes] = []

    def answer() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            heard.append(lines.readline())
            connection.sendall(b"one\ntw")
            heard.append(lines.readline())
            connection.sendall(b"o\nthr")

    thread = Thread(target=answer)
    thread.start()
    chunks = attempt_lines(address, b"please\ngo on\n")
    assert b"".join(chunks) == b"one\ntwo\n"
    thread.join(BOUND_SECONDS)
    assert heard == [b"please\n", b"go on\n"]


def test_the_connection_ends_when_it_is_left(address: str, listener: socket.socket) -> None:
    chunks = attempt_lines(address, b"please\n")
    thread = Thread(target=next, args=(chunks,))
    thread.start()
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(BOUND_SECONDS)
        assert connection.recv(100) == b"please\n"
        connection.sendall(b"one\n")
        thread.join(BOUND_SECONDS)
        chunks.close()  # type: ignore[attr-defined]
        assert connection.recv(100) == b""


def test_a_connection_that_breaks_is_at_its_end(address: str, listener: socket.socket) -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        connection.recv(1)
        connection.sendall(b"one\n")
        connection.close()  # with what was sent unread, which breaks it

    thread = Thread(target=answer)
    thread.start()
    assert list(attempt_lines(address, b"please\n")) == [b"one\n"]
    thread.join(BOUND_SECONDS)


def test_where_no_keeper_is_it_says_so(address: str) -> None:
    with pytest.raises(FileNotFoundError):
        next(iter(attempt_lines(address, b"please\n")))
