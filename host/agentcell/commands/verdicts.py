"""The findings of conformance checks, for people and for programs."""

from collections import Counter
from collections.abc import Iterable

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentcell.commands.report import show
from agentcell.conformance.check import Finding, Grade

COLOURS: dict[Grade, str] = {"passed": "green", "failed": "bold red", "skipped": "yellow"}


def print_table(findings: Iterable[Finding]) -> list[Finding]:
    """Print a table as soon as all findings are there, with their sum below it, and give them back."""
    table = Table.grid(padding=(0, 2))
    with Console(stderr=True).status("checking…"):
        seen = list(findings)
    for finding in seen:
        table.add_row(finding.number, Text(finding.grade, COLOURS[finding.grade]), Text(_words(finding)))
    show(table)
    counts = Counter(finding.grade for finding in seen)
    click.echo(", ".join(f"{counts[grade]} {grade}" for grade in COLOURS if counts[grade]))
    return seen


def _words(finding: Finding) -> str:
    lines = [finding.title]
    if finding.grade == "failed":
        lines += [f"expected: {finding.expected}", f"came:     {finding.came}"]
    if finding.remedy:
        lines.append(f"→ {finding.remedy}")
    return "\n".join(lines)
