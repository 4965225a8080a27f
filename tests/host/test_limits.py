"""Limits are checked where they are made."""

from typing import Any

import pytest

from agentcell.limits import Limits
from agentcell_protocol.errors import RequestError


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert Limits() == Limits(
        startup_seconds=120,
        idle_seconds=None,
        max_execution_seconds=3600,
        drain_seconds=10,
        max_memory_mb=None,
        max_cpu_percent=80,
        max_cpu_seconds=None,
        max_file_descriptors=None,
        max_threads=None,
        max_processes=None,
        max_output_bytes=None,
    )


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"max_memory_mb": -1}, "max_memory_mb must be positive"),
        ({"max_memory_mb": 0}, "max_memory_mb must be positive"),
        ({"startup_seconds": 0}, "startup_seconds must be positive"),
        ({"drain_seconds": -1}, "drain_seconds must not be negative"),
        ({"max_execution_seconds": None}, "max_execution_seconds must be a number"),
        ({"idle_seconds": "10"}, "idle_seconds must be a number"),
        ({"idle_seconds": True}, "idle_seconds must be a number"),
        ({"idle_seconds": float("nan")}, "idle_seconds must be a number"),
        ({"max_threads": 1.5}, "max_threads must be a whole number"),
    ],
)
def test_a_limit_that_makes_no_sense_is_named(limits: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the text is compared whole
        Limits(**limits)
    assert str(refused.value) == text


def test_no_wait_for_background_work_is_a_limit() -> None:
    assert Limits(drain_seconds=0).drain_seconds == 0


@pytest.mark.parametrize(
    ("members", "member", "reason", "remedy"),
    [
        ({"max_memory": 1}, "limits.max_memory", "is not a limit", "did you mean max_memory_mb?"),
        ({"max_seconds": 1}, "limits.max_seconds", "is not a limit", "did you mean max_execution_seconds?"),
        ({"timeout": 1}, "limits.timeout", "is not a limit", "did you mean max_execution_seconds?"),
        ({"max_memory_mb": 0}, "limits.max_memory_mb", "must be positive", "give another value, or leave it out"),
        ([], "limits", "it is not a JSON object", "send an object of limits, or leave it out"),
    ],
)
def test_a_wrong_member_is_refused_by_name(members: object, member: str, reason: str, remedy: str) -> None:
    with pytest.raises(RequestError) as refused:
        Limits.from_mapping(members)
    assert (refused.value.member, refused.value.reason, refused.value.remedy) == (member, reason, remedy)


def test_a_mapping_gives_limits() -> None:
    assert Limits.from_mapping({"max_execution_seconds": 5}) == Limits(max_execution_seconds=5)
    assert Limits.from_mapping(None) == Limits()
