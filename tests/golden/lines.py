"""The golden lines: every message of the wire as it must stay."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "v1"


def read(name: str) -> list[bytes]:
    """The lines of `request`, `event`, `result` or `refused`, without their line ends."""
    return (FOLDER / f"{name}.jsonl").read_bytes().splitlines()


def messages(name: str) -> list[Any]:
    """The same, read by Python's own decoder rather than by ours."""
    return [json.loads(line) for line in read(name)]
