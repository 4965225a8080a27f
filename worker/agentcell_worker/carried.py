"""What a conversation had cost before it is resumed: the CLI goes on counting from there."""

from collections.abc import Mapping
from contextlib import suppress
from glob import escape

from agentcell_protocol.codec import decode
from agentcell_protocol.credentials import config_directory
from agentcell_protocol.errors import WireError
from agentcell_protocol.result import COST_DIGITS

NOTED = b'"cost-state"'
"""In the lines in which the CLI notes what the conversation has cost so far."""


def carried_cost(session_id: str, environment: Mapping[str, str]) -> float:
    """The US dollars that the CLI will count as the conversation's when it is resumed; 0 when it has noted none."""
    files = (config_directory(environment) / "projects").glob(f"*/{escape(session_id)}.jsonl")
    cost = 0.0
    with suppress(OSError, StopIteration), next(files).open("rb") as lines:
        for line in lines:
            if NOTED in line:
                cost = _noted(line, cost)
    return cost


def own_cost(counted: float, carried: float) -> float:
    """What a session itself cost, of all that the CLI has counted; it may have begun at zero after all."""
    return round(counted - carried, COST_DIGITS) if counted >= carried else counted


def _noted(line: bytes, before: float) -> float:
    with suppress(WireError):
        noted = decode(line)
        cost = noted.get("totalCostUSD")
        if noted.get("type") == "cost-state" and isinstance(cost, int | float):
            return float(cost)
    return before
