"""Stand-ins for a project's own TypeScript compiler and vitest."""

import stat
import sys
from pathlib import Path

IT = 'import { it } from "vitest"\nit("works", () => {})\n'
"""A test that vitest collects."""

VITEST = """\
#!{python}
import json, pathlib, sys
report = next(each[7:] for each in sys.argv if each.startswith("--json="))
files = [pathlib.Path(each).resolve() for each in sys.argv[3:]]
if any("broken" in file.read_text() for file in files):
    sys.exit("no")
found = [{{"name": "it", "file": str(file)}} for file in files if "it(" in file.read_text()]
pathlib.Path(report).write_text(json.dumps(found))
"""


def put(project: Path, name: str, content: str | bytes) -> None:
    """Writes a file of a project."""
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def install_node_tools(project: Path, *, tsc: str | None = None, version: str | None = "4.1.0") -> None:
    """Tools of the project's own, as far as the flow uses them: `tsc` is a shell script."""
    tools = project / "node_modules" / ".bin"
    scripts = {"tsc": tsc and f"#!/bin/sh\n{tsc}\n", "vitest": version and VITEST.format(python=sys.executable)}
    for name, content in scripts.items():
        if content:
            put(tools, name, content)
            (tools / name).chmod(stat.S_IRWXU)
    put(project, "node_modules/vitest/package.json", f'{{"version": "{version}"}}')
    put(project, "tsconfig.json", "{}")
