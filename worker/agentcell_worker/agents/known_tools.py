"""The tools that the CLI has by itself: a name that is none of them is a mistake, as a rule."""

from collections.abc import Iterable
from difflib import get_close_matches

KNOWN_TOOLS = (
    *("Agent", "AskUserQuestion", "Bash", "BashOutput", "CronCreate", "CronDelete", "CronList", "Edit"),
    *("EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "KillShell", "LS", "LSP"),
    *("ListMcpResourcesTool", "Monitor", "MultiEdit", "NotebookEdit", "NotebookRead", "PowerShell", "Read"),
    *("ReadMcpResourceTool", "SendMessage", "Skill", "SlashCommand", "StructuredOutput", "Task", "TaskCreate"),
    *("TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoRead", "TodoWrite", "ToolSearch"),
    *("WebFetch", "WebSearch", "Write"),
)
"""Of the CLI that the SDK brings and of its earlier versions; a later one may have others."""

MCP = "mcp__"
"""How the names of tools of MCP servers begin."""

LIKENESS = 0.75
"""From 0 to 1: with less, another word is meant."""

_SPELLED = {name.lower(): name for name in KNOWN_TOOLS}


def unknown_tools(rules: Iterable[str]) -> list[str]:
    """A note for each tool that is not known, with the name that may be meant."""
    names = dict.fromkeys(rule.partition("(")[0] for rule in rules)
    return [_note(name) for name in names if name not in KNOWN_TOOLS and not name.startswith(MCP)]


def _note(name: str) -> str:
    close = get_close_matches(name.lower(), _SPELLED, n=1, cutoff=LIKENESS)
    return f"names {name}, which is no known tool" + (f"; did you mean {_SPELLED[close[0]]}?" if close else "")
