"""What an agent session around us leaves in the environment is known by its names."""

import pytest

from agentcell_protocol.enclosing import is_marker


@pytest.mark.parametrize("name", ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_REMOTE", "AI_AGENT"])
def test_a_marker_is_known(name: str) -> None:
    assert is_marker(name)


@pytest.mark.parametrize(
    "name", ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "AGENTCELL_CELL"]
)
def test_what_a_session_needs_is_no_marker(name: str) -> None:
    assert not is_marker(name)
