"""The programs of `broken/`, each with what the checks find."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from agentcell.conformance.check import Check, Finding
from agentcell.conformance.running import run_checks
from agentcell.conformance.stage import Setting

BROKEN = Path(__file__).with_name("broken")

PATIENCE_SECONDS = 10.0
"""For what takes a fraction of a second; a fault of which nothing comes costs this."""

PROGRAMS_AT_ONCE = 5
SCENES_AT_ONCE = 3
"""Most of the time of a fault is waiting."""

Findings = Mapping[str, Finding]


def command(script: str, fault: str) -> tuple[str, ...]:
    """The command of a program with this fault."""
    return (sys.executable, "-S", "-E", str(BROKEN / script), fault)


def findings(script: str, faults: Iterable[str], checks: Sequence[Check]) -> dict[str, Findings]:
    """By fault and number of the check."""
    names = list(faults)
    with ThreadPoolExecutor(PROGRAMS_AT_ONCE) as pool:
        return dict(zip(names, pool.map(partial(_findings, script, checks), names), strict=True))


def failed(found: Findings) -> set[str]:
    """The numbers of the checks that failed."""
    return {number for number, finding in found.items() if finding.grade == "failed"}


def _findings(script: str, checks: Sequence[Check], fault: str) -> Findings:
    setting = Setting(command(script, fault), patience=PATIENCE_SECONDS)
    return {finding.number: finding for finding in run_checks(checks, setting, at_once=SCENES_AT_ONCE)}
