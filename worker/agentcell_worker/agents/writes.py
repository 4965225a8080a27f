"""The files that a session wrote by the tools made for it."""

from collections.abc import Mapping
from typing import Any

PATH_OF = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
"""The argument that names the file, for each tool that writes one."""


class Writes:
    """Hears a session's events; `paths` are the files of the calls that succeeded, as the model named them."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._called: dict[str, str] = {}

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take one event."""
        match event:
            case {"type": "tool_use", "id": str(use), "name": str(name), "input": {**given}} if name in PATH_OF:
                if isinstance(path := given.get(PATH_OF[name]), str):
                    self._called[use] = path
            case {"type": "tool_result", "id": str(use), "is_error": False} if use in self._called:
                self.paths.append(self._called.pop(use))
            case _:
                pass
