"""A worker without any of ours: it reads the request, asks the model itself, runs its tools, and answers.

`start.py workers FAULT...`: each fault is a method that does one thing wrong; with the fault `none` it does
everything right.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

LIMIT = 32 * 1024 * 1024
PIECE = 64 * 1024

KNOWN = {
    **dict.fromkeys(("session_name", "agent_type", "project_dir", "starting_message", "id", "spec_dir"), str),
    **dict.fromkeys(("result_file", "events", "session_id"), str),
    **dict.fromkeys(("protocol", "max_turns"), int),
    **dict.fromkeys(("allowed_tools",), list),
    "lifeline": bool,
}
REQUIRED = ("session_name", "agent_type", "project_dir")

MARK = "TEST_WORKER"
CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}


class Ended(Exception):  # noqa: N818 - how a session can end
    """The session ends with this error."""

    def __init__(self, category: str, message: str, **members: Any) -> None:
        self.error = {
            "category": category,
            "message": message,
            "retryable": False,
            "hint": None,
            "http_status": None,
            "retry_after_s": None,
            "partial_response": None,
            "details": {},
            **members,
        }
        super().__init__(message)


def refusal(member: str | None, reason: str, hint: str) -> Ended:
    return Ended("bad_request", f"{member}: {reason}; {hint}", hint=hint, details={"member": member, "reason": reason})


class Worker:
    """The sound one."""

    def __init__(self) -> None:
        self.request: dict[str, Any] = {}
        self.tools = 0
        self.usage: dict[str, int] = {}
        self.session_id = f"7b0c4b3e-53f7-4b4f-9a44-{os.getpid():012x}"
        self.messages: list[dict[str, Any]] = []

    def main(self) -> int:
        for name in CODES:
            signal.signal(signal.Signals[name], self.on_signal)
        signal.signal(signal.SIGUSR1, self.on_lost_host)
        try:
            self.request = self.read()
            self.check(self.request)
            result = self.result(self.status(), self.converse(), None)
        except Ended as ended:
            result = self.result("error", str(ended), ended.error)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        self.event({"type": "outcome", "result": result})
        self.sweep()
        self.finish(result)
        return self.exit_code(result)

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        raise Ended("cancelled", f"cancelled by {name}", details={"signal": name})

    def on_lost_host(self, _number: int, _frame: FrameType | None) -> None:
        raise Ended("host_lost", "stdin has ended", retryable=True)

    def read(self) -> dict[str, Any]:
        data = bytearray()
        while chunk := os.read(0, PIECE):
            data += chunk
            if len(data) > LIMIT:
                raise refusal(None, "the line is too long", "put it into a file")
            if b"\n" in chunk and b"\n" in (lines := data.lstrip(b" \r\n")):
                return self.decoded(lines.partition(b"\n")[0])
        if not data.strip():
            raise refusal(None, "stdin ended without a line", "send the request as one line")
        return self.decoded(data)

    def decoded(self, line: bytes | bytearray) -> dict[str, Any]:
        try:
            message = json.loads(line.decode("utf-8-sig"))
        except ValueError as invalid:
            raise refusal(None, str(invalid), "send one JSON object on one line") from None
        if not isinstance(message, dict):
            raise refusal(None, "it is no object", "send one JSON object on one line")
        self.request = message
        return message

    def check(self, request: dict[str, Any]) -> None:
        for name, value in request.items():
            if name not in KNOWN:
                from difflib import get_close_matches

                close = get_close_matches(name, KNOWN, n=1)
                raise refusal(name, "is not known", f"did you mean {close[0]}?" if close else "leave it out")
            if not isinstance(value, KNOWN[name]):
                raise refusal(name, "has a wrong type", "see the schema")
        for name in REQUIRED:
            if name not in request:
                raise refusal(name, "is missing", "add it")
        if request.get("protocol", 1) != 1:
            raise refusal("protocol", "is not spoken here", "send 1")
        if request.get("events", "none") not in {"none", "summary", "full"}:
            raise refusal("events", "is not known", "give none, summary or full")

    def converse(self) -> str:
        self.event({"type": "hello", "protocol": 1, "pid": os.getpid(), "agentcell": "0", "sdk": "none", "cli": None,
                    "start": "cold"})  # fmt: skip
        self.event({"type": "session_started", "session_id": self.session_id, "model": "m"})
        if self.request.get("lifeline"):
            threading.Thread(target=self.watch, daemon=True).start()
        self.messages.append({"role": "user", "content": self.request["starting_message"]})
        while True:
            answer = self.asked()
            self.count(answer["usage"])
            text = "".join(block["text"] for block in answer["content"] if block["type"] == "text")
            self.say(text)
            if answer["stop_reason"] != "tool_use":
                return text
            self.messages.append({"role": "assistant", "content": answer["content"]})
            used = [self.use(block) for block in answer["content"] if block["type"] == "tool_use"]
            self.messages.append({"role": "user", "content": used})

    def asked(self) -> dict[str, Any]:
        body = json.dumps({"model": "m", "max_tokens": 1000, "messages": self.messages}).encode()
        host, port = os.environ["ANTHROPIC_BASE_URL"].removeprefix("http://").split(":")
        head = (
            "POST /v1/messages HTTP/1.0\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nx-claude-code-session-id: {self.session_id}\r\n\r\n"
        )
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head.encode() + body)
            answer = b"".join(iter(lambda: connection.recv(PIECE), b""))
        head, _, content = answer.decode().partition("\r\n\r\n")
        if (status := int(head.split()[1])) != 200:
            raise Ended("authentication", "the API refused the key", http_status=status)
        return dict(json.loads(content))

    def count(self, usage: dict[str, int]) -> None:
        self.usage = {name: number + self.usage.get(name, 0) for name, number in usage.items()}

    def say(self, text: str) -> None:
        for at in range(0, len(text), PIECE):
            self.event({"type": "text_delta", "text": text[at : at + PIECE]})
        self.event({"type": "text", "text": text})

    def use(self, call: dict[str, Any]) -> dict[str, Any]:
        self.tools += 1
        self.event({"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["input"]})
        ended = subprocess.run(
            ["sh", "-c", call["input"]["command"]],
            env={**os.environ, MARK: str(os.getpid())},
            cwd=self.request["project_dir"],
            stdin=subprocess.DEVNULL,
            stdout=self.tools_output(),
            stderr=subprocess.DEVNULL,
            check=False,
        )
        is_error = ended.returncode != 0
        self.event({"type": "tool_result", "id": call["id"], "is_error": is_error, "bytes": 0})
        return {"type": "tool_result", "tool_use_id": call["id"], "content": "done", "is_error": is_error}

    def tools_output(self) -> int | None:
        return subprocess.DEVNULL

    def watch(self) -> None:
        while os.read(0, PIECE):
            pass
        os.kill(os.getpid(), signal.SIGUSR1)

    def status(self) -> str:
        if "spec_dir" not in self.request:
            return "complete"
        plan = json.loads(Path(self.request["spec_dir"], "implementation_plan.json").read_text())
        states = [task["status"] for phase in plan["phases"] for task in phase["subtasks"]]
        return "complete" if set(states) == {"completed"} else "continue"

    def result(self, status: str, response: str, error: dict[str, Any] | None) -> dict[str, Any]:
        given = self.request if isinstance(self.request, dict) else {}
        names = {name: value if isinstance(value := given.get(name), str) else None for name in ("agent_type", "id")}
        if error is None or error["category"] != "bad_request":
            names["id"] = names["id"] or given["session_name"]
        return {
            "status": status,
            "response": response,
            "session_name": given.get("session_name"),
            "type": "result",
            "protocol": 1,
            "id": names["id"],
            "agent_type": names["agent_type"],
            "error": error,
            "session_id": self.session_id,
            "model": "m",
            "usage": self.usage,
            "cost_usd": None,
            "num_turns": 1,
            "stop_reason": "end_turn",
            "execution_time": 0.0,
            "working_time": 0.0,
            "tool_calls": self.tools,
            "permission_denials": [],
            "warnings": [],
            "flow": None,
            "structured_output": None,
            "swept_processes": 0,
            "auth_source": None,
            "transcript": None,
        }

    def event(self, message: dict[str, Any]) -> None:
        wanted = self.request.get("events", "none")
        if wanted == "full" or (wanted == "summary" and message["type"] != "text_delta"):
            self.write(message)

    def finish(self, result: dict[str, Any]) -> None:
        if file := self.request.get("result_file"):
            Path(file).write_bytes(self.line(result))
        self.write(result)

    def write(self, message: dict[str, Any]) -> None:
        left = self.line(message)
        while left:
            left = left[os.write(1, left) :]

    def line(self, message: dict[str, Any]) -> bytes:
        return json.dumps(message).encode() + b"\n"

    def sweep(self) -> None:
        """Until none is found, twice."""
        mark = f"{MARK}={os.getpid()}".encode()
        clear = 0
        while clear < 2:
            pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
            found = [pid for pid in pids if mark in environment(pid)]
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            clear = 0 if found else clear + 1
            time.sleep(0.01)

    def exit_code(self, result: dict[str, Any]) -> int:
        match result["error"]:
            case None:
                return 0
            case {"category": "bad_request"}:
                return 2
            case {"category": "cancelled", "details": details}:
                return CODES[details["signal"]]
        return 1


def environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


class TwoResults(Worker):
    def finish(self, result: dict[str, Any]) -> None:
        super().finish(result)
        self.write(result)


class ResultNotLast(Worker):
    def finish(self, result: dict[str, Any]) -> None:
        super().finish(result)
        self.event({"type": "usage", "input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0})  # fmt: skip


class WrongOrder(Worker):
    def result(self, status: str, response: str, error: dict[str, Any] | None) -> dict[str, Any]:
        result = super().result(status, response, error)
        return {"type": result.pop("type"), **result}


class PrintsOnStdout(Worker):
    def check(self, request: dict[str, Any]) -> None:
        print("worker is starting", flush=True)
        super().check(request)


class ToolsShareStdout(Worker):
    def tools_output(self) -> int | None:
        return None


class NoFinalLineFeed(Worker):
    def finish(self, result: dict[str, Any]) -> None:
        os.write(1, self.line(result).rstrip()) if not self.request.get("result_file") else super().finish(result)


class CarriageReturns(Worker):
    def line(self, message: dict[str, Any]) -> bytes:
        return json.dumps(message).encode() + b"\r\n"


class DiesOfSigterm(Worker):
    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self.sweep()
            os._exit(143)
        super().on_signal(number, frame)


class WrongExitCode(Worker):
    def exit_code(self, result: dict[str, Any]) -> int:
        return min(1, super().exit_code(result))


class WaitsForTheEnd(Worker):
    def check(self, request: dict[str, Any]) -> None:
        if not request.get("lifeline") and "allowed_tools" not in request:
            while os.read(0, PIECE):
                pass
        super().check(request)

    def decoded(self, line: bytes | bytearray) -> dict[str, Any]:
        if not line.startswith(b"{"):
            while os.read(0, PIECE):
                pass
        return super().decoded(line)


class LeavesAChild(Worker):
    def sweep(self) -> None:
        if self.request.get("lifeline"):
            super().sweep()


class IgnoresItsLifeline(Worker):
    def watch(self) -> None:
        return


class ForgivesEverything(Worker):
    def check(self, request: dict[str, Any]) -> None:
        for name in REQUIRED:
            if name not in request:
                raise refusal(name, "is missing", "add it")


class AsksAgain(Worker):
    def asked(self) -> dict[str, Any]:
        try:
            return super().asked()
        except Ended as ended:
            if ended.error["category"] != "authentication":
                raise
            raise Ended("server_error", "the API failed", retryable=True) from None


class Forgetful(Worker):
    def result(self, status: str, response: str, error: dict[str, Any] | None) -> dict[str, Any]:
        return {**super().result(status, response, error), "id": None}

    def event(self, message: dict[str, Any]) -> None:
        if message["type"] != "text_delta":
            super().event(message)

    def status(self) -> str:
        return "complete"

    def finish(self, result: dict[str, Any]) -> None:
        self.write(result)


class GreetsLate(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.hello: dict[str, Any] = {}

    def event(self, message: dict[str, Any]) -> None:
        if message["type"] == "hello":
            self.hello = message
            return
        super().event(message)
        if message["type"] == "session_started":
            super().event(self.hello)


class CountsTheLastTurn(Worker):
    def count(self, usage: dict[str, int]) -> None:
        self.usage = usage


class CountsTurnsWithTools(Worker):
    def result(self, status: str, response: str, error: dict[str, Any] | None) -> dict[str, Any]:
        result = super().result(status, response, error)
        return {**result, "tool_calls": min(1, self.tools)}


class PromisesAnotherAttempt(Worker):
    def result(self, status: str, response: str, error: dict[str, Any] | None) -> dict[str, Any]:
        return super().result(status, response, error and {**error, "retryable": True})


FAULTS: dict[str, type[Worker]] = {
    "none": Worker,
    "two results": TwoResults,
    "result not last": ResultNotLast,
    "wrong order": WrongOrder,
    "prints on stdout": PrintsOnStdout,
    "tools share stdout": ToolsShareStdout,
    "no final line feed": NoFinalLineFeed,
    "carriage returns": CarriageReturns,
    "dies of SIGTERM": DiesOfSigterm,
    "wrong exit code": WrongExitCode,
    "waits for the end": WaitsForTheEnd,
    "leaves a child": LeavesAChild,
    "ignores its lifeline": IgnoresItsLifeline,
    "forgives everything": ForgivesEverything,
    "takes 401 for a passing failure": AsksAgain,
    "greets late": GreetsLate,
    "forgets what was asked for": Forgetful,
    "counts the last turn": CountsTheLastTurn,
    "counts turns with tools": CountsTurnsWithTools,
    "promises another attempt": PromisesAnotherAttempt,
}


def main(*faults: str) -> None:
    broken: type[Worker] = type("Broken", tuple(FAULTS[name] for name in faults), {})
    sys.exit(broken().main())
