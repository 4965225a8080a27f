"""Where credentials come from, by name."""

from pathlib import Path

import pytest

from agentcell_protocol.credentials import auth_notices, auth_source


@pytest.mark.parametrize(
    ("environment", "source"),
    [
        ({}, None),
        ({"ANTHROPIC_API_KEY": ""}, None),
        ({"ANTHROPIC_API_KEY": "k"}, "ANTHROPIC_API_KEY"),
        ({"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_USE_VERTEX": "0"}, "ANTHROPIC_API_KEY"),
        ({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t"}, "ANTHROPIC_AUTH_TOKEN"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "t"}, "CLAUDE_CODE_OAUTH_TOKEN"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_API_KEY": "k"}, "CLAUDE_CODE_USE_BEDROCK"),
    ],
)
def test_the_variable_the_cli_uses_is_named(tmp_path: Path, environment: dict[str, str], source: str | None) -> None:
    assert auth_source({"HOME": str(tmp_path), **environment}) == source


def test_a_login_is_found_in_the_config_directory(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").write_text("{}")
    assert auth_source({"HOME": str(tmp_path)}) == "login"
    assert auth_source({"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}) == "login"
    assert auth_source({"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path)}) is None


def test_a_key_beside_a_token_is_noticed() -> None:
    both = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t"}
    assert [notice.code for notice in auth_notices(both)] == ["two_credentials"]
    assert auth_notices({"ANTHROPIC_API_KEY": "k"}) == []
