"""The project's source as the tests of this folder look at it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ROOMS = {
    "agentcell_protocol": ROOT / "protocol" / "agentcell_protocol",
    "agentcell_worker": ROOT / "worker" / "agentcell_worker",
    "agentcell": ROOT / "host" / "agentcell",
}
"""The import packages and where they are."""


@dataclass(frozen=True)
class Module:
    """One file of a room: `name` as it is imported, `place` for people."""

    package: str
    path: Path

    @property
    def place(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def name(self) -> str:
        parts = (self.package, *self.path.relative_to(ROOMS[self.package]).with_suffix("").parts)
        return ".".join(part for part in parts if part != "__init__")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text("utf-8"))

    def imports(self) -> Iterator[str]:
        """Every module that is imported anywhere in it, also inside functions and for type checkers only."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                yield node.module

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


MODULES = [Module(package, path) for package, folder in ROOMS.items() for path in sorted(folder.rglob("*.py"))]
