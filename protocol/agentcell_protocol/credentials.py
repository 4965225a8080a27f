"""Where a session's credentials come from, by name; their values are nobody's business here."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from agentcell_protocol.result import Notice

CLOUD_SWITCHES = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
TOKEN = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - a variable's name
KEY = "ANTHROPIC_API_KEY"
OAUTH_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 - a variable's name

PRECEDENCE = (*CLOUD_SWITCHES, TOKEN, KEY, OAUTH_TOKEN)
"""The order in which the CLI looks."""

OFF = frozenset({"", "0", "false", "no", "off"})
"""Values with which a switch counts as not set."""

CONFIG_DIRECTORY = "CLAUDE_CONFIG_DIR"
"""Variable that says where the CLI has its settings, its login and its conversations."""

LOGIN = "login"

HINT = f"set {KEY}, {TOKEN} or {OAUTH_TOKEN}, or log in with the claude command"


def is_switched_on(environment: Mapping[str, str], switch: str) -> bool:
    """Whether a variable that turns something on does so."""
    return environment.get(switch, "").lower() not in OFF


def credential_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """The names of the variables that bring credentials, the one that the CLI uses first."""
    for name in PRECEDENCE:
        if is_switched_on(environment, name) if name in CLOUD_SWITCHES else environment.get(name):
            yield name


def auth_source(environment: Mapping[str, str]) -> str | None:
    """The name of the variable that the CLI takes its credentials from, `login`, or None when there are none."""
    return next(credential_variables(environment), LOGIN if login_file(environment).is_file() else None)


def auth_notices(environment: Mapping[str, str]) -> list[Notice]:
    """What is odd about the credentials."""
    if not (environment.get(TOKEN) and environment.get(KEY)):
        return []
    return [Notice(code="two_credentials", message=f"{TOKEN} and {KEY} are both set; the CLI prefers the token")]


def config_directory(environment: Mapping[str, str]) -> Path:
    """Where the CLI has its settings, its login and its conversations."""
    home = environment.get("HOME")
    return Path(environment.get(CONFIG_DIRECTORY) or (Path(home) if home else Path.home()) / ".claude")


def login_file(environment: Mapping[str, str]) -> Path:
    """Where the CLI keeps the login of a user who has one."""
    return config_directory(environment) / ".credentials.json"
