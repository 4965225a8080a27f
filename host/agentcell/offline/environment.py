"""The environment of a session that must not reach, or spend, anything real."""

import os
from collections.abc import Mapping
from pathlib import Path

from agentcell.offline.endpoint import Endpoint

KEPT = frozenset({"PATH", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "COLORTERM", "TMPDIR"})
"""Variables that say where things are on this machine, and nothing of anybody's account."""

KEPT_PREFIX = "LC_"


def offline_environment(
    endpoint: Endpoint, home: str | Path, surrounding: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A whole environment with `home` as HOME and `endpoint` as the only API.

    Of the `surrounding` one (this process's), no credential, address, proxy or setting is kept.
    """
    around = os.environ if surrounding is None else surrounding
    kept = {name: value for name, value in around.items() if name in KEPT or name.startswith(KEPT_PREFIX)}
    return {**kept, **endpoint.environment(), "HOME": str(home)}
