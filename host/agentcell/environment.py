"""The environment of a cell: built from a list of what may pass, never inherited. Pure."""

from collections.abc import Iterable, Mapping

from agentcell_protocol.credentials import is_switched_on
from agentcell_protocol.enclosing import is_marker

CLI_RETRIES = "CLAUDE_CODE_MAX_RETRIES"
"""How often the CLI asks the API again, by itself, before it gives up: ten times when nobody says otherwise."""

CLI_RETRIES_WHEN_RETRIED = 2
"""For a session that is itself tried again: enough for a hiccup, and what lasts longer is waited for outside."""

PASSED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "TMPDIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        "SSH_AUTH_SOCK",
        "CLAUDE_CODE_OAUTH_TOKEN",
        CLI_RETRIES,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CONFIG_DIR",
        "IS_SANDBOX",
        "XDG_STATE_HOME",
    }
)
"""Variables every cell gets, when they are set."""

PASSED_PREFIXES = ("LC_", "ANTHROPIC_")

CLOUDS: Mapping[str, tuple[str, ...]] = {
    "CLAUDE_CODE_USE_BEDROCK": ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "AWS_"),
    "CLAUDE_CODE_USE_VERTEX": (
        *("CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_SKIP_VERTEX_AUTH"),
        *("GOOGLE_", "CLOUDSDK_", "CLOUD_ML_REGION", "VERTEX_REGION_"),
    ),
    "CLAUDE_CODE_USE_FOUNDRY": ("CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_SKIP_FOUNDRY_AUTH", "AZURE_"),
}
"""The switch of a cloud, and the prefixes of what passes only when it is set."""

CELL_PREFIX = "AGENTCELL_"
"""Of an enclosing cell, and of ours, which is told otherwise."""

INTERPRETER_PREFIX = "PYTHON"
"""Settings of the host's interpreter; the cell's would import the repository's own modules with some of them."""


def cell_environment(
    surrounding: Mapping[str, str], *, env: Mapping[str, str] | None = None, pass_env: Iterable[str] = ()
) -> dict[str, str]:
    """What a cell gets of the host's `surrounding` environment, plus the variables named in `pass_env`, plus `env`.

    Variables of the interpreter (PYTHON…) and markers of an enclosing agent session never pass, whoever names them.
    """
    prefixes = (*PASSED_PREFIXES, *_cloud_prefixes({**surrounding, **(env or {})}))
    named = PASSED | set(pass_env)
    passed = {name: value for name, value in surrounding.items() if name in named or name.startswith(prefixes)}
    return inherited_environment({**passed, **(env or {})})


def inherited_environment(surrounding: Mapping[str, str]) -> dict[str, str]:
    """The environment as given, without what belongs to an interpreter or to an enclosing agent session."""
    return {name: value for name, value in surrounding.items() if not _stays_outside(name)}


def with_cli_retries(environment: Mapping[str, str], retries: int = CLI_RETRIES_WHEN_RETRIED) -> dict[str, str]:
    """The environment in which the CLI asks the API again that often, unless it already says how often."""
    return {CLI_RETRIES: str(retries), **environment}


def _cloud_prefixes(environment: Mapping[str, str]) -> list[str]:
    switched_on = [prefixes for switch, prefixes in CLOUDS.items() if is_switched_on(environment, switch)]
    return [prefix for prefixes in switched_on for prefix in prefixes]


def _stays_outside(name: str) -> bool:
    return is_marker(name) or name.startswith((CELL_PREFIX, INTERPRETER_PREFIX))
