"""What a flow's sessions made: the files of a project that are new or changed since the flow began."""

from pathlib import Path

from agentcell_worker.agents.sessions import Sessions
from agentcell_worker.checks.tree import MAX_FILES, changed, stamps


class Changes:
    """Looks at a project when it is made, and again when it is asked."""

    def __init__(self, project_dir: str | Path, sessions: Sessions) -> None:
        self._project = Path(project_dir).resolve()
        self._sessions = sessions
        self._before = stamps(self._project)

    def files(self) -> list[str]:
        """The files that are new or changed, as sorted POSIX paths relative to the project.

        Those that the sessions wrote by their file tools count wherever in the project they lie, others only
        outside of what `tree` skips. Of a project too large to look through, the former are all that is known.
        """
        return sorted(self._by_tree() | self._by_tools())

    def _by_tree(self) -> set[str]:
        found = changed(self._before, stamps(self._project))
        if found is None:
            message = f"the project has over {MAX_FILES} files: only those the file tools wrote are listed"
            self._sessions.warn("large_project", message)
        return found or set()

    def _by_tools(self) -> set[str]:
        named = (self._relative(path) for path in self._sessions.writes.paths)
        return {path for path in named if path is not None}

    def _relative(self, path: str) -> str | None:
        """The path in the project of a file that is there, None for any other."""
        try:
            written = self._project / path
            real = written.parent.resolve() / written.name
            is_ours = real.is_relative_to(self._project) and real.is_file()
        except (OSError, ValueError):
            return None  # nothing that could be read has such a path
        return real.relative_to(self._project).as_posix() if is_ours else None
