"""Attempts at rows under way: their orders, the files in their folders, and why they were cut if they were."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentcell.attempts import Mode
from agentcell.batch.items import Cut, Item
from agentcell.batch.recovery import EVENTS, REQUEST, RESULT
from agentcell.orders import Order
from agentcell.stop import Stop
from agentcell.transcripts import PRIVATE_FILE, Keep
from agentcell.writing import write_all
from agentcell_protocol.cell import new_marker
from agentcell_protocol.codec import encode
from agentcell_protocol.masking import Mask, masked
from agentcell_protocol.request import SessionRequest, with_session_id

STDERR = "stderr.log"

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""Of events that are kept of one attempt: a session that says more has gone astray."""


@dataclass(slots=True, eq=False)
class Flight:
    """The attempt with this `number` at an item, which began at a time in Unix seconds. `cut` says why it is to end."""

    item: Item
    number: int
    mode: Mode
    request: SessionRequest
    began: float
    marker: str = field(default_factory=new_marker)
    stop: Stop = field(default_factory=Stop)
    cut: Cut | None = None

    @classmethod
    def of(cls, item: Item, began: float) -> "Flight":
        """The next attempt at the item, with the id its session will have."""
        following = item.next()
        return cls(item, following.number, following.mode, with_session_id(following.request), began)

    @property
    def id(self) -> str:
        """Of the row."""
        return self.item.row.id

    def end(self, cut: Cut, reason: str) -> None:
        """Have its cell end, if nobody has before."""
        if self.cut is None:
            self.cut = cut
            self.stop.cancel(reason)

    def order(self, folder: Path, environment: Mapping[str, str], keep: Keep, log: "EventLog") -> Order:
        """The order for its cell, whose files are in the folder."""
        return Order(
            self.request.model_copy(update={"result_file": str(folder / RESULT)}),
            environment=environment,
            limits=self.item.row.limits,
            keep=keep,
            on_event=log.add,
            marker=self.marker,
            stop=self.stop,
            stderr_file=folder / STDERR,
            tag=self,
        )


class Flights:
    """The attempts under way, one for each row. Once all are ended, so is each that is added."""

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self._ending: tuple[Cut, str] | None = None
        self._are_killed = False

    def add(self, flight: Flight) -> None:
        """It is under way."""
        self._flights[flight.id] = flight
        self._see_to(flight)

    def remove(self, flight: Flight) -> None:
        """It has ended."""
        del self._flights[flight.id]

    def end_all(self, cut: Cut, reason: str) -> None:
        """Have all cells end: the reason is the name of a signal."""
        self._ending = cut, reason
        for flight in self._flights.values():
            self._see_to(flight)

    def kill_all(self) -> None:
        """Have all cells that were to end killed."""
        self._are_killed = True
        for flight in self._flights.values():
            self._see_to(flight)

    def make_room(self) -> None:
        """Have the youngest cell end, if none is about to."""
        flights = self._flights.values()
        if flights and not any(flight.cut == "memory" for flight in flights):
            max(flights, key=lambda flight: flight.began).end("memory", "SIGTERM")

    def _see_to(self, flight: Flight) -> None:
        if self._ending is not None:
            flight.end(*self._ending)
        if self._are_killed:
            flight.stop.cancel()


def write_request(folder: Path, request: SessionRequest, environment: Mapping[str, str]) -> None:
    """Put the request of an attempt into its folder, without secrets, as far as it can be written. Blocks."""
    message = masked(request.model_dump(exclude_defaults=True), Mask(environment, request.env or {}))
    with suppress(OSError):
        descriptor = os.open(folder / REQUEST, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(encode(message))


class EventLog:
    """The events of one attempt, a line each in a file of its folder; what cannot be written is done without."""

    def __init__(self, folder: Path, mask: Mask, hear: Callable[[dict[str, Any]], object]) -> None:
        self._path = folder / EVENTS
        self._mask = mask
        self._hear = hear
        self._left = MAX_EVENT_BYTES

    def add(self, event: dict[str, Any]) -> None:
        """Keep it without secrets, and tell whoever watches."""
        line = encode(masked(event, self._mask))
        self._left -= len(line)
        if self._left > 0:
            with suppress(OSError):
                _append(self._path, line)
        self._hear(event)


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
    try:
        write_all(descriptor, line)
    finally:
        os.close(descriptor)
