"""Says which tools this interpreter has, and which files it cannot compile: `survey.py SCRATCH FILE...`.

The report: {"tools": [name of one that is installed], "problems": {file: what is wrong with its syntax}}.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from pathlib import Path

TOOLS = ("pytest", "coverage")


def main(scratch: str, *files: str) -> None:
    """Look, and write the report."""
    del sys.path[0]
    warnings.simplefilter("ignore")
    found = {
        "tools": [name for name in TOOLS if is_installed(name)],
        "problems": {file: problem for file in files if (problem := syntax_problem(file)) is not None},
    }
    Path(scratch, "report.json").write_text(json.dumps(found), "utf-8")


def is_installed(name: str) -> bool:
    """Whether it can be imported; a directory that happens to have its name cannot."""
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def syntax_problem(file: str) -> str | None:
    """Why the file does not compile; None when it does. Nothing is run, no bytecode is written."""
    try:
        compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    except SyntaxError as wrong:
        where = "" if wrong.lineno is None else f" in line {wrong.lineno}"
        return f"has a syntax error{where}: {wrong.msg}"
    except (ValueError, OverflowError) as wrong:
        return f"has a syntax error: {wrong}"
    except (RecursionError, MemoryError):
        return "is nested too deep to be compiled"
    except OSError as wrong:
        return f"cannot be read: {wrong.strerror}"
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
