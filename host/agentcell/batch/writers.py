"""Rows that may get into each other's way: those that write, and share a project directory."""

from collections import Counter
from collections.abc import Callable

from agentcell.batch.rows import Problem, Row
from agentcell.batch.sources import Source

WRITING_TOOLS = frozenset({"Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"})
"""The CLI's own tools that change files; one of an MCP server may, too."""


def may_write(row: Row) -> bool:
    """Whether the session may change files, as far as the request says."""
    if row.request.permission_mode == "plan":
        return False
    tools = row.request.tools
    return tools is None or any(tool in WRITING_TOOLS or tool.startswith("mcp__") for tool in tools)


class Writers:
    """Counts the rows that may write into each project directory."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, row: Row) -> None:
        """Take one more row into account."""
        if may_write(row):
            self._counts[row.request.project_dir] += 1

    @property
    def most(self) -> tuple[str, int] | None:
        """The directory that most of them share, and how many do; None when no two do."""
        [(directory, count)] = self._counts.most_common(1) or [("", 0)]
        return (directory, count) if count > 1 else None


class WatchedRows:
    """The same rows as another source gives; `warn` is told once, of the first directory that two of them share."""

    def __init__(self, rows: Source, warn: Callable[[str], object], is_done: Callable[[str], bool]) -> None:
        self._rows = rows
        self._warn = warn
        self._is_done = is_done
        self._seen: set[str] | None = set()

    async def next(self) -> Row | Problem | None:
        """The next one."""
        row = await self._rows.next()
        if self._seen is not None and isinstance(row, Row) and may_write(row) and not self._is_done(row.id):
            if row.request.project_dir in self._seen:
                self._seen = None
                self._warn(row.request.project_dir)
            else:
                self._seen.add(row.request.project_dir)
        return row
