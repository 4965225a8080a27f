"""A host without any of ours: `start.py hosts FAULT...` runs each session as a worker of its own, two at a time.

Each fault is a method that does one thing wrong; with the fault `none` it does everything right.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

START = str(Path(__file__).with_name("start.py"))

AT_ONCE = 2
LIMIT = 32 * 1024 * 1024
PIECE = 64 * 1024
BACKLOG_BYTES = 256 * 1024
ROOM_SECONDS = 0.2
UNFINISHED_SECONDS = 5.0
LOOK_SECONDS = 0.2
CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}
MEMBERS = {"run": {"type", "id", "request", "limits"}, "cancel": {"type", "id"}, "shutdown": {"type"}}

HOST_MEMBERS: dict[str, Any] = {
    "attempts": [],
    "exit_code": None,
    "signal": None,
    "violated_limits": [],
    "peak_memory_mb": None,
    "stderr_tail": None,
    "start": "cold",
}


class Refused(Exception):  # noqa: N818 - how a line can end
    """A line that nothing comes of."""

    def __init__(self, member: str | None, reason: str, hint: str) -> None:
        message = f"{member}: {reason}; {hint}"
        details = {"member": member, "reason": reason}
        self.error = {"category": "bad_request", "message": message, "hint": hint, "details": details}
        super().__init__(message)


class Over(Exception):  # noqa: N818 - how a host can end
    """It is time to end."""


class Outlet:
    """The only writer of lines: what must not be lost is always taken, an event only while there is room."""

    def __init__(self) -> None:
        self.is_gone = False
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._write, daemon=True).start()

    def put(self, line: bytes) -> None:
        with self._changed:
            self._lines.append(line)
            self._size += len(line)
            self._changed.notify_all()

    def has_room(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._size < BACKLOG_BYTES or self.is_gone, seconds)

    def drain(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._lines or self.is_gone)

    def _write(self) -> None:
        while not self.is_gone:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._lines))
                line = left = self._lines[0]
            try:
                while left:
                    left = left[os.write(1, left) :]
            except OSError:
                self.is_gone = True
                print("nobody reads", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGUSR1)
            with self._changed:
                self._lines.popleft()
                self._size -= len(line)
                self._changed.notify_all()


class Run:
    """One of its lines, with its worker once it has one."""

    def __init__(self, line: dict[str, Any]) -> None:
        self.id = line["id"]
        self.request = {**line["request"], "id": line["id"]}
        self.limits = line.get("limits") or {}
        self.worker: subprocess.Popen[bytes] | None = None
        self.cancelled: str | None = None
        self.has_timed_out = False
        self.dropped = 0


class Host:
    """The sound one."""

    worker_fault = "none"

    def __init__(self) -> None:
        self.outlet = Outlet()
        self.lock = threading.RLock()
        self.live: dict[str, Run] = {}
        self.waiting: deque[Run] = deque()
        self.idle = self.at_once()
        self.is_closed = False
        self.code = 0
        self.threads: list[threading.Thread] = []

    def at_once(self) -> int:
        return AT_ONCE

    def main(self) -> int:
        for name in CODES:
            signal.signal(signal.Signals[name], self.on_signal)
        signal.signal(signal.SIGUSR1, self.on_news)
        try:
            self.write({"type": "hello", "protocol": 1, "pid": os.getpid(), "agentcell": "0", "sdk": None, "cli": None,
                        "max_sessions": AT_ONCE, "capabilities": ["run", "cancel", "shutdown"]})  # fmt: skip
            self.read()
            if not self.is_closed:
                self.cancel_all("SIGTERM")
        except Over:
            pass
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        while self.threads:
            self.threads.pop().join()
        self.outlet.drain()
        return self.code

    def on_signal(self, number: int, _frame: object) -> None:
        name = signal.Signals(number).name
        self.code = CODES[name]
        self.cancel_all(name)
        raise Over

    def on_news(self, _number: int, _frame: object) -> None:
        if self.outlet.is_gone:
            self.code = 1
            self.cancel_all("SIGTERM")
            raise Over
        if self.is_closed and not self.live:
            raise Over

    def read(self) -> None:
        data = bytearray()
        is_told = False
        begun = 0.0
        poll = select.poll()
        poll.register(0, select.POLLIN)
        while True:
            if not poll.poll(LOOK_SECONDS * 1000):  # a signal that came just before the wait is minded after it
                if data and not is_told and time.monotonic() - begun >= UNFINISHED_SECONDS:
                    is_told = True
                    self.warn("unfinished_line", "end each line with a line feed, and flush")
                continue
            chunk = os.read(0, PIECE)
            if not chunk:
                return
            begun = begun if data else time.monotonic()
            data += chunk
            if b"\n" in chunk:
                *lines, data = data.split(b"\n")
                is_told, begun = False, time.monotonic()
                for line in lines:
                    self.take(bytes(line))

    def take(self, line: bytes) -> None:
        if not line.strip():
            return
        message: object = None
        try:
            message = self.decoded(line)
            self.act(message)
        except Refused as refused:
            self.refuse(message, refused)

    def decoded(self, line: bytes) -> dict[str, Any]:
        if len(line) > LIMIT:
            raise Refused(None, "the line is too long", "put it into a file")
        try:
            message = json.loads(line)
        except ValueError as invalid:
            raise Refused(None, str(invalid), "send one object on one line") from None
        if not isinstance(message, dict):
            raise Refused(None, "it is no object", "send one object on one line")
        return message

    def refuse(self, message: object, refused: Refused) -> None:
        run_id = message.get("id") if isinstance(message, dict) else None
        named = {"id": run_id} if isinstance(run_id, str) else {}
        self.write({"type": "refused", **named, "error": refused.error})

    def act(self, line: dict[str, Any]) -> None:
        kind = line.get("type")
        if kind not in MEMBERS:
            raise Refused("type", "is not known", "give run, cancel or shutdown")
        for name in line.keys() - MEMBERS[kind]:
            raise Refused(name, "is not known", "leave it out")
        if kind == "shutdown":
            self.shutdown()
        elif kind == "cancel":
            self.cancel(line["id"])
        else:
            self.check(line)
            self.accept(Run(line))

    def check(self, line: dict[str, Any]) -> None:
        run_id, request = line.get("id"), line.get("request")
        if self.is_closed:
            raise Refused(None, "it is shutting down", "start another")
        if not isinstance(run_id, str) or "/" in run_id:
            raise Refused("id", "is no name", "give one")
        if run_id in self.live:
            raise Refused("id", "is live", "wait for its result")
        if not isinstance(request, dict):
            raise Refused("request", "is missing", "add it")
        if "limits" in request:
            raise Refused("request.limits", "does not belong here", "limits travel beside the request")
        if request.get("id", run_id) != run_id:
            raise Refused("request.id", "is another one", "leave it out")
        for name in (line.get("limits") or {}).keys() - {"max_execution_seconds"}:
            raise Refused(f"limits.{name}", "is not a limit", "leave it out")

    def shutdown(self) -> None:
        self.is_closed = True
        self.on_news(0, None)

    def accept(self, run: Run) -> None:
        with self.lock:
            self.live[run.id] = run
            self.waiting.append(run)
        self.next()

    def next(self) -> None:
        with self.lock:
            if self.idle and self.waiting:
                self.idle -= 1
                thread = threading.Thread(target=self.perform, args=(self.waiting.popleft(),))
                self.threads.append(thread)
                thread.start()

    def cancel(self, run_id: str) -> None:
        with self.lock:
            run = self.live.get(run_id)
            if run is None:
                self.warn("unknown_run", "there is no such run", id=run_id)
            elif run in self.waiting:
                self.waiting.remove(run)
                self.end(run, self.failed(run, "cancelled", {"signal": "SIGTERM"}))
            else:
                self.stop(run, "SIGTERM")

    def cancel_all(self, name: str) -> None:
        with self.lock:
            self.is_closed = True
            for run in list(self.live.values()):
                if run in self.waiting:
                    self.cancel(run.id)
                else:
                    self.stop(run, name)

    def stop(self, run: Run, name: str) -> None:
        run.cancelled = name
        if run.worker is not None:
            run.worker.send_signal(signal.Signals[name])

    def perform(self, run: Run) -> None:
        with self.lock:
            argv = [sys.executable, "-S", "-E", START, "workers", self.worker_fault]
            worker = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
            run.worker = worker
        clock = threading.Timer(run.limits.get("max_execution_seconds", 3600), self.time_out, [run])
        clock.daemon = True
        clock.start()
        result: dict[str, Any] | None = None
        with worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(json.dumps(run.request).encode() + b"\n")
            worker.stdin.close()
            for line in worker.stdout:
                message = json.loads(line)
                if message["type"] == "result":
                    result = {**message, **HOST_MEMBERS}
                else:
                    self.tell(run, message)
        clock.cancel()
        with self.lock:
            self.idle += 1
            self.end(run, self.decided(run, result))
        self.next()
        os.kill(os.getpid(), signal.SIGUSR1)

    def time_out(self, run: Run) -> None:
        run.has_timed_out = True
        self.stop(run, "SIGTERM")

    def decided(self, run: Run, result: dict[str, Any] | None) -> dict[str, Any]:
        if run.has_timed_out:
            failed = self.failed(run, "timeout", {"limit": "wall"})
            return {**failed, "violated_limits": ["max_execution_seconds"]}
        if result is None:
            details = {"signal": run.cancelled or "SIGKILL"}
            return self.failed(run, "cancelled" if run.cancelled else "crashed", details)
        return result

    def failed(self, run: Run, category: str, details: dict[str, Any]) -> dict[str, Any]:
        error = {"category": category, "message": category, "retryable": category == "crashed", "details": details}
        return {
            "status": "error",
            "response": category,
            "session_name": run.request["session_name"],
            "type": "result",
            "protocol": 1,
            "id": run.id,
            "agent_type": "coder",
            "error": error,
            "session_id": None,
            "model": None,
            "usage": {},
            "cost_usd": 0.0,
            "num_turns": 0,
            "stop_reason": None,
            "execution_time": 0.0,
            "working_time": 0.0,
            "tool_calls": 0,
            "permission_denials": [],
            "warnings": [],
            "flow": None,
            "structured_output": None,
            "swept_processes": 0,
            "auth_source": None,
            "transcript": None,
            **HOST_MEMBERS,
        }

    def end(self, run: Run, result: dict[str, Any]) -> None:
        error = result["error"]
        self.forget(run)
        if error is not None and error["category"] == "bad_request":
            details = error["details"]
            refused = Refused(f"request.{details['member']}", details["reason"], error["hint"])
            self.refuse({"id": run.id}, refused)
            return
        self.tell_dropped(run)
        self.finish(run, result)

    def forget(self, run: Run) -> None:
        del self.live[run.id]

    def finish(self, run: Run, result: dict[str, Any]) -> None:
        self.write({**result, "id": run.id})

    def tell(self, run: Run, event: dict[str, Any]) -> None:
        if not self.outlet.has_room(0 if run.dropped else ROOM_SECONDS):
            run.dropped += 1
            return
        self.tell_dropped(run)
        self.write(self.of_run(run, event))

    def tell_dropped(self, run: Run) -> None:
        if run.dropped:
            self.write({"type": "thinned", "id": run.id, "dropped": run.dropped})
            run.dropped = 0

    def of_run(self, run: Run, event: dict[str, Any]) -> dict[str, Any]:
        rest = {"tool_use_id" if name == "id" else name: value for name, value in event.items() if name != "type"}
        return {"type": event["type"], "id": run.id, **rest}

    def warn(self, code: str, message: str, **members: str) -> None:
        self.write({"type": "warning", **members, "code": code, "message": message})

    def write(self, message: dict[str, Any]) -> None:
        self.outlet.put(json.dumps(message).encode() + b"\n")


class TwoResults(Host):
    def finish(self, run: Run, result: dict[str, Any]) -> None:
        super().finish(run, result)
        super().finish(run, result)


class EventsWithoutIds(Host):
    def of_run(self, run: Run, event: dict[str, Any]) -> dict[str, Any]:
        event = super().of_run(run, event)
        return {"type": event["type"], **{name: value for name, value in event.items() if name != "id"}}


class EventAfterResult(Host):
    def finish(self, run: Run, result: dict[str, Any]) -> None:
        super().finish(run, result)
        if run.request.get("events") == "summary":
            self.write({"type": "text", "id": run.id, "text": "That was it."})


class StopsAtWrongLines(Host):
    def refuse(self, message: object, refused: Refused) -> None:
        if refused.error["details"] == {"member": "why", "reason": "is not known"}:
            raise Over
        super().refuse(message, refused)


class OneAtATime(Host):
    def at_once(self) -> int:
        return 1


class CancelsAtShutdown(Host):
    def shutdown(self) -> None:
        self.cancel_all("SIGTERM")
        super().shutdown()


class ForgetsWhatWaits(Host):
    def cancel_all(self, name: str) -> None:
        with self.lock:
            while self.waiting:
                self.forget(self.waiting.pop())
        super().cancel_all(name)


class WaitsForItsReader(Host):
    def tell(self, run: Run, event: dict[str, Any]) -> None:
        self.outlet.drain()
        super().tell(run, event)


class ExitsWithZero(Host):
    def on_signal(self, number: int, _frame: object) -> None:
        self.cancel_all(signal.Signals(number).name)
        raise Over


class LeavesAChild(Host):
    worker_fault = "leaves a child"


class LosesCancelledRuns(Host):
    def finish(self, run: Run, result: dict[str, Any]) -> None:
        if (result["error"] or {}).get("category") != "cancelled":
            super().finish(run, result)


class MindsLittle(Host):
    def __init__(self) -> None:
        super().__init__()
        self.known: set[str] = set()

    def check(self, line: dict[str, Any]) -> None:
        super().check(line)
        if line["id"] in self.known:
            raise Refused("id", "was used", "give another")
        self.known.add(line["id"])

    def time_out(self, _run: Run) -> None:
        return

    def warn(self, code: str, message: str, **members: str) -> None:
        if code != "unknown_run":
            super().warn(code, message, **members)


class Careless(Host):
    def on_news(self, number: int, frame: object) -> None:
        if not self.outlet.is_gone:
            super().on_news(number, frame)

    def warn(self, code: str, message: str, **members: str) -> None:
        if code != "unfinished_line":
            super().warn(code, message, **members)

    def write(self, message: dict[str, Any]) -> None:
        if message["type"] == "hello" and "id" not in message:
            message = {**message, "capabilities": ["run"]}
        self.outlet.put(json.dumps(message).encode() + b"\r\n")


class GivesNoUsage(Host):
    def finish(self, run: Run, result: dict[str, Any]) -> None:
        super().finish(run, {**result, "usage": {}})


class CountsNoTools(Host):
    def finish(self, run: Run, result: dict[str, Any]) -> None:
        super().finish(run, {**result, "tool_calls": 0})


class PromisesNothing(Host):
    def failed(self, run: Run, category: str, details: dict[str, Any]) -> dict[str, Any]:
        result = super().failed(run, category, details)
        return {**result, "error": {**result["error"], "retryable": False}}


FAULTS: dict[str, type[Host]] = {
    "none": Host,
    "two results": TwoResults,
    "events without ids": EventsWithoutIds,
    "an event after the result": EventAfterResult,
    "stops at wrong lines": StopsAtWrongLines,
    "one at a time": OneAtATime,
    "cancels at shutdown": CancelsAtShutdown,
    "forgets what waits": ForgetsWhatWaits,
    "waits for its reader": WaitsForItsReader,
    "exits with 0": ExitsWithZero,
    "leaves a child": LeavesAChild,
    "loses cancelled runs": LosesCancelledRuns,
    "careless": Careless,
    "minds neither limits nor ids": MindsLittle,
    "gives no usage": GivesNoUsage,
    "counts no tools": CountsNoTools,
    "promises nothing": PromisesNothing,
}


def main(*faults: str) -> None:
    broken: type[Host] = type("Broken", tuple(FAULTS[name] for name in faults), {})
    os._exit(broken().main())
