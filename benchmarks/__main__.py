"""Runs the benchmarks that are named, or all, and prints a table; exit 1 when a goal is not met."""

import sys
from importlib import import_module
from pathlib import Path

from benchmarks import report

TOPICS = (
    "framing",
    "events",
    "help",
    "resume",
    "rows",
    "memory",
    "idle",
    "cells",
    "session",
    "batches",
    "batch_memory",
    "scale",
)


def main(arguments: list[str]) -> int:
    """`[TOPIC ...] [FILE.json] [PAGE.md]`: the file gets the figures with versions and machine, the page the table."""
    files = [Path(name) for name in arguments if name.endswith((".json", ".md"))]
    topics = [name for name in arguments if not name.endswith((".json", ".md"))] or list(TOPICS)
    figures = []
    for topic in topics:
        print(f"{topic} ...", file=sys.stderr, flush=True)
        figures += import_module(f"benchmarks.{topic}").run()
    report.show(figures)
    for file in files:
        put = report.put_into if file.suffix == ".md" else report.write_json
        put(file, figures)
    return int(not all(figure.is_met for figure in figures))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
