"""What is said between who runs sessions on Ray and its bridge: one JSON object a line. See `wire` for the rest.

To the bridge, through its stdin, whose end means that it is to end itself:

    open       {address, directories, …}              the first line: the members of `RaySettings`
    attempt    {marker, order, memory_mb, name}       to be made by a node that has so much memory
    cancel     {marker, reason}                       the first one politely, a second one at once
    taken      {marker}                               one more line of it was dealt with
    settle     {marker, markers}                      end what is left of these, on every node

and from its stdout:

    ready      {marker, max_sessions}                 the nodes are there, and each has a keeper
    failed     {marker, reason, remedy}               the last line
    left_out   {marker, reason, remedy}               a node that is given no attempts, at any time
    said, ended                                       of an attempt, as its keeper said it
    lost       {marker, reason, has_begun}            nobody knows how it ended; nothing of it is left
    withdrawn  {marker}                               it was cancelled before any node had it
    refused    {marker, reason, remedy}               no node has ever room for it
    settled    {marker, swept}                        nothing is left

The `marker` says whose the line is: an attempt's, or one that a question was given; `OPENING` before there are any.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from agentcell.executors.wire import LEASE_SECONDS, line
from agentcell_protocol.version import __version__

OPEN, TAKEN = "open", "taken"
FAILED, LEFT_OUT = "failed", "left_out"
LOST, WITHDRAWN, REFUSED = "lost", "withdrawn", "refused"

OPENING = "opening"
"""The marker of what is said before the first attempt."""

UNDER_WAY: Final = 4
"""Lines of one attempt on the way to who listens to it: a slow one holds up its own attempt, and nothing else."""

CELL_CPUS = 0.5
"""Of a core, for a cell: it waits for the model most of the time."""

CELL_MEMORY_MB = 256
"""For a cell whose limits say nothing: what the worker and the CLI take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaySettings:
    """How attempts are made: `address` is that of a cluster's head, None for a cluster of this machine alone.

    `directories` must be there on every node, and `left` are markers of which nothing is to be left on any. The rest is
    for the nodes' keepers.
    """

    address: str | None = None
    directories: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    cell_cpus: float = CELL_CPUS
    cell_memory_mb: float = CELL_MEMORY_MB
    lease_seconds: float = LEASE_SECONDS
    min_free_mb: float = 0.0
    max_starts: int | None = None
    worker_command: tuple[str, ...] | None = None
    version: str = __version__

    def as_line(self) -> bytes:
        """The `open` line."""
        return line(OPEN, **asdict(self))

    @classmethod
    def of(cls, message: dict[str, Any]) -> "RaySettings":
        """Those of an `open` line."""
        members = {name: value for name, value in message.items() if name != "type"}
        return cls(**{**members, "directories": tuple(members["directories"]), "left": tuple(members["left"])})
