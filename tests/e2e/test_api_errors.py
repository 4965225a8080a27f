"""A failed API call is an error with its category and HTTP status, on the real SDK and the real CLI."""

import time
from typing import Any

import pytest
from tests.e2e.scenes import BOUND_SECONDS, QUICK, Played, Scene, play

from agentcell_protocol.errors import Category, session_error

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SOON_SECONDS = 40
"""A multiple of the five seconds that a refusal may take; the CLI would try again for minutes."""

RESET = int(time.time()) + 7200

SUBSCRIPTION = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-offline"}

USED_UP = {
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-representative-claim": "five_hour",
    "anthropic-ratelimit-unified-reset": str(RESET),
}

REFUSED = "set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN, or log in with the claude command"


def always(**turn: Any) -> list[dict[str, Any]]:
    """A model that does the same each time."""
    return [{**turn, "times": "always"}]


def fails(status: int, **headers: str) -> list[dict[str, Any]]:
    return always(error={"status": status, "message": "the words of the API", "headers": headers})


SCENES = {
    "400": Scene(fails(400), env=QUICK),
    "401": Scene(fails(401)),
    "402": Scene(fails(402), env=QUICK),
    "403": Scene(fails(403)),
    "404": Scene(fails(404), env=QUICK),
    "429": Scene(fails(429), env=QUICK),
    "429 for long": Scene(fails(429, **{"retry-after": "120"})),
    "429 until a reset": Scene(fails(429, **USED_UP), env={**QUICK, **SUBSCRIPTION}),
    "500": Scene(fails(500), env=QUICK),
    "529": Scene(fails(529), env=QUICK),
    "cut stream": Scene(always(text="never whole " * 20, chunks=20, drop="middle"), env=QUICK),
    "malformed body": Scene(always(body='{"type": "mess'), env=QUICK),
    "recovering": Scene([{"error": {"status": 529}}, {"text": "At last."}], env=QUICK),
}

ERRORS = {
    "400": session_error(
        Category.INVALID_REQUEST, "the API refused the request as invalid (HTTP 400)", http_status=400
    ),
    "401": session_error(
        Category.AUTHENTICATION, "the API refused the credentials (HTTP 401)", http_status=401, hint=REFUSED
    ),
    "402": session_error(
        Category.BILLING, "the API refused the request because of the account's billing (HTTP 402)", http_status=402
    ),
    "403": session_error(
        Category.AUTHENTICATION, "the API refused the credentials (HTTP 403)", http_status=403, hint=REFUSED
    ),
    "404": session_error(
        Category.MODEL_NOT_FOUND,
        "the API does not know the model (HTTP 404)",
        http_status=404,
        hint="check the request's model",
    ),
    "429": session_error(
        Category.RATE_LIMIT, "the API refused the request because of a rate limit (HTTP 429)", http_status=429
    ),
    "429 for long": session_error(
        Category.RATE_LIMIT, "the API refused the request because of a rate limit (HTTP 429)", http_status=429
    ),
    "500": session_error(Category.SERVER_ERROR, "the API failed (HTTP 500)", http_status=500),
    "529": session_error(Category.OVERLOADED, "the API is overloaded (HTTP 529)", http_status=529),
    "cut stream": session_error(Category.NETWORK, "the API gave no usable answer"),
    "malformed body": session_error(Category.NETWORK, "the API gave no usable answer"),
}

RETRYABLE = {"429", "429 for long", "500", "529", "cut stream", "malformed body"}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    return play(SCENES, tmp_path_factory.mktemp("api"))


@pytest.mark.parametrize("name", ERRORS)
def test_a_failed_call_has_its_category_and_status(played: dict[str, Played], name: str) -> None:
    ended = played[name]
    assert ended.error == ERRORS[name]
    assert ended.error.retryable == (name in RETRYABLE)
    assert (ended.result.status, ended.result.response) == ("error", ERRORS[name].message)


@pytest.mark.parametrize("name", ERRORS)
def test_what_the_cli_says_about_a_failure_is_never_said_by_the_model(played: dict[str, Played], name: str) -> None:
    ended = played[name]
    assert "text" not in ended.kinds
    assert "the words of the API" not in ended.result.response
    assert ended.result.session_id == ended.requests[0].session_id


@pytest.mark.parametrize("name", ["401", "403", "429 for long"])
def test_what_another_try_cannot_change_ends_the_session_soon(played: dict[str, Played], name: str) -> None:
    ended = played[name]
    assert len([asked for asked in ended.requests if asked.kind == "turn"]) <= 2
    assert ended.result.execution_time < SOON_SECONDS


def test_a_quota_that_is_used_up_says_until_when(played: dict[str, Played]) -> None:
    ended = played["429 until a reset"]
    assert {"type": "rate_limit", "status": "rejected", "resets_at": RESET} in ended.events
    assert (ended.error.category, ended.error.http_status) == (Category.RATE_LIMIT, 429)
    assert ended.error.retry_after_s == pytest.approx(RESET - time.time(), abs=BOUND_SECONDS)


def test_an_api_that_recovers_is_waited_for(played: dict[str, Played]) -> None:
    ended = played["recovering"]
    assert (ended.result.status, ended.result.response, ended.result.error) == ("complete", "At last.", None)
    assert "api_retry" in ended.kinds
    assert ended.result.working_time < ended.result.execution_time
