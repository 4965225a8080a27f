"""What goes next: a row that is due again before a new one, and nothing while something is against it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from agentcell import memory
from agentcell.batch.admission import (
    MEMORY_PATIENCE_SECONDS,
    WAITING_ROWS,
    Admission,
    Closing,
    Hold,
)
from agentcell.batch.caps import Caps, MaxFailures
from agentcell.batch.items import Item
from agentcell.batch.machine import MOST_TRIES
from agentcell.batch.rows import Problem, Row
from agentcell.batch.settings import Settings
from agentcell.batch.tally import Tally
from agentcell.limits import Limits
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Usage

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000.0

BOUND_SECONDS = 10.0

MOMENT = 0.01
"""In which what is not against it would be given out."""

REQUEST = SessionRequest(session_name="a", agent_type="coder", project_dir="/", starting_message="hi")

NO_DESCRIPTORS = session_error(Category.SPAWN_FAILED, "no more open files", errno=24)


@pytest.fixture
def anyio_backend() -> str:
    """The command's own."""
    return "asyncio"


def row(name: str) -> Row:
    return Row(1, 0, name, "1:0123456789abcdef", REQUEST, Limits())


class Rows:
    """Rows that are there already."""

    def __init__(self, names: list[str]) -> None:
        self.left = list(names)

    async def next(self) -> Row | Problem | None:
        return row(self.left.pop(0)) if self.left else None


class Desk:
    """An admission at a time that is set by hand, and what it said of its holds."""

    def __init__(self, names: str, settings: Settings) -> None:
        self.now = NOW
        self.free_mb = 1e6
        self.rows = Rows(names.split())
        self.tally = Tally(NOW, total=len(self.rows.left))
        self.holds: list[Hold | None] = []
        self.on_next_hold: Callable[[], object] = bool
        self.admission = Admission(
            self.rows,
            settings,
            self.tally,
            on_hold=self.hear,
            free_mb=lambda: self.free_mb,
            clock=lambda: self.now,
        )

    async def hear(self, hold: Hold | None) -> None:
        self.holds.append(hold)
        on_hold, self.on_next_hold = self.on_next_hold, bool
        on_hold()

    async def take(self) -> str | None:
        """The id of what is given out next, or None when nothing will be."""
        with anyio.fail_after(BOUND_SECONDS):
            found = await self.admission.next()
        return None if found is None else found.row.id if isinstance(found, Item) else found.id

    async def waits(self) -> bool:
        """Whether nothing is given out now."""
        taken: list[str | None] = []

        async def take() -> None:
            taken.append(await self.take())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        return not taken

    def put_back(self, name: str, due: float = 0.0) -> None:
        self.admission.put_back(Item(row(name), due=due))
        self.admission.done_with()

    def fail_to_start(self, name: str) -> None:
        self.admission.learn(REQUEST, NO_DESCRIPTORS, began=self.now)
        self.put_back(name)


@asynccontextmanager
async def opened(names: str, **settings: Any) -> AsyncIterator[Desk]:
    desk = Desk(names, Settings(**{"min_free_mb": 0.0, **settings}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.admission.fetch)
        yield desk
        tasks.cancel_scope.cancel()


async def test_rows_go_in_turn_and_then_nothing_once_all_are_done_with() -> None:
    async with opened("a b") as desk:
        assert [await desk.take(), await desk.take()] == ["a", "b"]
        assert await desk.waits()
        desk.admission.done_with()
        assert not desk.admission.is_complete
        desk.admission.done_with()
        assert (await desk.take(), desk.admission.is_complete, desk.admission.closing) == (None, True, None)


async def test_no_more_rows_are_read_than_one_ahead() -> None:
    async with opened("a b c d") as desk:
        assert await desk.take() == "a"
        await anyio.wait_all_tasks_blocked()
        assert desk.rows.left == ["c", "d"]


async def test_of_rows_that_are_due_again_the_first_goes_before_a_new_one() -> None:
    async with opened("a b c d") as desk:
        assert [await desk.take() for _ in range(3)] == ["a", "b", "c"]
        desk.put_back("c", NOW + 5)
        desk.put_back("a", NOW - 1)
        desk.put_back("b", NOW - 2)
        assert [await desk.take() for _ in range(3)] == ["b", "a", "d"]
        assert await desk.waits()
        desk.now += 5
        assert await desk.take() == "c"


async def test_a_row_goes_again_as_soon_as_it_is_due() -> None:
    async with opened("a") as desk:
        assert await desk.take() == "a"
        desk.put_back("a", NOW + MOMENT)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.take)
            await anyio.wait_all_tasks_blocked()
            desk.now += MOMENT


async def test_while_too_many_rows_wait_no_new_one_goes() -> None:
    async with opened(" ".join(map(str, range(WAITING_ROWS + 2)))) as desk:
        for _ in range(WAITING_ROWS):
            desk.put_back(str(await desk.take()), NOW + 5)
        assert await desk.waits()
        desk.now += 5
        assert await desk.take() == "0"
        desk.now -= 5
        assert await desk.take() == str(WAITING_ROWS)


async def test_a_limit_of_the_account_holds_all_until_it_is_over() -> None:
    limit = session_error(Category.RATE_LIMIT, "slow down", retry_after_s=60.0)
    async with opened("a b") as desk:
        assert await desk.take() == "a"
        desk.admission.learn(REQUEST, limit, began=NOW)
        desk.put_back("a")
        assert await desk.waits()
        assert await desk.waits()
        desk.now += 60
        assert [await desk.take(), await desk.take()] == ["a", "b"]
        assert desk.holds == [Hold("the account's rate limit", NOW + 60), None]


async def test_a_limit_that_is_met_while_the_end_of_another_is_told_holds_the_next_row() -> None:
    async with opened("a b") as desk:
        await desk.take()
        limited = session_error(Category.RATE_LIMIT, "slow down", retry_after_s=5.0)
        desk.admission.learn(REQUEST, limited, began=NOW)
        assert await desk.waits()
        desk.on_next_hold = lambda: desk.admission.learn(REQUEST, limited, began=desk.now)
        desk.now += 6.0
        assert await desk.waits()
        until = [hold and hold.until for hold in desk.holds]
        assert until == [NOW + 5.0, None, NOW + 11.0]


async def test_an_account_that_is_refused_ends_it() -> None:
    async with opened("a b") as desk:
        assert await desk.take() == "a"
        desk.admission.learn(REQUEST, session_error(Category.AUTHENTICATION, "no such key"), began=NOW)
        desk.put_back("a")
        assert (await desk.take(), desk.admission.is_complete) == (None, False)
        assert desk.admission.closing == Closing("account", "the API cannot be used: no such key")


async def test_a_quota_that_is_used_up_ends_it_unless_that_is_waited_for() -> None:
    used_up = session_error(Category.RATE_LIMIT, "come back later", retry_after_s=7200.0)
    async with opened("a") as desk, opened("a", waits_for_quota=True) as patient:
        for one in (desk, patient):
            await one.take()
            one.admission.learn(REQUEST, used_up, began=NOW)
            one.put_back("a")
        assert await desk.take() is None
        assert await patient.waits()
        patient.now += 7200
        assert await patient.take() == "a"


async def test_a_row_with_credentials_of_its_own_says_nothing_of_the_account() -> None:
    own = REQUEST.model_copy(update={"env": {"ANTHROPIC_API_KEY": "sk-ant-own"}})
    async with opened("a b") as desk:
        assert await desk.take() == "a"
        desk.admission.learn(own, session_error(Category.AUTHENTICATION, "no such key"), began=NOW)
        assert await desk.take() == "b"


@pytest.mark.parametrize(
    ("caps", "sentence"),
    [
        (Caps(max_cost_usd=0.5), "the cap --max-cost-usd 0.5 is reached: $0.5000 are spent"),
        (Caps(max_failures=MaxFailures(1)), "the cap --max-failures 1 is reached: 1 rows have failed"),
        (Caps(deadline=NOW + 1), "the --deadline is reached"),
    ],
)
async def test_a_cap_that_is_reached_ends_it(caps: Caps, sentence: str) -> None:
    async with opened("a b", caps=caps) as desk:
        assert await desk.take() == "a"
        desk.tally.started("a", 1, NOW)
        desk.tally.ended("a", Usage(), 0.5)
        desk.tally.finished_before("error", "refusal")
        desk.now += 1
        assert await desk.take() is None
        assert desk.admission.closing == Closing("cap", sentence)


async def test_a_deadline_ends_a_wait() -> None:
    async with opened("a", caps=Caps(deadline=NOW + MOMENT)) as desk:
        assert await desk.take() == "a"
        desk.put_back("a", NOW + 60)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.take)
            await anyio.wait_all_tasks_blocked()
            desk.now += MOMENT
        assert desk.admission.closing == Closing("cap", "the --deadline is reached")


async def test_without_memory_nothing_goes_until_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LOOK_SECONDS", MOMENT)
    async with opened("a b", min_free_mb=100.0) as desk:
        assert await desk.take() == "a"
        desk.free_mb = 99.0
        assert await desk.waits()
        desk.now += 2 * MEMORY_PATIENCE_SECONDS
        assert await desk.waits()  # the one that runs may give it back
        desk.free_mb = 100.0
        assert await desk.take() == "b"
        assert desk.holds == [Hold("less than 100 MB of memory are free"), None]


async def test_without_memory_and_anything_that_could_give_some_back_it_ends() -> None:
    async with opened("a", min_free_mb=100.0) as desk:
        desk.free_mb = 99.0
        assert await desk.waits()
        desk.now += MEMORY_PATIENCE_SECONDS + 1
        assert await desk.take() is None
        sentence = "less than 100 MB of memory are free, and no session of ours has it"
        assert desk.admission.closing == Closing("machine", f"{sentence}: end something else, or lower --min-free-mb")


async def test_where_no_cell_can_be_started_the_next_one_is_tried_after_a_pause_that_doubles() -> None:
    async with opened("a b") as desk:
        assert [await desk.take(), await desk.take()] == ["a", "b"]
        for seconds in (1, 2, 4, 8, 16, 30, 30):
            desk.fail_to_start("a")
            assert await desk.waits()
            assert desk.holds[-1] == Hold("no more open files", desk.now + seconds)
            desk.now += seconds
            assert await desk.take() == "a"
        assert desk.admission.closing is None  # the one that runs may give some back


async def test_while_cells_may_not_start_one_is_tried_at_a_time() -> None:
    async with opened("a b c") as desk:
        assert await desk.take() == "a"
        desk.fail_to_start("a")
        desk.now += 1
        assert await desk.take() == "a"
        assert await desk.waits()
        desk.now += 1
        assert await desk.take() == "b"
        desk.admission.learn(REQUEST, None, began=desk.now)
        assert await desk.take() == "c"


async def test_where_no_cell_can_be_started_and_none_runs_it_ends() -> None:
    async with opened("a b") as desk:
        for _ in range(MOST_TRIES):
            assert await desk.take() == "a"
            desk.fail_to_start("a")
            desk.now += 60
        assert await desk.take() is None
        assert desk.admission.closing is not None
        assert desk.admission.closing.kind == "machine"
        assert desk.admission.closing.sentence.startswith("no more open files, with no session of ours running: raise")


async def test_a_cell_that_comes_up_makes_good_for_all_that_did_not() -> None:
    async with opened("a") as desk:
        for _ in range(2 * MOST_TRIES):
            assert await desk.take() == "a"
            desk.fail_to_start("a")
            desk.now += 60
            assert await desk.take() == "a"
            desk.admission.learn(REQUEST, session_error(Category.CRASHED, "no"), began=desk.now)
            desk.put_back("a")
        assert await desk.take() == "a"


async def test_cells_that_fail_to_start_together_are_one_try() -> None:
    async with opened("a b") as desk:
        assert [await desk.take(), await desk.take()] == ["a", "b"]
        began = desk.now
        desk.now += 1
        for _ in range(2 * MOST_TRIES):
            desk.admission.learn(REQUEST, NO_DESCRIPTORS, began=began)
        assert desk.holds == []
        desk.put_back("a")
        assert await desk.waits()
        assert desk.holds == [Hold("no more open files", began + 2)]


async def test_the_first_reason_for_its_end_counts_unless_a_mistake_follows() -> None:
    async with opened("a") as desk:
        for kind in ("interrupted", "cap", "aborted", "aborted", "account"):
            desk.admission.close(Closing(kind, f"{kind} {len(desk.holds)}"))
            desk.holds.append(None)
        assert await desk.take() is None
        assert desk.admission.closing == Closing("aborted", "aborted 2")


async def test_what_the_source_raises_is_its_readers() -> None:
    class Torn:
        async def next(self) -> Row | Problem | None:
            raise OSError("no such device")

    desk = Desk("", Settings())
    queue = Admission(Torn(), Settings(), desk.tally, on_hold=desk.hear)
    with pytest.raises(OSError, match="no such device"):
        await queue.fetch()
