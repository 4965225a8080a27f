"""What is said between who wants an attempt and the node that makes it: one JSON object a line.

To a node's keeper, through a connection of its own for each attempt, whose end means that nobody wants it any more:

    attempt   {marker, order}                  the first line, and the only one

and from there, back to who wants it

    said      {marker, events}                 what the session had to say meanwhile, some events at a time
    ended     {marker, result}                 the last line

To a keeper through its stdin, whose end means that it is to end itself:

    alive     {}                               who wants the attempts is there; to be repeated
    cancel    {marker, reason}                 the first one politely, a second one at once
    settle    {markers}                        end what is left of these, whoever began it

and from its stdout

    ready     {address, pid, version}          the path of the socket for attempts; agentcell's version
    settled   {markers, swept}                 nothing is left of these; so many processes were
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import fspath
from pathlib import Path
from typing import Any, Final

from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.orders import Order
from agentcell.stop import Stop
from agentcell_protocol.codec import encode
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.request import parse_request

ATTEMPT, SAID, ENDED = "attempt", "said", "ended"
ALIVE, CANCEL, SETTLE = "alive", "cancel", "settle"
READY, SETTLED = "ready", "settled"

LEASE_SECONDS: Final = 30.0
"""Without an `alive` before a keeper ends itself: several are sent in that time, and one may be late."""

END_SECONDS: Final = 30
"""From there until nothing of a keeper and its cells is left: it takes half of that, and is killed after all of it."""

LAST_SECONDS: Final = 5.0
"""For what ends when a keeper has, and for the last word to one that is still on its way."""

WIRE_LIMIT: Final = LINE_LIMIT + 4 * 1024 * 1024
"""Bytes in the longest line: one of a cell with what is said around it."""


def gone_seconds(lease_seconds: float) -> float:
    """After so long without a word to a keeper with this lease nothing of it and its cells is left."""
    return lease_seconds + END_SECONDS + LAST_SECONDS


def line(kind: str, **members: Any) -> bytes:
    """A line of this kind."""
    return encode({"type": kind, **members})


def packed(order: Order) -> dict[str, Any]:
    """The order as a member of an `attempt`; `is_heard` says whether its events are wanted."""
    return {
        "request": order.request.model_dump(exclude_defaults=True),
        "environment": dict(order.environment),
        "limits": asdict(order.limits),
        "keep": order.keep if isinstance(order.keep, bool) else fspath(order.keep),
        "stderr_file": order.stderr_file and str(order.stderr_file),
        "is_heard": order.on_event is not None,
    }


def unpacked(marker: str, order: Mapping[str, Any], *, on_event: OnEvent, stop: Stop) -> Order:
    """The order of an `attempt`, as its node makes it. Raises RequestError for a directory that is not there."""
    return Order(
        parse_request(order["request"]),
        environment=order["environment"],
        limits=Limits(**order["limits"]),
        keep=order["keep"],
        on_event=on_event if order["is_heard"] else None,
        marker=marker,
        stop=stop,
        stderr_file=order["stderr_file"] and Path(order["stderr_file"]),
    )


def said(marker: str, events: Sequence[bytes]) -> bytes:
    """The line for some events of an attempt, each as `encode` gives it, without its line end."""
    opening = line(SAID, marker=marker, events=[]).removesuffix(b"]}\n")
    return b"%b%b]}\n" % (opening, b",".join(events))
