"""What docs/agents.md says of the agent types is so, and what it shows works."""

import json
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Self

import anyio
import pytest
from click.testing import CliRunner
from tests.meta.pages import blocks, installed, page, run_block
from tests.meta.source import MODULES
from tests.worker.shop import put_quick_python

from agentcell.cli import agentcell
from agentcell.commands import foreground
from agentcell.offline import offline_model
from agentcell_protocol.codec import kind
from agentcell_protocol.request import SessionRequest, parse_request
from agentcell_protocol.result import SessionResult
from agentcell_worker import client, preflight, session
from agentcell_worker.agents.registry import AGENT_CONFIGS, CONVERSATION, AgentType
from agentcell_worker.checks.analysis import analyse
from agentcell_worker.trace import Trace

PAGE = page("docs/agents.md")

FLOWS = [agent for agent in AGENT_CONFIGS.values() if agent.flow != CONVERSATION]
FLOW_SOURCES = [module.path.read_text("utf-8") for module in MODULES if ".agents." in module.name]

SHOP = "def total(prices: list[int]) -> int:\n    return sum(prices)\n"
TEST = "from shop import total\n\n\ndef test_total() -> None:\n    assert total([1, 2]) == 3\n"

SHAPE = ("success", "error", "generated_files", "validation")
"""What the flow that writes documentation delivers."""


def call(name: str, **given: str) -> dict[str, Any]:
    return {"name": name, "input": given}


def plays(role: str, *tools: dict[str, Any]) -> dict[str, Any]:
    """A session of the model for the agent whose role prompt says so."""
    return {"match": role, "turns": [{"text": "I begin.", "tools": list(tools)}, {"text": "Done."}]}


MODEL = {
    "sessions": [
        plays(
            "You write the documentation", call("Write", file_path="docs/shop.md", content="# Shop\n\nIt adds up.\n")
        ),
        plays("You write tests", call("Write", file_path="tests/test_shop.py", content=TEST)),
    ],
    "turns": [{"text": "Nobody plays this agent."}],
}

each_flow = pytest.mark.parametrize("agent", FLOWS, ids=lambda agent: agent.name)


def section(title: str, level: int = 3) -> str:
    """The text below a heading, up to the next one of that level or a higher one."""
    text = PAGE.partition(f"\n{'#' * level} {title}\n")[2]
    return re.split(rf"^#{{2,{level}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str, head: str) -> list[list[str]]:
    """The cells of the table whose first head that is."""
    table = text.partition(f"\n| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table]


def names(cells: list[str]) -> list[str]:
    return [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]


def of_language(text: str, language: str) -> list[str]:
    return [block for each, block in blocks(text) if each == language]


def public_function(module: ModuleType) -> FunctionType:
    """The function of a flow that others call."""
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, FunctionType) and hasattr(each, "__wrapped__") and each.__module__ == module.__name__
    ]
    assert len(found) == 1
    return found[0]


async def shape_of_a_failure(agent: AgentType, project: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the type's flow delivers when nothing works."""

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no")

    monkeypatch.setattr(client, "create_client", broken)
    function = public_function(import_module(agent.flow))
    own = {"analysis_results": None} if "analysis_results" in agent.context else {}
    product: dict[str, Any] = await function(project_dir=project, spec_dir=None, **own)
    return product


def test_every_block_says_what_it_is() -> None:
    assert PAGE.count("```") == 2 * len(blocks(PAGE))
    assert {language for language, _ in blocks(PAGE)} <= {"bash", "json", "python", "markdown", "text"}


def test_the_table_of_types_is_the_registry() -> None:
    said = [(names(row[:1]), row[1], row[2].split(", "), row[3]) for row in rows(PAGE, "type")]
    types = AGENT_CONFIGS.values()
    assert said == [([agent.name], agent.phase, list(agent.tools), agent.description) for agent in types]


def test_what_all_types_have_in_common_they_have() -> None:
    types = AGENT_CONFIGS.values()
    common = {(agent.permission_mode, len(agent.mcp_servers), agent.max_thinking_tokens) for agent in types}
    assert common == {("acceptEdits", 0, None)}
    assert [agent.name for agent in AGENT_CONFIGS.values() if agent.needs_message] == list(AGENT_CONFIGS)[:4]


@each_flow
def test_the_parameters_of_a_flow_are_those_of_the_registry(agent: AgentType) -> None:
    said = [(names(row[:1])[0], row[1]) for row in rows(section(agent.name), "`context`")]
    assert said == [(name, kind(expected()).split()[1]) for name, expected in agent.context.items()]


@each_flow
@pytest.mark.anyio
async def test_what_a_flow_delivers_is_on_the_page(
    agent: AgentType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with anyio.fail_after(30):
        product = await shape_of_a_failure(agent, tmp_path, monkeypatch)
    said = names([row[0] for row in rows(section(agent.name), "`flow`")])
    assert sorted(said) == sorted(product)


def test_the_checks_are_those_that_flows_make() -> None:
    made = {name for source in FLOW_SOURCES for name in re.findall(r"\.check\(\"([\w-]+)\"\)", source)}
    said = [name for agent in FLOWS for name in names([row[0] for row in rows(section(agent.name), "check")])]
    assert made
    assert set(said) == made


def test_the_warnings_of_flows_are_on_the_page() -> None:
    codes = {code for source in FLOW_SOURCES for code in re.findall(r"\b_?warn\(\s*\"(\w+)\"", source)}
    assert codes == set(names([row[0] for row in rows(PAGE, "warning")]))


def test_the_members_of_an_analysis_are_on_the_page(tmp_path: Path) -> None:
    said = names([row[0] for row in rows(section("The analysis"), "member")])
    assert sorted(said) == sorted([*analyse(tmp_path), "typescript_files", "truncated", "totals"])


@each_flow
def test_the_functions_of_a_flow_are_where_the_page_says(agent: AgentType) -> None:
    *said, place = names([section(agent.name).partition("In Python: ")[2].partition("\n\n")[0]])
    flow = import_module(agent.flow)
    assert (place, said) == (agent.flow, flow.__all__)
    assert public_function(flow).__name__ in said


@each_flow
def test_a_line_that_is_shown_is_a_request(agent: AgentType, tmp_path: Path) -> None:
    (line,) = of_language(section(agent.name), "json")
    request = parse_request({**json.loads(line), "project_dir": str(tmp_path)})
    assert request.agent_type == agent.name
    assert set(request.context or {}) <= set(agent.context)


@pytest.fixture
def anyio_backend() -> str:
    """The worker runs on asyncio only."""
    return "asyncio"


@pytest.fixture
def model_environment() -> Iterator[dict[str, str]]:
    """What points a session at a model that plays these agents."""
    with offline_model(MODEL) as endpoint:
        yield endpoint.environment()


@each_flow
def test_a_command_that_is_shown_is_a_request_of_its_type(
    agent: AgentType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (block,) = of_language(section(agent.name), "bash")
    asked: list[SessionRequest] = []

    async def run(request: SessionRequest, *_: Any) -> SessionResult:
        asked.append(request)
        return SessionResult(status="complete", response="", session_name="a")

    monkeypatch.setattr(foreground, "run_until_signalled", run)
    monkeypatch.chdir(tmp_path)
    for name, content in re.findall(r"^cat > (\S+) <<'END'\n(.*?)^END\n", block, re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(content)
    program, *arguments = shlex.split(block.splitlines()[-1])
    ended = CliRunner().invoke(agentcell, arguments)
    assert (program, ended.exit_code, [request.agent_type for request in asked]) == ("agentcell", 0, [agent.name])
    preflight.check_request(asked[0], agent)


@pytest.mark.slow
@pytest.mark.e2e
def test_a_command_that_is_shown_does_what_the_page_says(model_environment: dict[str, str], tmp_path: Path) -> None:
    """The one whose session is checked most; what the others' deliver is shown by the tests of their flows."""
    (block,) = of_language(section("test_generator"), "bash")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "shop.py").write_text(SHOP)
    put_quick_python(tmp_path / "project" / ".venv" / "bin" / "python")
    environment = {**installed(tmp_path), **model_environment}
    result = json.loads(run_block("bash", block, tmp_path, environment))
    said = names([row[0] for row in rows(section("test_generator"), "`flow`")])
    assert sorted(result["flow"]) == sorted([*said, "session_ids"])
    assert (result["status"], result["flow"]["success"]) == ("complete", True)
    assert result["flow"]["validation"]["valid"] is True


@pytest.mark.slow
@pytest.mark.e2e
def test_a_flow_in_python_gives_what_the_page_shows(model_environment: dict[str, str], tmp_path: Path) -> None:
    block, _ = of_language(PAGE, "python")
    (line,) = of_language(section("Types with a flow", 2).partition("### ")[0], "json")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "shop.py").write_text(SHOP)
    product = json.loads(line)
    told = run_block("python", block, tmp_path, {**installed(tmp_path), **model_environment})
    shown = [product[name] for name in SHAPE]
    assert (told, sorted(product)) == (" ".join(map(str, shown)) + "\n", sorted([*SHAPE, "session_ids"]))


@pytest.mark.parametrize(
    ("status", "writes", "product"),
    [
        ("complete", True, {"changelog": "# Changes\n", "success": True, "error": None}),
        ("complete", False, {"changelog": None, "success": False, "error": "CHANGELOG.md not found"}),
        ("error", False, {"changelog": None, "success": False, "error": "it did not work"}),
    ],
)
@pytest.mark.anyio
async def test_the_flow_that_is_shown_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, writes: bool, product: dict[str, Any]
) -> None:
    _, block = of_language(PAGE, "python")
    shown = ModuleType("shown")
    monkeypatch.setattr("agentcell_worker.agents.base.role_prompt", lambda _type, _fields: "# Role")
    monkeypatch.setattr(client, "create_client", lambda **_: Entered())
    monkeypatch.setattr("agentcell_worker.agents.sessions.agent_named", lambda _name: AGENT_CONFIGS["coder"])
    asked: list[str] = []

    async def answered(client: Any, message: str, spec_dir: Any, **_: Any) -> Any:
        asked.append(message)
        if writes:
            (tmp_path / "CHANGELOG.md").write_text("# Changes\n")
        return status, "it did not work", {}, Trace(session_id="s")

    monkeypatch.setattr(session, "run_agent_session", answered)
    exec(compile(block, "docs/agents.md", "exec"), vars(shown))
    with anyio.fail_after(30):
        assert await public_function(shown)(tmp_path, None, since="v1") == product
    assert asked == ["# Role\n\nBegin with what came after v1."]


class Entered:
    """A client that does nothing."""

    notices = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None
