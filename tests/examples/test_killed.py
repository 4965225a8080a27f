"""Whichever of a client and its child is killed, nothing is left running.

That the end of a client of `agentcell-worker` ends its session is seen with the shorter ones, those of the page.
"""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.examples.clients import (
    BOUND_SECONDS,
    LANGUAGES,
    STALLS,
    STAND_IN,
    WORKS,
    User,
    at_work,
    client,
    python,
    wait_for_tool,
)

from agentcell.offline import offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

each_language = pytest.mark.parametrize("language", LANGUAGES)
each_client = pytest.mark.parametrize("name", ["one", "several"])


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    with offline_model({"sessions": [{"session": 1, "turns": [WORKS, STALLS]}], "turns": [STALLS]}) as endpoint:
        yield User.at(tmp_path, endpoint)


@each_language
def test_a_client_that_is_killed_takes_its_sessions_with_it(user: User, language: str) -> None:
    with at_work(user) as up, user.starting(client(language, "several")) as process:
        wait_for_tool(up)
        assert len(user.living()) >= 5  # the client, its child, the worker, the CLI, the tool
        process.kill()
        process.wait(BOUND_SECONDS)
        user.nothing_is_left()


@each_client
@each_language
def test_a_client_whose_child_is_killed_says_so_and_fails(tmp_path: Path, language: str, name: str) -> None:
    user = User.at(tmp_path, None).with_stand_ins()
    with at_work(user) as up, user.starting(client(language, name)) as process:
        wait_for_tool(up)
        [child] = [one for one in psutil.Process(process.pid).children() if STAND_IN in one.cmdline()]
        child.kill()
        _, err = process.communicate(timeout=BOUND_SECONDS)
    assert process.returncode not in {0, None}
    assert {"one": "agentcell-worker ended", "several": "agentcell serve ended"}[name] in err.decode()
    user.nothing_runs()


def test_an_app_that_is_killed_takes_its_session_with_it(user: User) -> None:
    with at_work(user) as up, user.starting(python("coder_phase")) as process:
        wait_for_tool(up)
        process.kill()
        process.wait(BOUND_SECONDS)
        user.nothing_runs()
