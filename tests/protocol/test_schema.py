"""The committed schemas are what the code says now, and say of a message what the code says."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.golden.lines import messages

from agentcell_protocol.schema import DIALECT, KINDS, Kind, committed, generate


@pytest.mark.parametrize("kind", KINDS)
def test_the_committed_schema_is_fresh(kind: Kind) -> None:
    assert committed(kind) == generate(kind), "run `make schema` and commit what it writes"


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_a_schema_of_its_dialect(kind: Kind) -> None:
    schema = json.loads(committed(kind))
    assert schema["$schema"] == DIALECT
    Draft202012Validator.check_schema(schema)


def test_every_member_of_a_request_is_described() -> None:
    described = json.loads(committed("request"))["properties"]
    assert [name for name, member in described.items() if not member["description"].endswith(".")] == []


BEYOND_A_SCHEMA = (
    "is not a directory",
    "is given with resume",
    "NUL",
    "cannot be used as a name",
    "cannot set",
    "UUID",
)
"""Reasons that look at the file system, at two members, or at single characters."""


@pytest.mark.parametrize("refused", messages("refused"), ids=lambda refused: refused["line"][:60])
def test_what_is_refused_does_not_fit_the_schema_either(refused: dict[str, Any]) -> None:
    if refused["member"] is None or any(reason in refused["reason"] for reason in BEYOND_A_SCHEMA):
        return
    schema = Draft202012Validator(json.loads(committed("request")))
    assert not schema.is_valid(json.loads(refused["line"]))
