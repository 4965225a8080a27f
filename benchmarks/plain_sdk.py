"""The same session as ours by the SDK alone, as a program without agentcell would have it: a peer of what we do.

    python -m benchmarks.plain_sdk PROJECT SESSIONS AT_ONCE

It imports nothing of ours, so that its time is that of the SDK.
"""

import sys
import tempfile
from typing import Final

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

MODEL = "sonnet"
PROMPT = "Say that it is done."
TOOLS = ["Read", "Glob", "Grep", "Write", "Edit", "Bash", "WebFetch", "WebSearch"]
"""Those of a coder, the agent type of our side."""

PERMISSION_MODE: Final = "acceptEdits"


def main(arguments: list[str]) -> None:
    """Run so many sessions, so many at a time."""
    project, sessions, at_once = arguments
    anyio.run(many, project, int(sessions), int(at_once))


async def many(project: str, sessions: int, at_once: int) -> None:
    """Wait for them all."""
    places = anyio.CapacityLimiter(at_once)

    async def one() -> None:
        async with places:
            await session(project)

    async with anyio.create_task_group() as tasks:
        for _ in range(sessions):
            tasks.start_soon(one)


async def session(project: str) -> None:
    """One, in a config directory of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as config:
        async with ClaudeSDKClient(_options(project, config)) as client:
            await client.query(PROMPT)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    assert not message.is_error, message.result


def _options(project: str, config: str) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        cwd=project,
        model=MODEL,
        tools=TOOLS,
        allowed_tools=TOOLS,
        permission_mode=PERMISSION_MODE,
        system_prompt={"type": "preset", "preset": "claude_code"},
        setting_sources=[],
        strict_mcp_config=True,
        env={"CLAUDE_CONFIG_DIR": config},
    )


if __name__ == "__main__":
    main(sys.argv[1:])
