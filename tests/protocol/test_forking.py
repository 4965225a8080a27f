"""What host and fork server send each other never waits, and brings descriptors that nobody inherits."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from agentcell_protocol.forking import receive_report, receive_with, send_report, send_with

SECONDS = 5
"""For what is to happen at once."""

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


def at_once(call: Callable[[], object]) -> None:
    """Make a call that may have to wait; fail if it does."""

    def run() -> None:
        with suppress(BlockingIOError):
            call()

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "it waits"


def test_nothing_yet_is_not_waited_for(pair: Pair) -> None:
    at_once(lambda: receive_report(pair[0]))
    with pytest.raises(BlockingIOError):
        receive_report(pair[0])


def test_a_receiver_that_does_not_read_is_not_waited_for(pair: Pair) -> None:
    def fill() -> None:
        while True:
            send_with(pair[1], b"x" * 1000, [])

    at_once(fill)
    at_once(lambda: send_report(pair[1], {"swept": 1}))


def test_a_report_comes_with_a_descriptor_that_is_not_inherited(pair: Pair) -> None:
    with Path(os.devnull).open() as null:
        send_report(pair[1], {"pid": 7}, [null.fileno()])
    report, (descriptor,) = receive_report(pair[0])
    try:
        assert (report, os.get_inheritable(descriptor)) == ({"pid": 7}, False)
    finally:
        os.close(descriptor)


def test_the_end_is_told(pair: Pair) -> None:
    pair[1].close()
    assert receive_report(pair[0]) == (None, [])
    assert receive_with(pair[0], 1) == (b"", [])
