"""Runs every benchmark and prints a table; exit 1 when a bound is not held."""

from importlib import import_module

from rich.console import Console
from rich.table import Table

TOPICS = ("framing", "resume", "batch")


def main() -> int:
    """Print one line per measurement, topic by topic."""
    rows = [row for topic in TOPICS for row in import_module(f"benchmarks.{topic}").run()]
    table = Table("topic", "what", "ratio", "bound", "detail")
    for row in rows:
        table.add_row(row.topic, row.what, f"{row.ratio:.2f}", f"{row.bound:.1f}", row.detail)
    Console().print(table)
    return int(any(row.ratio > row.bound for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
