"""Figures as a table for people and as JSON for programs."""

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Figure

PACKAGES = ("agentcell", "claude-agent-sdk", "anyio", "orjson", "pydantic", "pebble", "loky", "click")

BEGIN, END = "<!-- table -->", "<!-- end of the table -->"


def show(figures: Sequence[Figure]) -> None:
    """Print the table; quartiles are in brackets."""
    table = Table("figure", "against", "ratio", "goal", "A/A", "what was seen", title=_machine_line())
    for figure in figures:
        noise = "" if figure.noise is None else str(figure.noise)
        table.add_row(figure.what, figure.peer, ratio(figure), goal(figure), noise, figure.detail)
    Console(width=None if os.isatty(1) else 200).print(table)


def write_json(file: Path, figures: Sequence[Figure]) -> None:
    """Write them with all that they depend on."""
    content = {"at": time.time(), "machine": machine(), "versions": versions(), "figures": [*map(asdict, figures)]}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n")


def put_into(page: Path, figures: Sequence[Figure]) -> None:
    """Put the table into a page of Markdown, in the place of the one before."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = ["| figure | against | ratio | goal | A/A | what was seen |", "|---|---|---|---|---|---|"]
    for figure in figures:
        cells = (figure.what, figure.peer, ratio(figure), goal(figure), figure.noise or "", figure.detail)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    known = ", ".join(f"{name} {number}" for name, number in versions().items() if number)
    table = "\n".join(rows)
    page.write_text(f"{before}{BEGIN}\n{table}\n\n{_machine_line()}; {known}.\n{END}{after}")


def ratio(figure: Figure) -> str:
    """With a mark when the goal is not met."""
    return f"{figure.ratio}{'' if figure.is_met else ' ✗'}"


def goal(figure: Figure) -> str:
    """Such as `≤ 1.10`."""
    if figure.goal is None:
        return "for information"
    return f"{'≥' if figure.at_least else '≤'} {figure.goal:.2f}"


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "cores": os.cpu_count(),
        "memory_mb": psutil.virtual_memory().total // 2**20,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def versions() -> dict[str, str | None]:
    """Of what takes part."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _machine_line() -> str:
    here = machine()
    return f"{here['cores']} cores, {here['memory_mb']} MB, Python {here['python']}, load {here['load']:.1f} before"
