"""The coder phase: one call, tried again when that may help."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agentcell import isolated
from agentcell.isolated import run_agent_session_isolated, with_retries
from agentcell.orders import Order
from agentcell.retry import RetryPolicy
from agentcell_protocol.errors import Category, RequestError, SessionError, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Attempt, SessionResult, Usage, failed

pytestmark = pytest.mark.anyio

TOKENS = Usage(input_tokens=2, output_tokens=1)
DONE = SessionResult(status="continue", response="done", session_name="a", usage=TOKENS, cost_usd=0.25)
DIED = failed(session_error(Category.CRASHED, "killed by SIGKILL"), usage=TOKENS, session_id="s")
REFUSED = failed(session_error(Category.AUTHENTICATION, "no key"), usage=TOKENS, cost_usd=0.0)


class Attempts:
    """Gives one result after the other, and notes the pauses between them."""

    def __init__(self, results: Sequence[SessionResult]) -> None:
        self.results = list(results)
        self.requests: list[SessionRequest] = []
        self.pauses: list[float] = []

    async def attempt(self) -> SessionResult:
        return self.results.pop(0)

    async def run(self, order: Order, _resources: object) -> SessionResult:
        self.requests.append(order.request)
        return self.results.pop(0)

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def tried(self, policy: RetryPolicy) -> SessionResult:
        return await with_retries(self.attempt, policy, pause=self.pause, clock=lambda: 0.0, chance=lambda: 1.0)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Attempts]:
    """Replaces cells by results."""

    def replace(*results: SessionResult) -> Attempts:
        attempts = Attempts(results)
        monkeypatch.setattr(isolated, "run_attempt", attempts.run)
        monkeypatch.setattr(isolated, "RetryPolicy", lambda max_attempts: RetryPolicy(max_attempts, first_delay=0.0))
        return attempts

    return replace


def entry(number: int, result: SessionResult) -> Attempt:
    return Attempt(
        number=number,
        status=result.status,
        error=result.error,
        usage=result.usage,
        cost_usd=result.cost_usd,
        session_id=result.session_id,
    )


async def test_a_crash_is_tried_again_and_everything_is_counted() -> None:
    attempts = Attempts([DIED, DONE])
    assert await attempts.tried(RetryPolicy(3)) == DONE.model_copy(
        update={
            "usage": Usage(input_tokens=4, output_tokens=2),
            "cost_usd": None,
            "attempts": [entry(1, DIED), entry(2, DONE)],
        }
    )
    assert attempts.pauses == [1.0]


async def test_attempts_are_capped_and_all_recorded() -> None:
    attempts = Attempts([DIED, DIED, DIED, DONE])
    result = await attempts.tried(RetryPolicy(3))
    assert result.error == DIED.error
    assert result.attempts == [entry(1, DIED), entry(2, DIED), entry(3, DIED)]
    assert attempts.pauses == [1.0, 2.0]


async def test_what_would_only_happen_again_is_tried_once() -> None:
    attempts = Attempts([REFUSED, DONE])
    result = await attempts.tried(RetryPolicy(3))
    assert (result.attempts, result.cost_usd, attempts.pauses) == ([entry(1, REFUSED)], 0.0, [])


async def test_without_a_subtask_there_is_one_attempt(running: Callable[..., Attempts], tmp_path: Path) -> None:
    attempts = running(DIED, DONE)
    answer = await run_agent_session_isolated(tmp_path, None, "coder", None, "go")
    assert answer == ("error", "killed by SIGKILL", TOKENS.model_dump())
    assert len(attempts.requests) == 1


async def test_with_a_subtask_attempts_are_summed_up(running: Callable[..., Attempts], tmp_path: Path) -> None:
    attempts = running(DIED, DONE)
    status, text, usage = await run_agent_session_isolated(
        tmp_path, tmp_path / "spec", "coder", "m", "go", "Be brief.", 1000, "coder-1", None, "subtask-1"
    )
    assert (status, text) == ("continue", "done")
    assert usage == {
        "input_tokens": 4,
        "output_tokens": 2,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    assert attempts.requests == 2 * [
        SessionRequest(
            session_name="coder-1",
            agent_type="coder",
            project_dir=str(tmp_path),
            spec_dir=str(tmp_path / "spec"),
            model="m",
            starting_message="go",
            system_prompt="Be brief.",
            max_thinking_tokens=1000,
        )
    ]


async def test_max_retries_counts_all_attempts(running: Callable[..., Attempts], tmp_path: Path) -> None:
    attempts = running(DIED, DIED, DONE)
    answer = await run_agent_session_isolated(tmp_path, None, "coder", None, "go", subtask_id="s", max_retries=2)
    assert answer[0] == "error"
    assert len(attempts.requests) == 2


@pytest.mark.parametrize("error", [session_error(Category.BAD_REQUEST, "x: y", hint="z", member="x", reason="y")])
async def test_what_the_cell_finds_wrong_with_the_request_is_raised(
    running: Callable[..., Attempts], tmp_path: Path, error: SessionError
) -> None:
    running(failed(error))
    with pytest.raises(RequestError, match="x: y; z"):
        await run_agent_session_isolated(tmp_path, None, "nobody", None, "go")


async def test_less_than_one_attempt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_retries must be positive"):
        await run_agent_session_isolated(tmp_path, None, "coder", None, "go", max_retries=0)
