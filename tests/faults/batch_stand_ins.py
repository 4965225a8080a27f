"""`agentcell` with forked stand-ins for cells, imported once: each command is a fork of this process.

Stdin is a socket. A message is the command, as JSON `{argv, environment, directory}`, with a descriptor for its
stderr; the answer is its pid. Any other message is for waiting until it has ended; the answer is its exit code.
"""

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from tests.faults.endurance import forking

import agentcell.resources
from agentcell.cli import main
from agentcell.commands import batching  # noqa: F401 - what the command imports late

MESSAGE_BYTES = 4096

STDIN, STDERR = 0, 2


def serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork a command at a time until nobody asks any more; in a fork, its command."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 1)
        if not message:
            return None
        if (pid := os.fork()) == 0:
            os.dup2(descriptors[0], STDERR)
            command: dict[str, Any] = json.loads(message)
            return command
        os.close(descriptors[0])
        control.send(str(pid).encode())
        control.recv(MESSAGE_BYTES)
        control.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def become(command: dict[str, Any]) -> None:
    """Do in a fork what a process of its own would find done."""
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), STDIN)
    os.chdir(command["directory"])
    os.environ.update(command["environment"])
    sys.argv = ["agentcell", *command["argv"]]


if __name__ == "__main__":
    vars(agentcell.resources)["starting"] = forking
    with socket.socket(fileno=os.dup(STDIN)) as ours:
        asked = serve(ours)
    if asked is not None:
        become(asked)
        main()
