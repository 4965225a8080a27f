"""The private config directory of a cell, so that sessions share neither state nor login with each other or the user.

It starts out empty: the CLI makes what it needs, and that costs no more than a copy would. Only when a request
asks for the user's settings are they there as well.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agentcell_protocol.credentials import CONFIG_DIRECTORY, credential_variables
from agentcell_protocol.request import SessionRequest

SETTINGS = ("settings.json", "CLAUDE.md", "agents", "commands", "output-styles", "plugins", "rules", "skills")
"""What in a config directory is the user's own doing: what `setting_sources: ["user"]` asks for."""


def is_private(request: SessionRequest, environment: Mapping[str, str]) -> bool:
    """Whether its cell gets a config directory of its own: when its credentials come by a variable.

    A login lies in the user's directory, and a request may name one itself.
    """
    own = request.env or {}
    return CONFIG_DIRECTORY not in own and any(credential_variables({**environment, **own}))


def prepare_config(directory: Path, user: Path, request: SessionRequest) -> None:
    """Make it (0700), with links to the settings in the `user`'s if the request asks for them. Raises OSError."""
    directory.mkdir(mode=0o700)
    if "user" in (request.setting_sources or ()):
        for name in SETTINGS:
            if (user / name).exists():
                with suppress(FileExistsError):
                    (directory / name).symlink_to(user.absolute() / name)
