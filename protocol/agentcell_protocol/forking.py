"""What a host and its fork server say to each other: an order for each cell, and reports of how the cell does.

The host sends one message per cell on the control socket, which carries five descriptors: the cell's ends of its
three pipes and of its report socket, and a memory file with its surroundings. The report socket is the cell's own:
the cell reports that it lives, or why it could not be prepared, and the server how it died and what it had left;
the end of the socket says that nothing of it is left, or that the server is lost. Both are SOCK_SEQPACKET.
"""

import os
import socket
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import orjson

ORDER_DESCRIPTORS = 5
"""stdin, stdout, stderr, the report socket, the surroundings; in this order."""

MESSAGE_BYTES = 4096
"""The longest message: a marker, or a report with the text of an error."""

HURRY = b"hurry"
"""The host's only word on a report socket: kill the cell and whatever it left, at once."""

CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""So that a descriptor that was sent is not passed on to whatever is executed. Linux only."""

Report = Mapping[str, bool | int | float | str]
"""`pid` (with a pidfd); `failed` (an errno) and `message`; `status` (as `os.waitstatus_to_exitcode` has it),
`max_rss_kb` and `cpu_seconds`; or `swept` (a number) and `is_clear` (whether the kernel says that nothing below the
server is left but living cells)."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a cell is started with: its whole environment and its directory, as bytes."""

    environment: Mapping[bytes, bytes] = field(repr=False)
    directory: bytes


def write_surroundings(environment: Mapping[str, str], directory: str) -> int:
    """A memory file that holds them. Raises ValueError for what cannot be in an environment, OSError."""
    pairs = [(os.fsencode(name), os.fsencode(value)) for name, value in environment.items()]
    if any(not name or b"=" in name for name, _ in pairs):
        raise ValueError("illegal environment variable name")
    parts = [os.fsencode(directory), *(name + b"=" + value for name, value in pairs)]
    if any(b"\0" in part for part in parts):
        raise ValueError("embedded null byte")
    fd = os.memfd_create("agentcell-surroundings")
    with open(fd, "wb", closefd=False) as file:
        file.write(b"\0".join(parts))
    return fd


def read_surroundings(fd: int) -> Surroundings:
    """What `write_surroundings` wrote. Raises OSError."""
    directory, *pairs = os.pread(fd, os.fstat(fd).st_size, 0).split(b"\0")
    named = (pair.partition(b"=") for pair in pairs)
    return Surroundings({name: value for name, _, value in named}, directory)


def send_report(report: socket.socket, message: Report, descriptors: Sequence[int] = ()) -> None:
    """Send it if it can be sent at once: nobody waits for a host that is slow, stopped or gone."""
    with suppress(OSError):
        send_with(report, orjson.dumps(message), descriptors)


def receive_report(report: socket.socket) -> tuple[Report | None, list[int]]:
    """The next report and its descriptors; None at the end. Raises BlockingIOError when there is none yet."""
    try:
        data, descriptors = receive_with(report, 1)
    except ConnectionError:
        return None, []
    return (orjson.loads(data) if data else None), descriptors


# In place of socket.send_fds and socket.recv_fds, which drop their flags (Python 3.11 to 3.13): they would block.


def send_with(sock: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    """Send a message and descriptors at once. Raises BlockingIOError when there is no room, OSError."""
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))] if descriptors else []
    sock.sendmsg([data], ancillary, socket.MSG_DONTWAIT)


def receive_with(sock: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """The next message and its descriptors, not inherited. Raises BlockingIOError when there is none yet, OSError."""
    descriptors = array("i")
    room = socket.CMSG_LEN(most * descriptors.itemsize)
    data, ancillary, _, _ = sock.recvmsg(MESSAGE_BYTES, room, socket.MSG_DONTWAIT | CLOSE_ON_EXEC)
    for level, kind, sent in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(sent[: len(sent) - len(sent) % descriptors.itemsize])
    return data, list(descriptors)
