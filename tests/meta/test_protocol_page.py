"""docs/protocol.md shows golden lines, and names everything the wire has."""

import json
import re
from dataclasses import fields
from typing import get_args

import pytest
from tests.golden.lines import messages, read
from tests.meta.source import MODULES, ROOT

from agentcell.limits import Limits
from agentcell.serve.runs import MAX_WAITING, MAX_WAITING_BYTES
from agentcell_protocol.codec import MAX_DEPTH
from agentcell_protocol.errors import Category
from agentcell_protocol.events import Event
from agentcell_protocol.exitcodes import exit_code
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.request import MAX_SCHEMA, SessionRequest
from agentcell_protocol.result import Attempt, SessionResult
from agentcell_protocol.schema import KINDS, committed
from agentcell_protocol.serving import CancelLine, Refused, RunLine, ServeHello, ServeWarning, ShutdownLine, Thinned
from agentcell_worker.agents.registry import AGENT_CONFIGS

PAGE = (ROOT / "docs" / "protocol.md").read_text("utf-8")

EXAMPLES = [
    line for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) for line in block.splitlines()
]
GOLDEN = {line.decode() for kind in KINDS for line in read(kind)}

SERVED = (RunLine, CancelLine, ShutdownLine, ServeHello, Refused, ServeWarning, Thinned)

NAMES = {
    *SessionRequest.model_fields,
    *SessionResult.model_fields,
    *Attempt.model_fields,
    *(field.name for field in fields(Limits)),
    *(name for line in SERVED for name in (*line.model_fields, *get_args(line.model_fields["type"].annotation))),
    *Category,
    *(get_args(event.__annotations__["type"])[0] for event in get_args(Event)),
}


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_a_golden_line(line: str) -> None:
    assert line in GOLDEN


def test_every_kind_of_message_has_an_example() -> None:
    shown = {json.loads(line).get("type", "request") for line in EXAMPLES}
    sent = {message.get("type", "request") for kind in KINDS for message in messages(kind)}
    assert shown == sent


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_of_the_wire_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_the_table_of_members_says_what_the_schema_says() -> None:
    rows = re.findall(r"^\| `(\w+)`(?: \(required\))? \| [^|]+ \| ([^|]+\.) \|$", PAGE, re.MULTILINE)
    described = json.loads(committed("request"))["properties"]
    assert rows == [(name, member["description"]) for name, member in described.items()]


def test_what_a_wrong_request_is_told_is_what_it_is_told() -> None:
    table = PAGE.partition("| what was sent | what it says |\n|---|---|\n")[2].partition("\n\n")[0]
    told = {f"{r['member'] or 'the request'}: {r['reason']}; {r['remedy']}" for r in messages("refused")}
    rows = [row.removesuffix(" |").rpartition("` | ")[2] for row in table.splitlines()]
    assert rows
    assert [row for row in rows if row not in told] == []


def test_the_numbers_are_those_of_the_code() -> None:
    for number in (LINE_LIMIT, MAX_SCHEMA, MAX_DEPTH, MAX_WAITING, MAX_WAITING_BYTES):
        assert f"{number:,} " in PAGE


def test_the_exit_codes_of_the_golden_results_are_on_the_page() -> None:
    codes = {exit_code(SessionResult.model_validate(result).error) for result in messages("result")}
    listed = PAGE.partition("## Exit codes")[2]
    assert [code for code in codes if not re.search(rf"^\|.*\b{code}\b.*\|.*\|$", listed, re.MULTILINE)] == []


def test_the_agent_types_and_what_they_bring_are_on_the_page() -> None:
    listed = PAGE.partition("- `agent_type` is ")[2].partition("\n- ")[0]
    names = [name for agent in AGENT_CONFIGS.values() for name in (agent.name, agent.phase, *agent.tools)]
    assert [name for name in names if not re.search(rf"\b{name}\b", listed)] == []


def test_every_code_of_a_warning_is_on_the_page() -> None:
    warned = re.compile(r"\b(?:Notice\(code=|_?warn\(|_note\()\s*\"(\w+)\"")
    codes = {code for module in MODULES for code in warned.findall(module.path.read_text("utf-8"))}
    listed = PAGE.partition("### Warnings")[2].partition("## Errors")[0]
    assert codes
    assert sorted(code for code in codes if f"`{code}`" not in listed) == []
