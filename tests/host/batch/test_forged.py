"""A run directory that somebody forged, or that fell apart in odd ways, is told of or refused; nothing else happens."""

import fcntl
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import orjson
from click.testing import CliRunner
from tests.host.batch.run_directory import begun

from agentcell.attempts import Tried
from agentcell.batch import journal
from agentcell.batch.directory import read_history
from agentcell.batch.identity import slug
from agentcell.batch.reading import read_batch
from agentcell.cli import agentcell
from agentcell.errors import RunDirectoryError
from agentcell_protocol.cell import new_marker
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.result import Attempt, SessionResult, failed

SEED = 1

ROUNDS = 40

MEGABYTE = 1024 * 1024

SESSION = "0c4989bf-3a27-495f-bd3f-2db89ed162d9"

ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    -1e308,
    1e308,
    "",
    "7",
    "\x00",
    "../..",
    "\x1b[2Jx\u202e",
    "x" * 300,
    [],
    ["a"],
    [[{}]],
    {},
    {"category": ["crashed"]},
    {"id": 5, "execution_time": "long"},
]

NAMES = ["run.json", "lock", "journal.jsonl", "results.jsonl", f"cells/{slug('b')}/1/events.jsonl"]


def attempts(*categories: Category) -> list[Attempt]:
    return [
        Attempt(number=number, status="error", error=session_error(category, "it ended"), cost_usd=0.1)
        for number, category in enumerate(categories, 1)
    ]


def messages() -> dict[str, list[dict[str, Any]]]:
    """A batch of which one row is done, one has failed, one runs and one waits: by file."""
    crash = session_error(Category.CRASHED, "it died")
    started: dict[str, Any] = {"digest": "1:aa", "line": 1, "mode": "fresh", "session_id": SESSION, "host_pid": 1}
    lines = [journal.opened(1.0, host_pid=1, boot_id="before", config={"rows": 4})]
    lines += [
        journal.started(2.0, id=id_, attempt=1, marker=new_marker(), boot_id="before", **started) for id_ in "abcd"
    ]
    [tried] = attempts(Category.CRASHED)
    lines += [journal.ended(3.0, id=id_, tried=Tried(tried), retry_at=9.0) for id_ in ("a", "c", "d")]
    lines += [journal.reopened(4.0, ids=["d"]), journal.paused(5.0, reason="a limit", until=9.0)]
    lines += [{"at": 6.0, "event": "moved", "id": "a"}, journal.closed(7.0, reason="the deadline is reached")]
    done = SessionResult(status="complete", response="Done.", session_name="a", attempts=attempts(Category.CRASHED))
    bad = failed(crash, session_name="c", attempts=attempts(Category.CRASHED, Category.NETWORK))
    results = [{**one.to_message(), "id": one.session_name, "digest": "1:aa", "line": 1} for one in (done, bad)]
    return {
        "run.json": [{"format": 1, "agentcell": "0.1.0", "protocol": 1, "created": 1.0, "config": {}}],
        "lock": [{"pid": 2**22 + 1, "since": 1.0, "started": 1.0, "host": "there"}],
        "journal.jsonl": lines,
        "results.jsonl": results,
        NAMES[-1]: [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}],
    }


def forge(chance: random.Random, message: dict[str, Any]) -> Any:
    """The message with an odd value somewhere, without a member, or another value altogether."""
    way = chance.random()
    if way < 0.05:
        return chance.choice(ODD)
    forged, name = dict(message), chance.choice(sorted(message))
    if way < 0.2:
        del forged[name]
    elif way < 0.5 and isinstance(forged[name], dict) and forged[name]:
        forged[name] = forge(chance, forged[name])
    else:
        alike = [odd for odd in ODD if type(odd) is type(forged[name])]
        forged[name] = chance.choice(alike if alike and chance.random() < 0.5 else ODD)
    return forged


def damage(chance: random.Random, line: bytes) -> bytes:
    """The line with a byte too much, too few, or another one, once in a while."""
    at = chance.randrange(len(line))
    return line[:at] + chance.choice([b"", b"\xff", b"\n", b'"']) + line[at + chance.randrange(2) :]


def write_forged(path: Path, chance: random.Random) -> None:
    """Write the whole of it, with some lines that are not as they were."""
    for name, lines in messages().items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        forged = [forge(chance, one) if chance.random() < 0.4 else one for one in lines]
        content = [orjson.dumps(one) + b"\n" for one in forged]
        file.write_bytes(b"".join(damage(chance, one) if chance.random() < 0.05 else one for one in content))


def look(path: Path) -> None:
    """All that reads it without changing anything."""
    with suppress(RunDirectoryError, OSError):
        read_batch(path, time.time())
    with suppress(RunDirectoryError, OSError):
        read_history(path)
    for options in ((), ("--json", "--content")):
        shown = CliRunner().invoke(agentcell, ["status", str(path), *options])
        assert shown.exit_code in {0, 1, 2}
        assert shown.exception is None or isinstance(shown.exception, SystemExit | click.ClickException), shown


def test_whatever_it_says_it_is_told_of_or_refused(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    for number in range(ROUNDS):
        path = tmp_path / f"{number}.run"
        write_forged(path, chance)
        with (path / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as if it ran
            look(path)
        with suppress(RunDirectoryError, OSError), begun(path, {"rows": 4}) as run:
            assert list(run.history.open_attempts()) == []
            assert all(run.history.of(id_) is not None for id_ in run.history.pending())
        look(path)


def test_a_line_of_megabytes_is_a_line(tmp_path: Path) -> None:
    write_forged(tmp_path, random.Random(SEED))
    long = {**messages()["results.jsonl"][0], "response": "x" * (5 * MEGABYTE), "id": "long"}
    (tmp_path / "results.jsonl").write_bytes(orjson.dumps(long) + b"\n")
    (tmp_path / "run.json").write_bytes(orjson.dumps(messages()["run.json"][0]))
    assert read_batch(tmp_path, time.time()).snapshot.done == 1
