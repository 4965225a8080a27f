"""What is done to a host: lines, in an order that shows something, and what came of them."""

import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from agentcell.conformance.check import Scene
from agentcell.conformance.program import Program
from agentcell.conformance.stage import Seen, Stage
from agentcell.conformance.worker_scenes import BEGUN, END_OF_MESSAGE, LEAVES, STALLING, answering, bash
from agentcell_protocol.framing import LINE_LIMIT

FEW = 4
"""Sessions at a time that are filled to see what waits; with more it would take too long."""

SENT_CHARACTERS = 1024 * 1024
ANSWERED_CHARACTERS = 2 * 1024 * 1024
MANY_CHUNKS = 1000
"""Of an answer with all events: more lines than a pipe holds."""

ANSWER = "Hello."
PLAIN, STALLED, KILLED, MEETS_ONE, MEETS_OTHER = (
    "a plain one",
    "a stalled one",
    "a killed one",
    "it meets the other",
    "it meets the one",
)
WAITS, MUCH, BIG = "it waits for a file", "it says much", "it is big"
"""What is in the message of a run, and says which turns it gets."""

GO = "go"

MEETING = (
    "touch {mine}; n=0; while [ ! -e {theirs} ] && [ $n -lt 300 ]; do n=$((n+1)); sleep 0.05; done; [ -e {theirs} ]"
)
"""A tool that ends well only while another one runs; at the latest after 15 s."""

SCRIPT: Mapping[str, Any] = {
    "sessions": [
        {"match": STALLED, **STALLING},
        {"match": KILLED, **STALLING},
        {"match": MEETS_ONE, **answering(bash(MEETING.format(mine="one", theirs="other")), answer=ANSWER)},
        {
            "match": MEETS_OTHER,
            **answering(bash(f"{LEAVES}; {MEETING.format(mine='other', theirs='one')}"), answer=ANSWER),
        },
        {"match": WAITS, **answering(bash(f"touch {BEGUN}; while [ ! -e {GO} ]; do sleep 0.05; done"), answer=ANSWER)},
        {"match": MUCH, "turns": [{"text": "0123456789abcdef" * 16, "repeat": 1024, "chunks": MANY_CHUNKS}]},
        {"match": BIG, **answering(answer="0123456789abcdef", repeat=ANSWERED_CHARACTERS // 16)},
    ],
    **answering(answer=ANSWER),
}


class Talk:
    """One host, spoken to; `due` counts the runs that it is to give a result, by their ids."""

    def __init__(self, stage: Stage, program: Program) -> None:
        self.stage = stage
        self.program = program
        self.due: Counter[str] = Counter()
        self.hello = program.await_message(lambda _: True) or {}

    @property
    def max_sessions(self) -> int:
        """How many runs at a time it says that it has room for."""
        given = self.hello.get("max_sessions")
        return given if isinstance(given, int) else 1

    def run(self, run_id: str, message: str, *, limits: Mapping[str, Any] | None = None, **members: Any) -> None:
        """Ask for a run that is to be accepted."""
        self.due[run_id] += 1
        request = self.stage.request(session_name=f"name-{run_id}", starting_message=message, **members)
        beside = {} if limits is None else {"limits": limits}
        self.program.say({"type": "run", "id": run_id, "request": request, **beside})

    def say(self, kind: str, **members: Any) -> None:
        """Send any other line."""
        self.program.say({"type": kind, **members})

    def result(self, run_id: str, count: int = 1) -> dict[str, Any]:
        """The result of a run, once it is there; empty if it does not come."""
        return self.program.await_message(lambda m: m.get("type") == "result" and m.get("id") == run_id, count) or {}

    def refused(self, count: int = 1) -> dict[str, Any]:
        """The `count`-th refusal; empty if it does not come."""
        return self.program.await_message(lambda m: m.get("type") == "refused", count) or {}

    def warning(self, code: str) -> dict[str, Any]:
        """The first warning with this code; empty if it does not come."""
        return self.program.await_message(lambda m: m.get("type") == "warning" and m.get("code") == code) or {}

    def await_asked(self, message: str, count: int = 1) -> None:
        """Wait until the model was asked by so many runs with this message."""
        self.stage.wait_until(lambda: len(self.stage.asked(message)) >= count, self.program)

    def seen(self) -> Seen:
        """What is seen of the host when it has ended."""
        self.stage.told |= {"due": self.due, "hello": self.hello, "max_sessions": self.max_sessions}
        return self.stage.seen(self.program)


def _talk(stage: Stage) -> Talk:
    return Talk(stage, stage.start())


def _idle(stage: Stage) -> Seen:
    talk = _talk(stage)
    talk.say("shutdown")
    return talk.seen()


def _several(stage: Stage) -> Seen:
    talk = _talk(stage)
    talk.run("r1", PLAIN)
    talk.run("r2", MEETS_ONE, events="summary", allowed_tools=["Bash"])
    talk.run("r3", MEETS_OTHER, events="full", allowed_tools=["Bash"])
    for run_id in ("r1", "r2", "r3"):
        talk.result(run_id)
    talk.say("shutdown")
    return talk.seen()


def refused_lines(stage: Stage) -> Mapping[str, bytes | dict[str, Any]]:
    """Lines that nothing is to come of, each by its name."""
    request = stage.request()
    return {
        "no JSON": b"hello\n",
        "an array": b"[1]\n",
        "no type": {"id": "x1"},
        "an unknown type": {"type": "start", "id": "x2"},
        "an unknown member": {"type": "cancel", "id": "x3", "why": "so"},
        "no id": {"type": "run", "request": request},
        "an id that is no name": {"type": "run", "id": "a/b", "request": request},
        "no request": {"type": "run", "id": "x4"},
        "a wrong request": {"type": "run", "id": "x5", "request": {**request, "max_turn": 3}},
        "limits in the request": {"type": "run", "id": "x6", "request": {**request, "limits": {"idle_seconds": 9}}},
        "an unknown limit": {"type": "run", "id": "x7", "request": request, "limits": {"max_execution_second": 9}},
        "another id in the request": {"type": "run", "id": "x8", "request": {**request, "id": "y8"}},
        "a line over the limit": b"x" * (LINE_LIMIT + 1) + b"\n",
    }


def _refusing(stage: Stage) -> Seen:
    talk = _talk(stage)
    refused = {}
    for number, (name, sent) in enumerate(refused_lines(stage).items(), 1):
        talk.program.send(sent) if isinstance(sent, bytes) else talk.program.say(sent)
        refused[name] = talk.refused(number)
        if not refused[name]:
            break
    talk.run("r1", PLAIN)
    talk.result("r1")
    talk.say("shutdown")
    stage.told["refused"] = refused
    return talk.seen()


def _live_ids(stage: Stage) -> Seen:
    talk = _talk(stage)
    talk.run("r1", STALLED)
    talk.await_asked(STALLED)
    talk.say("run", id="r1", request=stage.request())
    stage.told["again"] = talk.refused()
    talk.say("cancel", id="nobody")
    stage.told["unknown"] = talk.warning("unknown_run")
    talk.say("cancel", id="r1")
    stage.told["cancelled"] = talk.result("r1")
    talk.run("r1", PLAIN)
    stage.told["anew"] = talk.result("r1", 2)
    talk.run("r2", STALLED, limits={"max_execution_seconds": 2})
    stage.told["is_killed"] = _kill_worker_of("r3", talk)
    talk.result("r2")
    talk.say("shutdown")
    return talk.seen()


def _kill_worker_of(run_id: str, talk: Talk) -> bool:
    """Kill the process that the hello of a run names; whether there is one, and it belongs to the host."""
    talk.run(run_id, KILLED, events="summary")
    talk.await_asked(KILLED)
    hello = talk.program.await_message(lambda m: m.get("type") == "hello" and m.get("id") == run_id) or {}
    if is_own := talk.stage.owns(hello.get("pid")):
        with suppress(ProcessLookupError):  # it has just died by itself, which its result tells
            os.kill(hello["pid"], signal.SIGKILL)
        talk.result(run_id)
    else:
        talk.say("cancel", id=run_id)
    return is_own


def _queue(stage: Stage) -> Seen:
    talk = _talk(stage)
    is_filled = talk.max_sessions <= FEW
    room = talk.max_sessions if is_filled else 1
    for number in range(room):
        talk.run(f"r{number}", STALLED)
    talk.await_asked(STALLED, room)
    stage.told["is_filled"] = is_filled
    if is_filled:
        talk.run("q1", PLAIN)
        talk.run("q2", PLAIN)
        talk.say("cancel", id="q1")
        stage.told["queued"] = talk.result("q1")
    talk.program.end_input()
    return talk.seen()


def _draining(stage: Stage) -> Seen:
    talk = _talk(stage)
    talk.run("r1", WAITS, allowed_tools=["Bash"])
    talk.run("r2", PLAIN)
    stage.wait_until((stage.project / BEGUN).exists, talk.program)
    talk.say("shutdown")
    talk.say("run", id="r3", request=stage.request())
    stage.told["late"] = talk.refused()
    (stage.project / GO).touch()
    return talk.seen()


def _terminated(stage: Stage) -> Seen:
    talk = _talk(stage)
    talk.run("r1", STALLED)
    talk.await_asked(STALLED)
    talk.program.signal(signal.SIGTERM)
    return talk.seen()


def _interrupted(stage: Stage) -> Seen:
    talk = _talk(stage)
    talk.program.signal(signal.SIGINT)
    return talk.seen()


def _slow_reader(stage: Stage) -> Seen:
    talk = _talk(stage)
    files = [stage.project / "r1.json", stage.project / "r2.json"]
    talk.program.hold()
    talk.run("r1", MUCH, events="full", result_file=str(files[0]))
    talk.run("r2", BIG + "x" * SENT_CHARACTERS + END_OF_MESSAGE, result_file=str(files[1]))
    stage.told["went on"] = stage.wait_until(lambda: all(file.exists() for file in files), talk.program)
    talk.program.release()
    for run_id in ("r1", "r2"):
        talk.result(run_id)
    talk.say("shutdown")
    return talk.seen()


def _unfinished(stage: Stage) -> Seen:
    talk = _talk(stage)
    talk.program.send(b'{"type":"nothing",')
    stage.told["unfinished"] = talk.warning("unfinished_line")
    talk.program.send(b'"id":"u1"}\n')
    stage.told["ended"] = talk.refused()
    talk.say("shutdown")
    return talk.seen()


def _gone_reader(stage: Stage) -> Seen:
    talk = _talk(stage)
    talk.run("r1", STALLED)
    talk.await_asked(STALLED)
    talk.program.leave()
    stage.wait_until(partial(_has_been_told, talk), talk.program)
    seen = talk.seen()
    seen.told["stderr"] = stage.stderr()
    return seen


def _has_been_told(talk: Talk) -> bool:
    """Give it something to write, again and again: just started programs may hold the other end for a moment."""
    talk.program.send(b"hello\n")
    return talk.program.has_exited()


IDLE = Scene("shutdown at once", _idle, SCRIPT)
SEVERAL = Scene("several runs", _several, SCRIPT)
REFUSING = Scene("wrong lines", _refusing, SCRIPT)
LIVE_IDS = Scene("ids that are live, and not", _live_ids, SCRIPT)
QUEUE = Scene("the end of stdin", _queue, SCRIPT)
DRAINING = Scene("shutdown while runs go on", _draining, SCRIPT)
BY_TERM = Scene("SIGTERM", _terminated, SCRIPT)
BY_INT = Scene("SIGINT while nothing runs", _interrupted, SCRIPT)
SLOW = Scene("a slow reader", _slow_reader, SCRIPT)
UNFINISHED = Scene("part of a line", _unfinished, SCRIPT)
GONE = Scene("a reader that leaves", _gone_reader, SCRIPT)

READ: Sequence[Scene] = (*(IDLE, SEVERAL, REFUSING, LIVE_IDS, QUEUE, DRAINING, BY_TERM, BY_INT, SLOW, UNFINISHED),)
ALL: Sequence[Scene] = (*READ, GONE)
