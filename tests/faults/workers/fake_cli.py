#!/usr/bin/env python3
"""Stands in for the claude CLI: speaks its stream-json control protocol and follows a script of steps.

The script is the JSON in the environment variable FAKE_CLI, a list of one-member objects:

    {"await": "initialize" | "prompt" | "eof"}   read stdin until then; what asks is answered
    {"say": {...}}        write a message as a line; $SESSION and $PROMPT in its strings are filled in
    {"raw": "..."}        write this text as it is;  {"hex": "..."} these bytes
    {"long": [N, {...}]}  write a message in which $LONG is a text of N characters
    {"stderr": "..."}     write this text to stderr; {"stderr_hex": "..."} these bytes
    {"report": PATH}      write {"pid", "argv", "environment", "prompts", "mcp"} as JSON into a file
    {"spawn": "sh code"}  run a shell command in a session of its own, not waited for
    {"ignore": "SIGTERM"} no longer end on a signal
    {"hang": true}        do nothing any more, until a signal ends it
    {"exit": N}           exit with a code;          {"signal": "SIGSEGV"} die of a signal
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path


class FakeCli:
    """One run of the script."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.session = next((a.partition("=")[2] for a in argv if a.startswith(("--session-id=", "--resume="))), "")
        self.prompts: list[dict[str, object]] = []

    def run(self, steps: list[dict[str, object]]) -> int:
        """Take the steps one by one; the exit code."""
        for step in steps:
            ((name, value),) = step.items()
            if name == "exit":
                return int(str(value))
            getattr(self, f"do_{name}")(value)
        return 0

    def do_await(self, what: str) -> None:
        """Read stdin until `what` has come."""
        for line in sys.stdin:
            message = json.loads(line)
            if message["type"] == "control_request":
                self.answer(message)
                arrived = message["request"]["subtype"]
            else:
                self.prompts.append(message)
                arrived = "prompt"
            if arrived == what:
                return

    def answer(self, asked: dict[str, object]) -> None:
        """Say yes to what the SDK asks for."""
        response = {"subtype": "success", "request_id": asked["request_id"], "response": {"commands": []}}
        self.do_say({"type": "control_response", "response": response})

    def do_say(self, message: object) -> None:
        """One message, one line."""
        self.do_raw(self.filled(json.dumps(message)) + "\n")

    def filled(self, text: str) -> str:
        """The text with what only this run knows."""
        prompt = str(self.prompts[-1].get("uuid", "")) if self.prompts else ""
        return text.replace("$SESSION", self.session).replace("$PROMPT", prompt)

    def do_long(self, value: list[object]) -> None:
        """A message that holds a very long text."""
        size, message = value
        self.do_raw(self.filled(json.dumps(message)).replace("$LONG", "x" * int(str(size))) + "\n")

    def do_raw(self, text: str) -> None:
        """Exactly this on stdout."""
        write(1, text.encode())

    def do_hex(self, text: str) -> None:
        """Exactly these bytes on stdout."""
        write(1, bytes.fromhex(text))

    def do_stderr(self, text: str) -> None:
        """Exactly this on stderr."""
        write(2, text.encode())

    def do_stderr_hex(self, text: str) -> None:
        """Exactly these bytes on stderr."""
        write(2, bytes.fromhex(text))

    def do_report(self, path: str) -> None:
        """What this process was given."""
        config = next((self.argv[i + 1] for i, a in enumerate(self.argv) if a == "--mcp-config"), None)
        report = {
            "pid": os.getpid(),
            "argv": self.argv,
            "environment": dict(os.environ),
            "prompts": self.prompts,
            "mcp": config and {"mode": Path(config).stat().st_mode & 0o777, "text": Path(config).read_text()},
        }
        Path(path).write_text(json.dumps(report))

    def do_spawn(self, command: str) -> None:
        """A child nobody waits for, which holds none of this process's streams."""
        null = subprocess.DEVNULL
        subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True, stdin=null, stdout=null, stderr=null)

    def do_ignore(self, name: str) -> None:
        """No longer end on this signal."""
        signal.signal(signal.Signals[name], signal.SIG_IGN)

    def do_hang(self, _: object) -> None:
        """Nothing any more."""
        while True:
            signal.pause()

    def do_signal(self, name: str) -> None:
        """Die of it."""
        signal.signal(signal.Signals[name], signal.SIG_DFL)
        os.kill(os.getpid(), signal.Signals[name])


def write(fd: int, data: bytes) -> None:
    """All of it."""
    while data:
        data = data[os.write(fd, data) :]


if __name__ == "__main__":
    sys.exit(FakeCli(sys.argv[1:]).run(json.loads(os.environ["FAKE_CLI"])))
