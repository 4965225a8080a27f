"""Where a session's credentials come from, by name; their values are nobody's business here."""

from collections.abc import Mapping
from pathlib import Path

from agentcell_protocol.result import Notice

CLOUD_SWITCHES = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
TOKEN = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - a variable's name
KEY = "ANTHROPIC_API_KEY"
OAUTH_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 - a variable's name

PRECEDENCE = (*CLOUD_SWITCHES, TOKEN, KEY, OAUTH_TOKEN)
"""The order in which the CLI looks."""

LOGIN = "login"

HINT = f"set {KEY}, {TOKEN} or {OAUTH_TOKEN}, or log in with the claude command"


def auth_source(environment: Mapping[str, str]) -> str | None:
    """The name of the variable that the CLI takes its credentials from, `login`, or None when there are none."""
    for name in PRECEDENCE:
        if environment.get(name):
            return name
    return LOGIN if _login_file(environment).is_file() else None


def auth_notices(environment: Mapping[str, str]) -> list[Notice]:
    """What is odd about the credentials."""
    if not (environment.get(TOKEN) and environment.get(KEY)):
        return []
    return [Notice(code="two_credentials", message=f"{TOKEN} and {KEY} are both set; the CLI prefers the token")]


def _login_file(environment: Mapping[str, str]) -> Path:
    home = environment.get("HOME")
    directory = environment.get("CLAUDE_CONFIG_DIR") or (Path(home) if home else Path.home()) / ".claude"
    return Path(directory) / ".credentials.json"
