"""How a batch is to be run: policy, none of which changes what its rows are."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentcell.batch.caps import Caps

RETRIES = 2
"""Further attempts at a row, where nobody says how many."""

MIN_FREE_MB = 1024.0
"""Memory that must be free before another cell starts: about what one takes that runs a build."""

GRACE_SECONDS = 30.0
"""For the running cells to finish after the first interrupt; whoever cannot wait interrupts again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """See `agentcell batch --help`; `environment` is that of every cell. Raises ValueError, which names the setting."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    retries: int = RETRIES
    retry_failed: bool = False
    rerun_changed: bool = False
    waits_for_quota: bool = False
    caps: Caps = field(default_factory=Caps)
    min_free_mb: float = MIN_FREE_MB
    grace_seconds: float = GRACE_SECONDS

    def __post_init__(self) -> None:
        for name in ("retries", "min_free_mb", "grace_seconds"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative")
