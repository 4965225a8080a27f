"""A host with a fault fails the checks that are about it, and no other."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.conformance.broken_programs import Findings, failed, findings

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
}


@pytest.fixture(scope="module")
def found(temporary: Path) -> Mapping[str, Findings]:
    return findings("hosts.py", FAULTS, HOST_CHECKS)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_exactly_the_checks_that_are_about_it(found: Mapping[str, Findings], fault: str) -> None:
    assert failed(found[fault]) == FAULTS[fault]


def test_what_cannot_be_tried_is_skipped_and_says_why(found: Mapping[str, Findings]) -> None:
    finding = found["events without ids"]["H35"]
    assert (finding.grade, finding.remedy) == ("skipped", "no hello of the run says which process it has")
