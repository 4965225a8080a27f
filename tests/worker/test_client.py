"""The client a worker uses: what its CLI is given, and how its start can fail."""

import errno
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient
from tests.worker.script import ENDING, OPENING, SUCCESS, Step, fake_cli, fake_client, request, result, said, text

from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.request import parse_request
from agentcell_worker import session
from agentcell_worker.agents.registry import BUILD_TOOLS, AgentType
from agentcell_worker.cli_process import cli_of
from agentcell_worker.client import CannotStart, create_client, session_id_of
from agentcell_worker.options import client_arguments
from agentcell_worker.sdk_errors import not_started

SECONDS = 30

ID = "11111111-1111-4111-8111-111111111111"


def options_of(client: ClaudeSDKClient) -> dict[str, Any]:
    """Those options that differ from the SDK's defaults, without those that are functions."""
    default = vars(ClaudeAgentOptions())
    return {name: value for name, value in vars(client.options).items() if value != default[name] and name != "stderr"}


def test_a_request_that_leaves_all_open_gets_what_its_type_brings(tmp_path: Path) -> None:
    arguments = client_arguments(parse_request(request(tmp_path, session_id=ID)))
    assert options_of(create_client(**arguments)) == {
        "cwd": str(tmp_path),
        "tools": list(BUILD_TOOLS),
        "allowed_tools": list(BUILD_TOOLS),
        "permission_mode": "acceptEdits",
        "system_prompt": {"type": "preset", "preset": "claude_code"},
        "setting_sources": [],
        "strict_mcp_config": True,
        "verbatim_prompts": True,
        "max_buffer_size": 32 * 1024 * 1024,
        "session_id": ID,
    }


def test_what_a_request_asks_for_reaches_the_client(tmp_path: Path) -> None:
    project, spec = tmp_path / "project", tmp_path / "spec"
    project.mkdir()
    asked: dict[str, Any] = {
        "model": "m",
        "fallback_model": "n",
        "max_thinking_tokens": 5,
        "effort": "low",
        "max_turns": 3,
        "max_budget_usd": 1.5,
        "permission_mode": "plan",
        "tools": ["Read"],
        "allowed_tools": [],
        "disallowed_tools": ["Bash"],
        "mcp_servers": {"a": {"command": "a"}},
        "setting_sources": ["project"],
        "env": {"A": "1"},
        "resume": ID,
        "cli_path": "/bin/true",
    }
    members = {**asked, "spec_dir": str(spec), "add_dirs": ["/"], "events": "full", "output_schema": {"type": "object"}}
    got = options_of(create_client(**client_arguments(parse_request(request(project, **members)))))
    expected = {
        **{name: value for name, value in asked.items() if value != []},
        "cwd": str(project),
        "add_dirs": ["/", str(spec)],
        "include_partial_messages": True,
        "output_format": {"type": "json_schema", "schema": {"type": "object"}},
        "system_prompt": {"type": "preset", "preset": "claude_code"},
        "strict_mcp_config": True,
        "verbatim_prompts": True,
        "max_buffer_size": 32 * 1024 * 1024,
    }
    assert got == expected


def test_servers_and_thinking_of_a_type_count_where_nothing_else_is_said(tmp_path: Path) -> None:
    servers = {"tickets": {"command": "tickets"}}
    agent = AgentType("painter", "coding", mcp_servers=servers, max_thinking_tokens=7)
    options = create_client(tmp_path, None, None, agent_type=agent).options
    assert (options.mcp_servers, options.max_thinking_tokens) == (servers, 7)
    options = create_client(tmp_path, None, None, agent_type=agent, max_thinking_tokens=0, mcp_servers={}).options
    assert (options.mcp_servers, options.max_thinking_tokens) == ({}, 0)


def test_a_spec_within_the_project_needs_no_other_directory(tmp_path: Path) -> None:
    assert create_client(tmp_path, tmp_path / "specs" / "1", None).options.add_dirs == []


def test_every_session_has_an_id_before_it_starts(tmp_path: Path) -> None:
    assert session_id_of(create_client(tmp_path, None, None)) is not None
    assert session_id_of(create_client(tmp_path, None, None, resume=ID)) == ID


@pytest.mark.anyio
async def test_the_prompt_goes_verbatim_and_with_an_id(tmp_path: Path) -> None:
    report = tmp_path / "report"
    steps: list[Step] = [*OPENING, {"report": str(report)}, said(text("hello")), result(), *ENDING]
    client = fake_client(tmp_path, steps)
    with anyio.fail_after(SECONDS):
        async with client:
            await session.run_agent_session(client, "/clear @secrets", None)
    (prompt,) = json.loads(report.read_text())["prompts"]
    assert prompt.pop("uuid")
    assert prompt == {
        "type": "user",
        "message": {"role": "user", "content": "/clear @secrets"},
        "parent_tool_use_id": None,
        "client_composed": True,
        "session_id": "default",
    }


@pytest.mark.anyio
async def test_mcp_servers_go_through_a_private_file_that_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, temporary = tmp_path / "report", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    servers = {"a": {"command": "a", "env": {"TOKEN": "hidden-value"}}}
    client = fake_client(tmp_path, [*OPENING, {"report": str(report)}, *SUCCESS[3:]], mcp_servers=servers)
    with anyio.fail_after(SECONDS):
        async with client:
            await session.run_agent_session(client, "hi", None)
    seen = json.loads(report.read_text())
    assert seen["mcp"]["mode"] == 0o600
    assert json.loads(seen["mcp"]["text"]) == {"mcpServers": servers}
    assert not any("hidden-value" in argument for argument in seen["argv"])
    assert "--strict-mcp-config" in seen["argv"]
    assert list(temporary.iterdir()) == []


@pytest.mark.anyio
async def test_a_client_entered_again_has_a_session_of_its_own(tmp_path: Path) -> None:
    client = fake_client(tmp_path, SUCCESS, session_id=ID)
    ids = []
    with anyio.fail_after(SECONDS):
        for _ in range(3):
            async with client:
                *_, trace = await session.run_agent_session(client, "hi", None)
            ids.append(trace.session_id)
    assert ids[0] == ID
    assert len(set(ids)) == 3


@pytest.mark.anyio
async def test_the_process_behind_a_client_can_be_found(tmp_path: Path) -> None:
    report = tmp_path / "report"
    client = fake_client(tmp_path, [{"report": str(report)}, *SUCCESS])
    assert cli_of(client) is None
    with anyio.fail_after(SECONDS):
        async with client:
            cli = cli_of(client)
            assert cli is not None
            assert cli.process.pid == json.loads(report.read_text())["pid"]
            assert all(hasattr(stream, "_decoder") for stream in cli.streams)
            assert cli.reader is not None
            assert not cli.reader.done()
    assert client.exit_code == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("steps", "category", "message"),
    [
        ([{"stderr": "no such flag\n"}, {"exit": 1}], Category.CLI_FAILED, "the CLI exited with code 1: no such flag"),
        ([{"stderr": "bye\n"}, {"exit": 0}], Category.CLI_FAILED, "the CLI exited with code 0: bye"),
        ([{"exit": 127}], Category.CLI_FAILED, "the CLI exited with code 127"),
        ([{"signal": "SIGILL"}], Category.CLI_FAILED, "the CLI was ended by SIGILL"),
    ],
)
async def test_a_cli_that_ends_before_it_answers_is_named(
    tmp_path: Path, steps: list[Step], category: Category, message: str
) -> None:
    client = fake_client(tmp_path, steps)
    with anyio.fail_after(SECONDS), pytest.raises(CannotStart) as failed:
        await client.connect()
    assert (failed.value.error.category, failed.value.error.message) == (category, message)


@pytest.mark.anyio
async def test_a_cli_that_is_not_there_or_cannot_be_run_is_not_found(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    for path in (tmp_path / "missing", plain, tmp_path):
        client = create_client(tmp_path, None, None, cli_path=str(path))
        with anyio.fail_after(SECONDS), pytest.raises(CannotStart) as failed:
            await client.connect()
        assert failed.value.error.category is Category.CLI_NOT_FOUND
        assert str(path) in failed.value.error.message


@pytest.mark.anyio
async def test_a_cli_that_would_get_too_much_is_not_one_that_is_not_there(tmp_path: Path) -> None:
    client = fake_client(tmp_path, SUCCESS, env={"LARGE": "x" * 200_000})
    with anyio.fail_after(SECONDS), pytest.raises(CannotStart) as failed:
        await client.connect()
    assert failed.value.error == session_error(
        Category.SPAWN_FAILED,
        "the CLI could not be started: Argument list too long",
        hint="make what the request gives the CLI smaller, its env above all",
        errno=errno.E2BIG,
    )


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN])
def test_a_machine_that_can_start_no_process_is_named(number: int) -> None:
    assert not_started(OSError(number, "no more")) == session_error(
        Category.SPAWN_FAILED,
        "the CLI could not be started: no more",
        hint="check the limits on processes, memory and open files",
        errno=number,
    )


@pytest.mark.anyio
async def test_a_project_that_has_gone_is_named(tmp_path: Path) -> None:
    project = tmp_path / "project"
    client = create_client(project, None, None, cli_path=fake_cli(tmp_path))
    with anyio.fail_after(SECONDS), pytest.raises(CannotStart) as failed:
        await client.connect()
    assert failed.value.error == session_error(
        Category.SPAWN_FAILED, f"the project directory is gone: {project}", errno=errno.ENOENT
    )


@pytest.mark.anyio
async def test_an_id_that_cannot_be_resumed_is_named(tmp_path: Path) -> None:
    refused = result(None, subtype="error_during_execution", is_error=True, num_turns=0, terminal_reason=None)
    client = fake_client(tmp_path, [refused, {"stderr": "No conversation found\n"}, {"exit": 1}], resume=ID)
    with anyio.fail_after(SECONDS), pytest.raises(CannotStart) as failed:
        await client.connect()
    assert failed.value.error.category is Category.UNKNOWN_SESSION


@pytest.mark.anyio
async def test_secrets_are_masked_in_what_the_cli_wrote(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = "tried hunter22-secret and sk-ant-api03-abc\n"
    client = fake_client(tmp_path, [{"stderr": words}, {"exit": 1}], env={"MY_TOKEN": "hunter22-secret"})
    with anyio.fail_after(SECONDS), pytest.raises(CannotStart) as failed:
        await client.connect()
    assert failed.value.error.details["stderr_tail"] == "tried [masked] and [masked]"
    assert capfd.readouterr().err == "tried [masked] and [masked]\n"


@pytest.mark.anyio
async def test_a_start_that_is_cancelled_leaves_no_cli(tmp_path: Path) -> None:
    report = tmp_path / "report"
    client = fake_client(tmp_path, [{"report": str(report)}, {"hang": True}])
    with anyio.move_on_after(0.5) as scope:
        await client.connect()
    assert scope.cancelled_caught
    assert client.exit_code == -15


def test_the_fake_cli_is_executable(tmp_path: Path) -> None:
    assert Path(fake_cli(tmp_path)).stat().st_mode & 0o100
