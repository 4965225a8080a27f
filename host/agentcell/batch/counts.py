"""What rows and attempts come to, counted in one way while a batch runs and when it is read. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agentcell.batch.values import amount, number
from agentcell_protocol.result import COST_DIGITS, Usage

SLOWEST = 5
"""Rows that are named for the time they took."""

RATE_ROWS = 50
"""The rate is that of so many rows that finished last: a pause an hour ago says nothing of the time left."""

TOKENS = tuple(Usage.model_fields)


@dataclass(slots=True)
class Rows:
    """Rows that have finished: by status, by category, and those that took longest with their seconds."""

    by_status: Counter[str] = field(default_factory=Counter)
    by_category: Counter[str] = field(default_factory=Counter)
    slowest: list[tuple[str, float]] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Those that have finished with an error."""
        return self.by_status["error"]

    @property
    def finished(self) -> int:
        """All of them."""
        return self.by_status.total()

    def add(self, status: str, category: str | None, count: int = 1) -> None:
        """A row, or so many, have such results."""
        self.by_status[status] += count
        if category is not None:
            self.by_category[str(category)] += count

    def took(self, row_id: str, seconds: float) -> None:
        """All attempts at the row took so long."""
        self.slowest = sorted([*self.slowest, (row_id, seconds)], key=lambda row: -row[1])[:SLOWEST]


@dataclass(slots=True)
class Spending:
    """What all attempts came to. `retries` are those beyond a row's first; `known_usd` is the sum of known costs."""

    tokens: dict[str, int] = field(default_factory=dict)
    known_usd: float = 0.0
    known_costs: int = 0
    unknown_costs: int = 0
    retries: int = 0

    @property
    def usage(self) -> Usage:
        """The tokens."""
        return Usage(**self.tokens)

    @property
    def cost_usd(self) -> float | None:
        """What is known to have been spent; None when nothing is known."""
        return None if self.unknown_costs and not self.known_costs else round(self.known_usd, COST_DIGITS)

    def add(self, usage: object, cost_usd: object) -> None:
        """An attempt took this, as far as it makes sense."""
        if isinstance(usage, dict):
            tokens = self.tokens
            for name in TOKENS:
                if (given := usage.get(name)) and (count := number(given)):
                    tokens[name] = tokens.get(name, 0) + count
        if (cost := amount(cost_usd)) is None:
            self.unknown_costs += 1
        else:
            self.known_costs += 1
            self.known_usd += cost

    def copy(self) -> "Spending":
        """The same, to go on with."""
        return replace(self, tokens=self.tokens.copy())


def rate(times: Sequence[float], began: float, now: float) -> float:
    """Rows a second, of which the last ones finished at these times: it falls while nothing finishes."""
    last = times[-RATE_ROWS:]
    since = last[0] if len(last) == RATE_ROWS else began
    return len(last) / (now - since) if now > since else 0.0
