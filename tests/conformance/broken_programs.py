"""The programs of `broken/`, each with what the checks find."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from agentcell.conformance.check import Check, Finding
from agentcell.conformance.running import Checking
from agentcell.conformance.stage import Setting

START = Path(__file__).with_name("broken") / "start.py"

PATIENCE_SECONDS = 20.0
"""For what takes a fraction of a second; a fault of which nothing comes costs this."""

PROGRAMS_AT_ONCE = 6
SCENES_AT_ONCE = 3
"""Most of the time of a fault is waiting."""

Findings = Mapping[str, Finding]


Faults = tuple[str, ...]
"""Those of one program; what they break is apart, so that it is seen which of them a check has noticed."""


def command(module: str, faults: Faults) -> tuple[str, ...]:
    """The command of a program with these faults."""
    return (sys.executable, "-S", "-E", str(START), module, *faults)


def findings(module: str, programs: Iterable[Faults], checks: Sequence[Check]) -> dict[Faults, Findings]:
    """By the faults of the program and the number of the check."""
    broken = list(programs)
    with ThreadPoolExecutor(PROGRAMS_AT_ONCE) as pool:
        return dict(zip(broken, pool.map(partial(_findings, module, checks), broken), strict=True))


def failed(found: Findings) -> set[str]:
    """The numbers of the checks that failed."""
    return {number for number, finding in found.items() if finding.grade == "failed"}


def _findings(module: str, checks: Sequence[Check], faults: Faults) -> Findings:
    setting = Setting(command(module, faults), patience=PATIENCE_SECONDS)
    return {finding.number: finding for finding in Checking(checks, setting, at_once=SCENES_AT_ONCE).findings()}
