"""Many pieces of work: so many at a time, each answered when it is done, and none left behind."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio import lowlevel
from anyio.abc import TaskGroup

from agentcell.errors import HostClosedError, SourceCancelledError
from agentcell.stream import Answers, Stream

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 20

Work = Callable[[int], Awaitable[int]]


class OurError(Exception):
    pass


class Works:
    """Work that lasts until it is let go, or no time at all; and what became of it."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.begun: list[int] = []
        self.cancelled: list[int] = []
        self.running = 0
        self.most = 0
        self.source_ends = 0
        self.gates: dict[int, anyio.Event] = {}
        self.streams: list[Stream[Any, Any]] = []

    async def source(self, count: int, failure: Exception | None = None) -> AsyncIterator[int]:
        try:
            for number in range(count):
                self.taken.append(number)
                yield number
            if failure is not None:
                raise failure
        finally:
            self.source_ends += 1

    async def quick(self, number: int) -> int:
        self.begun.append(number)
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(10):
            await lowlevel.checkpoint()
        self.running -= 1
        return number

    async def gated(self, number: int) -> int:
        self.begun.append(number)
        try:
            await self.gates.setdefault(number, anyio.Event()).wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(number)
            raise
        return number

    def let_go(self, *numbers: int) -> None:
        for number in numbers:
            self.gates.setdefault(number, anyio.Event()).set()

    def answers(
        self, tasks: TaskGroup, work: Work, count: int, *, width: int = 2, failure: Exception | None = None
    ) -> Answers[int]:
        def begin(stream: Stream[Any, Any]) -> None:
            self.streams.append(stream)
            tasks.start_soon(stream.run)

        return Answers(Stream(self.source(count, failure), work, width=width, has_room=lowlevel.checkpoint), begin)


async def when_blocked(act: Callable[[], None]) -> None:
    await anyio.wait_all_tasks_blocked()
    act()


async def take(answers: Answers[int], into: list[int], *, then: Callable[[int], object] = int) -> None:
    async for answer in answers:
        into.append(answer)
        then(answer)


@asynccontextmanager
async def running() -> AsyncIterator[TaskGroup]:
    """A task group that must end by itself."""
    with anyio.fail_after(BOUND_SECONDS):
        async with anyio.create_task_group() as tasks:
            yield tasks


async def test_all_are_answered_and_never_more_are_at_work_than_may_be() -> None:
    works = Works()
    async with running() as tasks:
        answers = [answer async for answer in works.answers(tasks, works.quick, 100, width=3)]
    assert (sorted(answers), works.most, works.source_ends) == (list(range(100)), 3, 1)


async def test_each_is_answered_when_it_is_done() -> None:
    works = Works()
    async with running() as tasks:
        answers = works.answers(tasks, works.gated, 4)
        order = []
        for number in (1, 0, 3, 2):
            works.let_go(number)
            order.append(await anext(answers))
        assert [answer async for answer in answers] == []
    assert order == [1, 0, 3, 2]


async def test_nothing_is_taken_before_the_first_answer_is_asked_for() -> None:
    works = Works()
    async with running() as tasks:
        works.answers(tasks, works.quick, 10)
        await anyio.wait_all_tasks_blocked()
    assert (works.taken, works.streams) == ([], [])


async def test_what_is_not_dealt_with_holds_up_the_source() -> None:
    works = Works()
    async with running() as tasks, works.answers(tasks, works.quick, 1000) as answers:
        for dealt_with in range(4):
            await anext(answers)
            await anyio.wait_all_tasks_blocked()
            assert len(works.taken) == dealt_with + 2
        rest = [answer async for answer in answers]
    assert len(rest) == 996


async def test_what_the_source_raises_comes_after_what_was_begun() -> None:
    works = Works()
    answered: list[int] = []
    async with running() as tasks:
        answers = works.answers(tasks, works.gated, 3, width=5, failure=OurError())
        works.let_go(0)
        with pytest.raises(OurError):
            await take(answers, answered, then=lambda answer: works.let_go(answer + 1))
        assert [answer async for answer in answers] == []
    assert answered == [0, 1, 2]


async def test_what_the_work_raises_comes_after_what_was_begun_and_ends_the_rest() -> None:
    works = Works()
    answered: list[int] = []

    async def work(number: int) -> int:
        if number == 1:
            raise OurError
        return await works.gated(number)

    async with running() as tasks:
        tasks.start_soon(when_blocked, lambda: works.let_go(0))
        with pytest.raises(OurError):
            await take(works.answers(tasks, work, 100), answered)
    assert (answered, works.taken, works.source_ends) == ([0], [0, 1], 1)


async def test_a_closed_stream_answers_what_was_begun_and_says_that_there_was_more() -> None:
    works = Works()
    answered: list[int] = []

    def close(_: int) -> None:
        works.streams[0].close()
        works.let_go(1)

    async with running() as tasks:
        answers = works.answers(tasks, works.gated, 100)
        works.let_go(0)
        with pytest.raises(HostClosedError):
            await take(answers, answered, then=close)
    assert (answered, works.taken, works.source_ends) == ([0, 1], [0, 1], 1)


@pytest.mark.parametrize("closing", [aclosing, lambda answers: answers])
async def test_who_leaves_a_context_early_waits_for_the_end(closing: Callable[[Answers[int]], Any]) -> None:
    works = Works()
    async with running() as tasks:
        async with closing(works.answers(tasks, works.gated, 100, width=3)) as answers:
            works.let_go(0)
            await anext(answers)
            await anyio.wait_all_tasks_blocked()
        assert (sorted(works.cancelled), works.source_ends) == ([1, 2], 1)
        assert [answer async for answer in answers] == []


async def test_a_break_cancels_what_was_begun() -> None:
    works = Works()
    works.let_go(0)
    async with running() as tasks:
        async for _ in works.answers(tasks, works.gated, 100, width=3):
            await anyio.wait_all_tasks_blocked()
            break
    assert (sorted(works.cancelled), works.source_ends) == ([1, 2], 1)


async def test_an_exception_in_the_loop_cancels_what_was_begun() -> None:
    works = Works()
    works.let_go(0)

    async def fail(answers: Answers[int]) -> None:
        async for _ in answers:
            await anyio.wait_all_tasks_blocked()
            raise OurError

    async with running() as tasks:
        with pytest.raises(OurError):
            await fail(works.answers(tasks, works.gated, 100, width=3))
    assert (sorted(works.cancelled), works.source_ends) == ([1, 2], 1)


async def test_who_is_cancelled_while_waiting_waits_for_the_end() -> None:
    works = Works()
    async with running() as tasks:
        with anyio.CancelScope() as scope:
            tasks.start_soon(when_blocked, scope.cancel)
            async for _ in works.answers(tasks, works.gated, 100):
                raise AssertionError
        assert (scope.cancelled_caught, sorted(works.cancelled), works.source_ends) == (True, [0, 1], 1)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_asyncio_timeout_around_the_loop_is_one() -> None:
    works = Works()
    async with running() as tasks:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(take(works.answers(tasks, works.gated, 100), []), 0.05)
        assert (sorted(works.cancelled), works.source_ends) == ([0, 1], 1)


async def fails_at_its_end() -> AsyncIterator[int]:
    try:
        while True:
            yield 0
    finally:
        raise OurError


async def test_what_the_end_of_the_source_raises_is_raised_to_who_leaves_early() -> None:
    works = Works()

    async def leave() -> None:
        stream = Stream(fails_at_its_end(), works.quick, width=2, has_room=lowlevel.checkpoint)
        async with Answers(stream, lambda stream: tasks.start_soon(stream.run)) as answers:
            async for _ in answers:
                break

    async with running() as tasks:
        with pytest.raises(OurError):
            await leave()


async def test_what_the_end_of_the_source_raises_is_raised_to_who_is_cancelled() -> None:
    works = Works()

    async def wait(answers: Answers[int]) -> None:
        async with answers:
            with anyio.CancelScope() as scope:
                tasks.start_soon(when_blocked, scope.cancel)
                await anext(answers)

    async with running() as tasks:
        stream = Stream(fails_at_its_end(), works.gated, width=2, has_room=lowlevel.checkpoint)
        with pytest.raises(OurError):
            await wait(Answers(stream, lambda stream: tasks.start_soon(stream.run)))


async def test_a_second_task_that_asks_is_refused_and_harms_the_first_no_way() -> None:
    works = Works()
    answered: list[int] = []
    async with running() as tasks:
        answers = works.answers(tasks, works.gated, 3)
        tasks.start_soon(take, answers, answered)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(anyio.BusyResourceError, match="already waiting for an answer"):
            await anext(answers)
        works.let_go(0, 1, 2)
    assert sorted(answered) == [0, 1, 2]


async def test_who_waits_while_another_task_leaves_is_at_the_end() -> None:
    works = Works()
    async with running() as tasks:
        answers = works.answers(tasks, works.gated, 3)
        tasks.start_soon(take, answers, [])
        await anyio.wait_all_tasks_blocked()
        await answers.aclose()
    assert sorted(works.cancelled) == [0, 1]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_source_whose_own_task_was_cancelled_ends_after_what_was_begun() -> None:
    works = Works()
    answered: list[int] = []

    async def source() -> AsyncIterator[int]:
        yield 0
        inner = asyncio.ensure_future(asyncio.sleep(0))
        inner.cancel()
        await inner

    async with running() as tasks:
        stream = Stream(source(), works.gated, width=2, has_room=lowlevel.checkpoint)
        tasks.start_soon(when_blocked, lambda: works.let_go(0))
        with pytest.raises(SourceCancelledError) as raised:
            await take(Answers(stream, lambda stream: tasks.start_soon(stream.run)), answered)
    assert (answered, type(raised.value.__cause__)) == ([0], asyncio.CancelledError)


async def test_a_source_that_will_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcell.stream.CLOSE_SECONDS", 0.05)
    works = Works()

    async def stubborn() -> AsyncIterator[int]:
        try:
            while True:
                yield 0
        finally:
            await anyio.sleep_forever()

    async with running() as tasks:
        stream = Stream(stubborn(), works.quick, width=2, has_room=lowlevel.checkpoint)
        async with Answers(stream, lambda stream: tasks.start_soon(stream.run)) as answers:
            await anext(answers)


async def test_a_source_may_be_any_iterator() -> None:
    class Countdown:
        left = 3

        def __aiter__(self) -> "Countdown":
            return self

        async def __anext__(self) -> int:
            if not self.left:
                raise StopAsyncIteration
            self.left -= 1
            return self.left

    works = Works()
    async with running() as tasks:
        stream = Stream(Countdown(), works.quick, width=1, has_room=lowlevel.checkpoint)
        assert [n async for n in Answers(stream, lambda stream: tasks.start_soon(stream.run))] == [2, 1, 0]


async def test_a_source_may_depend_on_answers() -> None:
    """As one does that gives again what has failed."""
    works = Works()
    send, receive = anyio.create_memory_object_stream[int](10)
    send.send_nowait(3)
    answered = []
    async with running() as tasks, receive:
        stream = Stream(receive, works.quick, width=2, has_room=lowlevel.checkpoint)
        async for answer in Answers(stream, lambda stream: tasks.start_soon(stream.run)):
            answered.append(answer)
            if answer == 0:
                send.close()
            else:
                send.send_nowait(answer - 1)
    assert answered == [3, 2, 1, 0]


async def test_thousands_take_no_more_tasks_and_no_more_room_than_a_few() -> None:
    works = Works()
    most_tasks = most_answers = 0
    before = len(anyio.get_running_tasks())
    async with running() as tasks:
        async for _ in works.answers(tasks, works.quick, 3000, width=4):
            most_tasks = max(most_tasks, len(anyio.get_running_tasks()) - before)
            most_answers = max(most_answers, len(works.streams[0].answers))
    assert (len(works.begun), works.most) == (3000, 4)
    assert (most_tasks <= 5, most_answers < 4) == (True, True)
