"""The doctor's findings, for people and for programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentcell.doctor import Finding, Grade
from agentcell_protocol.codec import encode

Found = TypeVar("Found", bound=Any)

COLOURS: dict[Grade, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}

UNWRAPPED = 1000
"""Columns where no terminal sets their number: lines that are searched are not to be wrapped."""


def print_table(findings: Iterable[Finding]) -> list[Finding]:
    """Print a table as soon as all findings are there, and give them back."""
    table = Table.grid(padding=(0, 2))
    seen = []
    for finding in findings:
        seen.append(finding)
        table.add_row(Text(finding.grade, COLOURS[finding.grade]), finding.subject, Text(_words(finding)))
    show(table)
    return seen


def print_lines(findings: Iterable[Found]) -> list[Found]:
    """Print each finding, of whatever dataclass, as a line of JSON as soon as it is there, and give them back."""
    seen = []
    for finding in findings:
        seen.append(finding)
        click.echo(encode(asdict(finding)), nl=False)
    return seen


def show(table: Table) -> None:
    """Print a table: as wide as the terminal, or as it takes, and then without blanks at the ends of lines."""
    terminal = Console()
    if terminal.is_terminal:
        terminal.print(table, highlight=False)
        return
    wide = Console(width=UNWRAPPED)
    with wide.capture() as printed:
        wide.print(table, highlight=False)
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def _words(finding: Finding) -> str:
    return f"{finding.found}\n→ {finding.remedy}" if finding.remedy else finding.found
