"""A host with a fault fails the checks that are about it, and no other."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.conformance.broken_programs import Faults, Findings, failed, findings

from agentcell.conformance.host_checks import HOST_CHECKS

pytestmark = pytest.mark.slow

FAULTS = {
    "none": set(),
    "two results": {"H07", "H32"},
    "events without ids": {"H05", "H11", "H13", "H14"},
    "an event after the result": {"H08"},
    "stops at wrong lines": {f"H{number}" for number in range(19, 29)},
    "one at a time": {"H14"},
    "cancels at shutdown": {"H37"},
    "forgets what waits": {"H39"},
    "waits for its reader": {"H43"},
    "exits with 0": {"H40", "H41"},
    "leaves a child": {"H47"},
    "loses cancelled runs": {"H31", "H32", "H33", "H39", "H40"},
    "careless": {"H02", "H06", "H42", "H46"},
    "minds neither limits nor ids": {"H30", "H32", "H34"},
    "gives no usage": {"H48"},
    "counts no tools": {"H49"},
    "promises nothing": {"H50"},
}

PROGRAMS: tuple[Faults, ...] = (
    ("loses cancelled runs", "careless"),
    ("minds neither limits nor ids",),
    ("events without ids", "exits with 0"),
    ("forgets what waits", "waits for its reader"),
    ("two results", "stops at wrong lines"),
    ("an event after the result", "cancels at shutdown"),
    ("one at a time", "leaves a child"),
    ("gives no usage", "counts no tools", "promises nothing"),
    ("none",),
)
"""Those of which most is waited for come first."""


@pytest.fixture(scope="module")
def found(temporary: Path) -> Mapping[Faults, Findings]:
    return findings("hosts", PROGRAMS, HOST_CHECKS)


@pytest.mark.parametrize("faults", PROGRAMS, ids=", ".join)
def test_faults_fail_exactly_the_checks_that_are_about_them(found: Mapping[Faults, Findings], faults: Faults) -> None:
    assert failed(found[faults]) == set().union(*(FAULTS[fault] for fault in faults))


def test_every_fault_is_in_one_program_and_no_check_is_about_two_faults_of_one() -> None:
    assert sorted(fault for program in PROGRAMS for fault in program) == sorted(FAULTS)
    for first, *others in PROGRAMS:
        assert all(FAULTS[first].isdisjoint(FAULTS[other]) for other in others)


def test_what_cannot_be_tried_is_skipped_and_says_why(found: Mapping[Faults, Findings]) -> None:
    finding = found["events without ids", "exits with 0"]["H35"]
    assert (finding.grade, finding.remedy) == ("skipped", "no hello of the run says which process it has")
