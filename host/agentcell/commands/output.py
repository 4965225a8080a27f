"""Writing to where our output goes, be it a terminal, a pipe, a file or nothing at all."""

import os
import sys
from contextlib import suppress
from select import PIPE_BUF
from typing import IO

import click


def write(data: bytes) -> None:
    """Write to stdout, all of it or OSError; nothing when there is no stdout."""
    if sys.stdout is not None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


async def pour(data: bytes) -> None:
    """As `write`, waiting for who reads it without stopping the loop; what is cancelled may be written in part."""
    import anyio

    if sys.stdout is None:
        return
    descriptor, left = sys.stdout.fileno(), memoryview(data)
    while left:
        with suppress(PermissionError):  # a file is always ready, and nothing to wait for
            await anyio.wait_writable(descriptor)
        left = left[os.write(descriptor, left[:PIPE_BUF]) :]


def tell(*lines: str | None) -> None:
    """Write lines to stderr; what cannot be written is lost, the session is not."""
    with suppress(OSError):
        for line in lines:
            if line is not None:
                click.echo(line, err=True)


def silence_stdout() -> None:
    """Let what is left in the buffer of stdout go nowhere: at its end the interpreter would complain about it."""
    _silence(sys.stdout)


def settle_stderr() -> None:
    """Write out what is left for stderr, or let it go nowhere: the interpreter would end with a code of its own."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def _silence(stream: IO[str]) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
