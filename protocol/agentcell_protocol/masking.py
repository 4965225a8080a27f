"""Secrets kept out of what a cell says."""

import re
from collections.abc import Callable, Mapping
from typing import Any

MASK = "[masked]"

SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION|_(?:PASS|PWD|AUTH|PAT)$", re.IGNORECASE
)
"""Names of environment variables whose values are secrets."""

SECRET_SHAPE = re.compile(r"sk-ant-[A-Za-z0-9_\-]+")
"""What is a secret wherever it stands."""

SHORTEST = 6
"""Characters in the shortest value that is masked; a shorter one would blank out ordinary words."""


class Mask:
    """Replaces the secrets of some environments in a text."""

    def __init__(self, *environments: Mapping[str, str]) -> None:
        values = {
            value
            for environment in environments
            for name, value in environment.items()
            if SECRET_NAME.search(name) and len(value) >= SHORTEST
        }
        self._values = sorted(values, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without its secrets."""
        for value in self._values:
            text = text.replace(value, MASK)
        return SECRET_SHAPE.sub(MASK, text)


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """The JSON value with `mask` applied to each string in it; names of members stay."""
    match value:
        case str():
            return mask(value)
        case list():
            return [masked(item, mask) for item in value]
        case dict():
            return {name: masked(item, mask) for name, item in value.items()}
        case _:
            return value
