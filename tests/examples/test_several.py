"""The examples of several sessions through `agentcell serve` do what they say."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.examples.clients import LANGUAGES, STALLS, User, client

from agentcell.offline import Endpoint, offline_model

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SESSIONS = [
    {"match": "go wrong", "turns": [STALLS]},
    {"match": "missing", "turns": [{"text": 'Tests, and "docs" ✅.'}]},
]

each_language = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with offline_model({"sessions": SESSIONS, "turns": [{"text": "A shop."}]}) as endpoint:
        yield endpoint


@pytest.fixture
def user(tmp_path: Path, endpoint: Endpoint) -> User:
    return User.at(tmp_path, endpoint)


@each_language
def test_two_are_answered_and_the_last_is_cancelled(user: User, language: str) -> None:
    two_are_answered_and_the_last_is_cancelled(user.run(client(language, "several")))


def test_the_shell_does_without_jq(tmp_path: Path) -> None:
    user = User.at(tmp_path, None).with_stand_ins()
    two_are_answered_and_the_last_is_cancelled(user.on_a_machine_without("jq").run(client("shell", "several")))


def two_are_answered_and_the_last_is_cancelled(ended: "subprocess.CompletedProcess[str]") -> None:
    assert (ended.returncode, ended.stderr) == (0, "")
    told = by_run(ended.stdout)
    assert set(told) == {"q1", "q2", "q3"}
    assert told["q1"][-1] == "complete: A shop."
    assert told["q2"][-1] == 'complete: Tests, and "docs" ✅.'
    assert told["q3"][-1].startswith("cancelled: the session was cancelled")
    assert {"session_started", "text: A shop."} <= set(told["q1"])
    assert "session_started" in told["q3"]


@each_language
def test_what_is_refused_is_told_and_the_others_are_answered(tmp_path: Path, language: str) -> None:
    user = User.at(tmp_path, None).with_stand_ins()
    ended = user.run(client(language, "several", "What is here?", " ", "What could go wrong?"))
    assert (ended.returncode, ended.stderr) == (0, "")
    told = by_run(ended.stdout)
    assert told["q1"][-1] == "complete: A shop."
    assert told["q2"] == ["refused: request.starting_message: is blank; say what the agent is to do"]
    assert told["q3"][-1].startswith("cancelled: ")


def by_run(printed: str) -> dict[str, list[str]]:
    """What was printed under each id, in order."""
    told = defaultdict(list)
    for line in printed.splitlines():
        run_id, _, what = line.partition(" ")
        told[run_id].append(what)
    return told
