"""What the writer of tests is told when its tests leave too much uncovered."""

from agentcell_worker.checks.coverage import Coverage, Gap

MAX_GAPS = 200
"""Files that are listed, those with the least coverage first: more than one session can see to."""

MESSAGE = """\
The tests cover {percent:g} % of the code; {threshold:g} % are asked for, and of each file at least half of that.
These are the gaps, as ranges of lines that no test reaches, the files that are covered least first:

{gaps}

Write tests that close them: only add tests, change or remove no existing test."""


def improvement_message(measured: Coverage, threshold: float) -> str:
    """The message of a session that is to close the gaps."""
    worst = sorted(measured.gaps, key=lambda gap: (gap.percent, gap.file))
    lines = [_line(gap) for gap in worst[:MAX_GAPS]]
    if len(worst) > MAX_GAPS:
        lines.append(f"- and {len(worst) - MAX_GAPS} more files with smaller gaps")
    return MESSAGE.format(percent=measured.percent, threshold=threshold, gaps="\n".join(lines))


def _line(gap: Gap) -> str:
    ranges = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in gap.lines)
    return f"- {gap.file}: {ranges} ({gap.percent:g} % covered)"
