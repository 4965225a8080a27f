"""A row is known again by what it asks for, and its folder by its id."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcell.batch.identity import OPERATIONAL, default_name, digest, slug
from agentcell_protocol.request import SessionRequest

GOLDEN = Path(__file__).parents[2] / "golden" / "batch"

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ROWS = st.dictionaries(st.sampled_from(sorted(SessionRequest.model_fields)), VALUES)


def golden(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("line", golden("digests"), ids=lambda line: line["digest"])
def test_a_digest_stays_what_it_is(line: dict[str, Any]) -> None:
    assert digest(line["row"]) == line["digest"]


@pytest.mark.parametrize("line", golden("slugs"), ids=lambda line: line["slug"])
def test_a_slug_stays_what_it_is(line: dict[str, Any]) -> None:
    assert slug(line["id"]) == line["slug"]


@given(ROWS)
def test_the_order_of_the_members_makes_no_difference(row: dict[str, Any]) -> None:
    assert digest(dict(reversed(row.items()))) == digest(row)


@given(ROWS, st.sampled_from(sorted(OPERATIONAL)), VALUES)
def test_what_is_operational_makes_no_difference(row: dict[str, Any], member: str, value: object) -> None:
    assert digest({**row, member: value}) == digest(row)


@given(ROWS, st.sampled_from(sorted(SessionRequest.model_fields.keys() - OPERATIONAL)), st.text(), st.text())
def test_what_is_to_be_done_makes_one(row: dict[str, Any], member: str, one: str, other: str) -> None:
    assert (digest({**row, member: one}) == digest({**row, member: other})) == (one == other)
    assert digest({**row, member: one}) != digest({**row, member: None})


def test_what_is_nested_too_deep_to_be_sent_has_a_digest() -> None:
    context: dict[str, Any] = {}
    for _ in range(900):
        context = {"a": context}
    assert re.fullmatch(r"1:[0-9a-f]{16}", digest({"context": context}))


def test_operational_members_are_members_or_limits() -> None:
    assert OPERATIONAL - {"limits"} <= SessionRequest.model_fields.keys()


def test_a_row_without_a_name_is_called_by_its_digest() -> None:
    assert default_name("1:0123456789abcdef") == "row-0123456789ab"


@given(st.text(min_size=1) | st.sampled_from([".", "..", "../x", "-rf", "a/b", "CON", "😀" * 200, "x" * 200]))
def test_a_slug_is_the_name_of_a_file_everywhere(id_: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,39}-[0-9a-f]{16}", slug(id_))


@given(st.lists(st.text(min_size=1), unique=True))
def test_two_ids_have_two_slugs_even_where_case_makes_no_difference(ids: list[str]) -> None:
    assert len({slug(id_).lower() for id_ in ids}) == len(ids)
