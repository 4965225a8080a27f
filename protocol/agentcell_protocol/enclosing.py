"""What an agent session sets for its tools: it would make the CLI believe that it runs inside that session."""

MARKERS = frozenset(
    {
        *("CLAUDECODE", "AI_AGENT", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR"),
        *("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_INVOKED_SKILLS"),
        *("CLAUDE_CODE_CONTAINER_ID", "CLAUDE_CODE_WORKER_EPOCH", "CLAUDE_CODE_TMPDIR", "CLAUDE_SESSION_ID"),
        *("CLAUDE_AGENT_SDK_VERSION", "CLAUDE_AGENT_SDK_CLIENT_APP", "CLAUDE_CODE_RESUME_FROM_SESSION"),
    }
)

MARKER_PREFIXES = (
    *("CLAUDE_CODE_SESSION", "CLAUDE_CODE_CHILD_", "CLAUDE_CODE_HOST_", "CLAUDE_CODE_REMOTE"),
    *("CLAUDE_CODE_BRIDGE_", "CLAUDE_CODE_MESSAGING_", "CLAUDE_BG_"),
)


def is_marker(name: str) -> bool:
    """Whether a variable says that an agent session is around."""
    return name in MARKERS or name.startswith(MARKER_PREFIXES)
