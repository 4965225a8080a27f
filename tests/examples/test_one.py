"""The examples of one session through `agentcell-worker` do what they say."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.examples.clients import LANGUAGES, User, client

from agentcell.offline import Endpoint, offline_model

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ODD = 'say "a\\b"\n\tand ✅, $HOME, %s'

ANSWER = 'A "quoted\\n"\n\tline\u2028and ✅ %d'

each_language = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with offline_model({"turns": [{"text": ANSWER}]}) as endpoint:
        yield endpoint


@pytest.fixture
def user(tmp_path: Path, endpoint: Endpoint) -> User:
    return User.at(tmp_path, endpoint)


@each_language
def test_the_answer_is_printed_as_it_is_and_the_message_arrives_as_it_is(
    user: User, endpoint: Endpoint, language: str
) -> None:
    ended = user.run(client(language, "one", ODD))
    assert (ended.returncode, ended.stdout) == (0, f"{ANSWER}\n"), ended.stderr
    assert [asked.prompt for asked in endpoint.requests if asked.kind == "turn"] == [ODD]


def test_the_shell_does_without_jq(user: User, endpoint: Endpoint) -> None:
    ended = user.on_a_machine_without("jq").run(client("shell", "one", ODD))
    assert (ended.returncode, ended.stdout) == (0, f"{ANSWER}\n"), ended.stderr
    assert [asked.prompt for asked in endpoint.requests if asked.kind == "turn"] == [ODD]


@each_language
def test_a_session_that_fails_is_told_with_its_category_and_the_exit_code(user: User, language: str) -> None:
    ended = user.run(client(language, "one", "hi", "nowhere"))
    told = f"failed (bad_request): project_dir: {user.project}/nowhere is not a directory; name the directory"
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(told)
