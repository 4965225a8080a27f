"""What the misbehaving workers beside this file have in common: just enough of the protocol."""

import json
import os
import signal
import sys
from typing import Any, NoReturn


def take_request() -> dict[str, Any]:
    """The request line."""
    message: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    return message


def write(data: bytes) -> None:
    """Bytes straight to stdout, all of them."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def say(**message: Any) -> None:
    """One message as a line."""
    write(json.dumps(message).encode() + b"\n")


def start() -> None:
    """The lines with which a session begins."""
    say(type="hello", protocol=1, pid=os.getpid(), agentcell="0", sdk="0", cli=None, start="cold")
    say(type="session_started", session_id="s", model="m")
    say(type="text", text="half")


def result_of(session_name: str = "a", response: str = "done", **members: Any) -> dict[str, Any]:
    """The members of a result."""
    known = {"type": "result", "status": "complete", "response": response, "session_name": session_name}
    return {**known, "session_id": "s", **members}


def die(number: int) -> NoReturn:
    """End by a signal."""
    os.kill(os.getpid(), number)
    signal.pause()
    raise AssertionError


def hang() -> NoReturn:
    """Live until a signal that is not ignored."""
    while True:
        signal.pause()
