"""An order: all that is said of one attempt at a session before it is made."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from agentcell.limits import Limits
from agentcell.listener import OnEvent
from agentcell.stop import Stop
from agentcell.transcripts import Keep
from agentcell_protocol.cell import new_marker
from agentcell_protocol.request import SessionRequest


@dataclass(frozen=True, slots=True)
class Order:
    """One session in one cell, which has exactly this `environment`; see `run_session` for the rest.

    `marker` is in everything the cell executes. `stop` cancels the session and still gets its result. All of the
    cell's stderr is also appended to `stderr_file`, as far as it has room. `tag` is the caller's own.
    """

    request: SessionRequest
    _: KW_ONLY
    environment: Mapping[str, str] = field(repr=False)
    limits: Limits = field(default_factory=Limits)
    keep: Keep = True
    on_event: OnEvent | None = None
    marker: str = field(default_factory=new_marker)
    stop: Stop = field(default_factory=Stop)
    stderr_file: Path | None = None
    tag: Any = None
