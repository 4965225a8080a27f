"""An agent type of one's own: `agents/reviewer.md` beside this file has its role and its tools.

own_agent_type.py ["MESSAGE" [PROJECT_DIR]]
"""

import sys
from pathlib import Path

from agentcell import run_session_sync

AGENTS = Path(__file__).with_name("agents")


def main(message: str = "Review the last commit.", project_dir: str = ".") -> int:
    """Have the review written; the exit code."""
    result = run_session_sync(
        {
            "session_name": "review",
            "agent_type": "reviewer",
            "agents_dir": str(AGENTS),
            "project_dir": project_dir,
            "starting_message": message,
        }
    )
    for warning in result.warnings:
        print(f"warning: {warning.message}", file=sys.stderr)
    print(result.response)
    return 0 if result.error is None else 1


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:3]))
