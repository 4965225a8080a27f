"""The agent types that a cell knows. The worker is asked for them: it is not imported here."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentcell.environment import inherited_environment
from agentcell_protocol.codec import decode
from agentcell_protocol.errors import WireError

LISTING = (sys.executable, "-P", "-m", "agentcell_worker.agents")

LISTING_SECONDS = 60.0
"""For the listing: it takes half a second, many times that on a machine that is busy."""


class ListingError(Exception):
    """The worker did not say which types it knows."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The types, and what keeps files from defining one, as the worker's lines have them."""

    types: tuple[Mapping[str, Any], ...]
    problems: tuple[Mapping[str, Any], ...]


def known_agents(directory: str | None, environment: Mapping[str, str]) -> Listing:
    """The built-in types, and those defined in the directory. Raises ListingError."""
    argv = [*LISTING, "--agents-dir", directory] if directory is not None else LISTING
    try:
        answer = subprocess.run(
            argv,
            env=inherited_environment(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LISTING_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ListingError(f"the worker did not list them within {LISTING_SECONDS:.0f} s") from None
    except OSError as failure:
        raise ListingError(f"the worker does not start: {failure.strerror}") from None
    if answer.returncode != 0:
        last_words = answer.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ListingError(f"the worker ended with {answer.returncode}: {last_words}")
    return _listing(answer.stdout)


def _listing(output: bytes) -> Listing:
    try:
        lines = [decode(line) for line in output.split(b"\n") if line]
    except WireError as broken:
        raise ListingError(f"the worker did not list them in lines of JSON: {broken}") from None
    return Listing(tuple(line for line in lines if "name" in line), tuple(line for line in lines if "name" not in line))
