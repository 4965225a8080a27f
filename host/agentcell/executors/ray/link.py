"""A bridge as its driver sees it: a process, what is said to it, and what it says, sorted by whose it is."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import FileIO
from tempfile import TemporaryFile
from typing import Any
from uuid import uuid4

import anyio

from agentcell.environment import inherited_environment
from agentcell.errors import ExecutorError
from agentcell.executors.ray.absence import SEE_LOG, START
from agentcell.executors.ray.talk import FAILED, LEFT_OUT, OPENING, RaySettings
from agentcell.executors.wire import END_SECONDS, SETTLE, WIRE_LIMIT, line
from agentcell.pipes import PipeReader, PipeWriter
from agentcell.reap import in_thread
from agentcell_protocol import cell
from agentcell_protocol.codec import decode
from agentcell_protocol.credentials import PRECEDENCE
from agentcell_protocol.framing import LineFramer, Overlong

BRIDGE = (sys.executable, "-P", "-m", "agentcell.executors.ray.bridge")

MARK = "AGENTCELL_BRIDGE"
"""Environment variable, a UUID, in a bridge, and in what belongs to the cluster that it brings up on its machine."""

OPEN_SECONDS = 120.0
"""From the start to `ready`: Ray takes 15 s to come up on a machine that has nothing else to do."""

SAY_SECONDS = 60.0
"""For a bridge to take what is said; it reads at once, unless it is stopped."""

CLOSE_SECONDS = END_SECONDS + 30.0
"""From the end of its stdin to the bridge's: the keepers end first, then Ray does."""

LAST_WORDS_BYTES = 4096
"""Of what a bridge said on stderr, to explain why it is lost."""

OnLeftOut = Callable[[ExecutorError], object]
"""Gets what is wrong with a node that is given no attempts."""


class BridgeEndedError(ExecutorError):
    """A bridge has ended before it was open, and has not said why."""


class Lane:
    """What a bridge says under one marker, in order; to be read by one task at a time."""

    def __init__(self, link: "Link") -> None:
        self.said: deque[dict[str, Any]] = deque()
        self.stirred = anyio.Event()
        self._link = link

    async def next(self) -> dict[str, Any] | None:
        """The next that is said; None when the bridge is gone."""
        return await self._link.read(self)


class Link:
    """One bridge, from its start until `close`, which is to be waited for whatever happens.

    Nothing of it runs by itself: of the tasks that wait for their lanes the first one reads, for all of them.
    """

    def __init__(self, settings: RaySettings, on_left_out: OnLeftOut) -> None:
        self.is_over = False
        self._on_left_out = on_left_out
        self._settings = settings
        self._mark = str(uuid4())
        self._words = TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            BRIDGE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            cwd="/",
            env=bridge_environment(os.environ, self._mark),
            start_new_session=True,
            bufsize=0,
        )
        self._reader, self._writer = PipeReader(_raw(self._process.stdout)), PipeWriter(_raw(self._process.stdin))
        self._framer = LineFramer(WIRE_LIMIT)
        self._lanes: dict[str, Lane] = {}
        self._waiting: set[Lane] = set()
        self._is_read = False
        self._turn = anyio.Lock()

    @property
    def pid(self) -> int:
        """That of the bridge."""
        return self._process.pid

    async def open(self) -> int:
        """Wait until attempts can be made; of how many there is room for.

        Raises ExecutorError, and BridgeEndedError where another bridge may have more luck.
        """
        with self.lane(OPENING) as lane, anyio.move_on_after(OPEN_SECONDS):
            await self.say(self._settings.as_line())
            said = await lane.next()
            if said is None:
                raise BridgeEndedError(f"the bridge to Ray has ended: {self._last_words()}", SEE_LOG)
            if said["type"] == FAILED:
                raise ExecutorError(said["reason"], said["remedy"])
            return int(said["max_sessions"])
        address = self._settings.address
        where = "on this machine" if address is None else f"at {address}"
        raise ExecutorError(f"there was no Ray cluster {where} after {OPEN_SECONDS:g} s", START)

    async def settle(self, markers: Sequence[str]) -> int | None:
        """Have what is left of these ended on every node; how many processes were, None when the bridge is gone."""
        question = str(uuid4())
        with self.lane(question) as lane:
            await self.say(line(SETTLE, marker=question, markers=list(markers)))
            said = await lane.next()
        return None if said is None else int(said["swept"])

    @contextmanager
    def lane(self, marker: str) -> Iterator[Lane]:
        """What is said under this marker meanwhile."""
        self._lanes[marker] = lane = Lane(self)
        try:
            yield lane
        finally:
            del self._lanes[marker]

    async def say(self, text: bytes) -> None:
        """Say a line, all of it or nothing; a bridge that does not listen is ended."""
        async with self._turn:
            if self.is_over:
                return
            with anyio.move_on_after(SAY_SECONDS, shield=True) as saying:
                await self._writer.write(text)
        if saying.cancelled_caught:
            self._process.kill()

    async def read(self, lane: Lane) -> dict[str, Any] | None:
        """As `Lane.next`."""
        try:
            while not lane.said and not self.is_over:
                await (self._wait(lane) if self._is_read else self._read())
        finally:
            self._hand_on()
        return lane.said.popleft() if lane.said else None

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """End the bridge, within so many seconds, and the cluster if it has brought one up. To be shielded."""
        self._end()
        self._writer.close()
        await in_thread(partial(self._end_process, seconds))
        self._reader.close()
        self._words.close()

    async def _read(self) -> None:
        self._is_read = True
        try:
            chunk = await self._reader.read()
        finally:
            self._is_read = False
        for text in self._framer.push(chunk):
            if not isinstance(text, Overlong):
                self._sort(decode(text))
        if not chunk:
            self._end()

    def _sort(self, message: dict[str, Any]) -> None:
        if message["type"] == LEFT_OUT:
            self._on_left_out(ExecutorError(message["reason"], message["remedy"]))
            return
        if (lane := self._lanes.get(message["marker"])) is not None:
            lane.said.append(message)
            lane.stirred.set()

    async def _wait(self, lane: Lane) -> None:
        lane.stirred = anyio.Event()
        self._waiting.add(lane)
        try:
            await lane.stirred.wait()
        finally:
            self._waiting.discard(lane)

    def _hand_on(self) -> None:
        """Have another one read, if nobody does."""
        if not self._is_read and self._waiting:
            next(iter(self._waiting)).stirred.set()

    def _end(self) -> None:
        self.is_over = True
        self._reader.finish()
        for lane in self._waiting:
            lane.stirred.set()

    def _end_process(self, seconds: float) -> None:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        cell.end(partial(cell.marked, self._mark, MARK))

    def _last_words(self) -> str:
        size = os.fstat(self._words.fileno()).st_size
        said = os.pread(self._words.fileno(), LAST_WORDS_BYTES, max(0, size - LAST_WORDS_BYTES))
        return said.decode(errors="replace").strip().rpartition("\n")[2] or "it said nothing"


def bridge_environment(surrounding: Mapping[str, str], mark: str) -> dict[str, str]:
    """The driver's own environment without what is the interpreter's or a session's, such as its credentials."""
    environment = inherited_environment(surrounding)
    return {**{name: value for name, value in environment.items() if not _is_secret(name)}, MARK: mark}


def _is_secret(name: str) -> bool:
    return name in PRECEDENCE or name.startswith("ANTHROPIC_")


def _raw(pipe: Any) -> FileIO:
    if not isinstance(pipe, FileIO):
        raise TypeError("the pipe is buffered")
    return pipe
