"""Many pieces of work from a source, so many at a time, each answered as soon as it is done."""

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from threading import get_ident
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import anyio
from anyio.abc import TaskGroup

from agentcell.cancellation import is_cancelled
from agentcell.errors import HostClosedError, SourceCancelledError

CLOSE_SECONDS = 5.0
"""For a source that nothing more is taken from to end."""

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Stream(Generic[Asked, Answer]):
    """Takes what is asked from a source, works on it in tasks of its own, and keeps the answers until they are taken.

    What is taken from the source and not yet dealt with is never more than `width`. `has_room` returns as soon as the
    next one may be taken. What the source or the work raises ends the stream: what was begun is answered before.
    `late_failure` is what the source raised when it was closed.
    """

    def __init__(
        self,
        source: AsyncIterable[Asked],
        work: Callable[[Asked], Awaitable[Answer]],
        *,
        width: int,
        has_room: Callable[[], Awaitable[object]],
    ) -> None:
        self.answers: deque[Answer] = deque()
        self.failure: Exception | None = None
        self.late_failure: Exception | None = None
        self.is_exhausted = False
        self.has_ended = anyio.Event()
        self.slots = anyio.Semaphore(width)
        self._source = aiter(source)
        self._work = work
        self._has_room = has_room
        self._changed = anyio.Event()
        self._everything = anyio.CancelScope()
        self._feeding = anyio.CancelScope()

    async def run(self) -> None:
        """Work until the source has no more or the stream is closed or left."""
        try:
            with self._everything:
                async with anyio.create_task_group() as tasks:
                    with self._feeding:
                        await self._feed(tasks)
        finally:
            self.has_ended.set()
            self._changed.set()

    def close(self) -> None:
        """Take no more from the source."""
        self._feeding.cancel()

    def leave(self) -> None:
        """Cancel what was begun: nobody wants the answers any more."""
        self._everything.cancel()

    async def arrival(self) -> None:
        """Wait until there is an answer or there will be none any more."""
        while not self.answers and not self.has_ended.is_set():
            self._changed = anyio.Event()
            await self._changed.wait()

    async def _feed(self, tasks: TaskGroup) -> None:
        try:
            await self._take(tasks)
        except StopAsyncIteration:
            self.is_exhausted = True
        except Exception as failure:  # noqa: BLE001 - foreign code; raised again to who takes the answers
            self._fail(failure)
        except anyio.get_cancelled_exc_class() as cancelled:
            if is_cancelled():
                raise
            self._fail(SourceCancelledError(), cause=cancelled)
        finally:
            await self._end()

    async def _take(self, tasks: TaskGroup) -> None:
        while True:
            await self.slots.acquire()
            await self._has_room()
            tasks.start_soon(self._answer, await anext(self._source))

    async def _end(self) -> None:
        """Close the source, where that can be done, in the task that has run it."""
        close = getattr(self._source, "aclose", None)
        if close is None:
            return
        try:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await close()
        except Exception as failure:  # noqa: BLE001 - foreign code; raised again to who takes the answers
            self.late_failure = failure
            self._fail(failure)

    async def _answer(self, asked: Asked) -> None:
        try:
            answer = await self._work(asked)
        except Exception as failure:  # noqa: BLE001 - raised again to who takes the answers
            self._fail(failure)
        else:
            self.answers.append(answer)
        self._changed.set()

    def _fail(self, failure: Exception, *, cause: BaseException | None = None) -> None:
        failure.__cause__ = failure.__cause__ or cause
        self.failure = self.failure or failure
        self.close()


class Answers(AsyncIterator[Answer]):
    """The answers of a stream, which begins with the first that is asked for. For one task at a time.

    An answer counts as dealt with when the next one is asked for. Who leaves early cancels what was begun: with
    `async with`, `aclose` or a cancellation it has ended then, otherwise when the host is left. A second task that asks
    while one waits gets a BusyResourceError of anyio.
    """

    def __init__(self, stream: Stream[Any, Answer], begin: Callable[[Stream[Any, Answer]], object]) -> None:
        self._stream = stream
        self._begin = begin
        self._thread: int | None = None
        self._has_left = False
        self._is_asked = False
        self._owes_slot = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Answer:
        if self._is_asked:
            raise anyio.BusyResourceError("waiting for an answer from")
        if self._has_left:
            raise StopAsyncIteration
        self._go_on()
        await self._arrival()
        if self._has_left:
            raise StopAsyncIteration
        if not self._stream.answers:
            self._has_left = True
            self._raise_end()
        self._owes_slot = True
        return self._stream.answers.popleft()

    async def aclose(self) -> None:
        """Cancel what was begun and wait for its end; raises what the source raises when it is closed by that."""
        had_left, self._has_left = self._has_left, True
        if self._thread is not None:
            self._stream.leave()
            with anyio.CancelScope(shield=True):
                await self._stream.has_ended.wait()
        if self._stream.late_failure is not None and not had_left:
            raise self._stream.late_failure

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        is_begun = self._thread == get_ident()  # a loop in another thread must not be touched; its host ends the rest
        if is_begun and not self._stream.has_ended.is_set():
            self._stream.leave()

    async def _arrival(self) -> None:
        self._is_asked = True
        try:
            await self._stream.arrival()
        except anyio.get_cancelled_exc_class():
            await self.aclose()
            raise
        finally:
            self._is_asked = False

    def _go_on(self) -> None:
        if self._thread is None:
            self._begin(self._stream)
            self._thread = get_ident()
        if self._owes_slot:
            self._owes_slot = False
            self._stream.slots.release()

    def _raise_end(self) -> None:
        if self._stream.failure is not None:
            raise self._stream.failure
        if not self._stream.is_exhausted:
            raise HostClosedError
        raise StopAsyncIteration
