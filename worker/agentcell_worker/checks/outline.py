"""What one Python file defines, read without running it."""

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["module", "function", "class", "method"]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class OutlineError(ValueError):
    """The file is no Python that can be parsed here."""


@dataclass(frozen=True)
class Definition:
    """A module (whose name is empty), a function, a class, or a method, which is named `Class.method`."""

    kind: Kind
    name: str
    line: int
    has_docstring: bool

    @property
    def is_public(self) -> bool:
        """Whether no part of the name begins with an underscore."""
        return not any(part.startswith("_") for part in self.name.split("."))


def outline(source: bytes) -> list[Definition]:
    """The module and what it defines for others, in the order of its lines; what functions hide is left out.

    The encoding is what the file declares. Raises OutlineError.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in the file is no news for its reader
            module = ast.parse(source)
    except SyntaxError as wrong:
        raise OutlineError(f"line {wrong.lineno}: {wrong.msg}" if wrong.lineno else str(wrong.msg)) from wrong
    except (RecursionError, MemoryError) as deep:
        raise OutlineError("it is nested too deeply") from deep
    except ValueError as wrong:
        raise OutlineError(str(wrong)) from wrong
    about_itself = Definition("module", "", 1, bool(ast.get_docstring(module)) or not module.body)
    return [about_itself, *_definitions(module)]


def _definitions(module: ast.Module) -> Iterator[Definition]:
    """Depth is no matter of the stack: what waits is kept in a list, the next line last."""
    waiting: list[tuple[str, ast.stmt]] = [("", node) for node in reversed(module.body)]
    while waiting:
        within, node = waiting.pop()
        if isinstance(node, FUNCTIONS):
            yield _definition("method" if within else "function", within, node)
        elif isinstance(node, ast.ClassDef):
            yield _definition("class", within, node)
            waiting += [(f"{within}{node.name}.", each) for each in reversed(node.body)]
        else:
            waiting += [(within, each) for each in reversed(_branches(node))]


def _definition(kind: Kind, within: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Definition:
    return Definition(kind, within + node.name, node.lineno, bool(ast.get_docstring(node)))


def _branches(node: ast.stmt) -> Sequence[ast.stmt]:
    """The statements under an `if`, `try`, `with` or the like."""
    found: list[ast.stmt] = []
    for part in ("body", "handlers", "orelse", "finalbody"):
        for each in getattr(node, part, ()):
            found += each.body if isinstance(each, ast.ExceptHandler) else [each]
    return found
