"""One attempt at a node's keeper, as those who asked for it see it: a line goes there, lines come back. Blocks."""

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from struct import pack

CHUNK_BYTES = 256 * 1024
"""In one read: what a socket holds."""

SEND_SECONDS = 60
"""For the keeper to take the line: it reads at once, unless it is stopped or its machine is far behind."""


def attempt_lines(address: str, line: bytes) -> Iterator[bytes]:
    """Ask the keeper at `address` for the attempt of this line: what it says, each time one or more whole lines.

    It lasts until the keeper closes the connection, which it does after the `ended` line, or when it ends; half a line
    is dropped then. To be closed by who leaves it earlier, which ends the attempt. Raises OSError where the keeper
    cannot be reached, or does not take the line in time.
    """
    with closing(_connection(address)) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have said why it did not read on
            connection.sendall(line)
        yield from _whole_lines(connection)


def _connection(address: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        # not by settimeout, with which connecting fails at once while others are waiting to be accepted
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, pack("ll", SEND_SECONDS, 0))
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _whole_lines(connection: socket.socket) -> Iterator[bytes]:
    begun: list[bytes] = []
    while chunk := _read(connection):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*begun, chunk[:end]))
            begun = []
        if end < len(chunk):
            begun.append(chunk[end:])


def _read(connection: socket.socket) -> bytes:
    """Wait for the next bytes; empty at the end, however it came."""
    try:
        return connection.recv(CHUNK_BYTES)
    except ConnectionError:
        return b""
