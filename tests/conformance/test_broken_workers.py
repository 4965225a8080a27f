"""A worker with a fault fails the checks that are about it, and no other."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.conformance.broken_programs import Faults, Findings, failed, findings

from agentcell.conformance.worker_checks import WORKER_CHECKS

pytestmark = pytest.mark.slow

FAULTS = {
    "none": set(),
    "two results": {"W04", "W12"},
    "result not last": {"W05"},
    "wrong order": {"W06"},
    "prints on stdout": {"W03", "W12"},
    "tools share stdout": {"W03", "W04", "W06", "W07", "W18"},
    "no final line feed": {"W01"},
    "carriage returns": {"W02"},
    "dies of SIGTERM": {"W40"},
    "wrong exit code": {"W08", "W40", "W41"},
    "waits for the end": {"W13"},
    "leaves a child": {"W43"},
    "ignores its lifeline": {"W42"},
    "forgives everything": {"W26", "W28", "W29", "W30", "W38"},
    "takes 401 for a passing failure": {"W39"},
    "greets late": {"W14"},
    "forgets what was asked for": {"W11", "W16", "W19", "W20", "W37"},
    "counts the last turn": {"W44"},
    "counts turns with tools": {"W45"},
    "promises another attempt": {"W46"},
}

PROGRAMS: tuple[Faults, ...] = (
    ("none",),
    ("two results", "forgives everything"),
    ("result not last", "wrong exit code"),
    ("wrong order", "dies of SIGTERM"),
    ("prints on stdout", "ignores its lifeline"),
    ("tools share stdout", "takes 401 for a passing failure"),
    ("no final line feed", "leaves a child"),
    ("carriage returns", "waits for the end"),
    ("greets late", "forgets what was asked for"),
    ("counts the last turn", "counts turns with tools", "promises another attempt"),
)


@pytest.fixture(scope="module")
def found(temporary: Path) -> Mapping[Faults, Findings]:
    return findings("workers", PROGRAMS, WORKER_CHECKS)


@pytest.mark.parametrize("faults", PROGRAMS, ids=", ".join)
def test_faults_fail_exactly_the_checks_that_are_about_them(found: Mapping[Faults, Findings], faults: Faults) -> None:
    assert failed(found[faults]) == set().union(*(FAULTS[fault] for fault in faults))


def test_every_fault_is_in_one_program_and_no_check_is_about_two_faults_of_one() -> None:
    assert sorted(fault for program in PROGRAMS for fault in program) == sorted(FAULTS)
    for first, *others in PROGRAMS:
        assert all(FAULTS[first].isdisjoint(FAULTS[other]) for other in others)


def test_what_fails_says_what_was_expected_what_came_and_what_to_do(found: Mapping[Faults, Findings]) -> None:
    finding = found["result not last", "wrong exit code"]["W40"]
    assert (finding.title, finding.expected, finding.came, finding.remedy) == (
        "SIGTERM cancels, while a tool runs",
        "exit code 143",
        "1",
        "end the tool, answer, exit",
    )
    assert all(one.expected and one.remedy for each in found.values() for one in each.values() if one.grade == "failed")
