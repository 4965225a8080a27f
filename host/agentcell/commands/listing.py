"""The agent types, for people and for programs."""

from collections.abc import Iterable, Mapping
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from agentcell.commands.output import tell
from agentcell.commands.report import show
from agentcell.terminal import one_line
from agentcell_protocol.codec import encode

MAX_DESCRIPTION = 300
"""Characters of a description that the table shows: some hold whole conversations."""


def print_table(types: Iterable[Mapping[str, Any]]) -> None:
    """Print a row for each type."""
    table = Table.grid(padding=(0, 2))
    for agent in types:
        table.add_row(Text(one_line(agent["name"]), "bold"), agent["phase"], Text("\n".join(_words(agent))))
    show(table)


def print_lines(types: Iterable[Mapping[str, Any]]) -> None:
    """Print each type as a line of JSON."""
    for agent in types:
        click.echo(encode(agent), nl=False)


def print_problems(problems: Iterable[Mapping[str, Any]]) -> None:
    """Say on stderr which files define no type, and why."""
    tell(*(one_line(f"{problem['file']}: {problem['reason']}; {problem['remedy']}") for problem in problems))


def _words(agent: Mapping[str, Any]) -> list[str]:
    """What it does, what it may use, and what it takes, each on a line of its own."""
    description = one_line(agent["description"])
    if len(description) > MAX_DESCRIPTION:
        description = description[: MAX_DESCRIPTION - 1] + "…"
    rest = {
        "tools": ", ".join(agent["tools"]) or "none",
        "refused": ", ".join(agent["disallowed_tools"]),
        "permission mode": agent["permission_mode"],
        "model": agent["model"],
        "context": ", ".join(f"{name} ({kind})" for name, kind in agent["context"].items()),
        "message": "" if agent["needs_message"] else "not needed",
        "from": "" if agent["source"] == "built-in" else agent["source"],
    }
    told = [*((name, value) for name, value in rest.items() if value), *(("note", note) for note in agent["notes"])]
    return [*filter(None, [description]), *(one_line(f"{name}: {value}") for name, value in told)]
