"""What `agentcell run` makes of its options."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agentcell import agents
from agentcell.cli import agentcell
from agentcell.commands import foreground
from agentcell.limits import Limits
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult
from agentcell_worker.agents.registry import AGENT_CONFIGS


class Recorder:
    """Takes the place of the run, and keeps what it was to run."""

    def __init__(self) -> None:
        self.request: dict[str, Any] = {}
        self.limits = Limits()
        self.environment: dict[str, str] = {}
        self.keep: bool | None = None

    async def run(
        self, request: SessionRequest, limits: Limits, environment: Mapping[str, str], _on_event: object, keep: bool
    ) -> SessionResult:
        self.request = request.model_dump(exclude_defaults=True, exclude={"events"})
        self.limits, self.environment, self.keep = limits, dict(environment), keep
        return SessionResult(status="complete", response="answer", session_name=request.session_name)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(foreground, "run_until_signalled", recorder.run)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return recorder


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(agentcell, ["run", *arguments], input=stdin)


def test_the_help_lists_the_agent_types() -> None:
    *others, last = AGENT_CONFIGS
    assert f"{', '.join(others)} or {last}." in " ".join(run("--help").output.split())


def test_a_message_is_enough(recorder: Recorder, tmp_path: Path) -> None:
    ended = run("hi")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "answer\n", "")
    assert recorder.request == {
        "session_name": "project",
        "agent_type": "coder",
        "project_dir": str(tmp_path / "project"),
        "starting_message": "hi",
    }


def test_every_option_has_its_member(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "context.yaml").write_text("a: 1\nb: [x]\n")
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"files": {"command": "serve"}}}')
    ended = run(
        *(
            "--project-dir",
            str(tmp_path),
            "--agent-type",
            "planner",
            "--agents-dir",
            "own",
            "--session-name",
            "n",
            "--spec-dir",
            "spec",
        ),
        *("--model", "m", "--system-prompt", "role", "--max-turns", "3", "--max-budget-usd", "0.5"),
        *("--permission-mode", "plan", "--setting-sources", "user", "--setting-sources", "project"),
        *("--tools", "Read", "--tools", "Bash", "--allowed-tools", "Bash(git log:*), Read", "--allowed-tools", "Edit"),
        *("--disallowed-tools", "WebFetch", "--disallowed-tools", "Bash(rm:*)"),
        *("--mcp-config", str(tmp_path / "mcp.json"), "--context", str(tmp_path / "context.yaml")),
        *("--resume", "0b5b1a3e-98a5-4b44-9d3e-0f7b5dd3a001", "hi"),
    )
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert recorder.request == {
        "session_name": "n",
        "agent_type": "planner",
        "agents_dir": str(tmp_path / "project" / "own"),
        "project_dir": str(tmp_path),
        "starting_message": "hi",
        "spec_dir": str(tmp_path / "project" / "spec"),
        "model": "m",
        "system_prompt": "role",
        "max_turns": 3,
        "max_budget_usd": 0.5,
        "permission_mode": "plan",
        "setting_sources": ["user", "project"],
        "tools": ["Read", "Bash"],
        "allowed_tools": ["Bash(git log:*), Read", "Edit"],
        "disallowed_tools": ["WebFetch", "Bash(rm:*)"],
        "mcp_servers": {"files": {"command": "serve"}},
        "context": {"a": 1, "b": ["x"]},
        "resume": "0b5b1a3e-98a5-4b44-9d3e-0f7b5dd3a001",
    }


def test_an_empty_tool_name_means_no_tools_at_all(recorder: Recorder) -> None:
    run("--tools", "", "hi")
    assert recorder.request["tools"] == []


def test_the_timeout_is_the_limit_on_the_whole_session(recorder: Recorder) -> None:
    run("--timeout", "2.5", "hi")
    assert recorder.limits == Limits(max_execution_seconds=2.5)


def test_variables_reach_the_cell_when_they_are_named(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANTED", "UNWANTED", "CLAUDECODE"):
        monkeypatch.setenv(name, "x")
    run("--env", "A=b=c", "--env", "EMPTY=", "--pass-env", "WANTED", "hi")
    names = {"A", "EMPTY", "WANTED", "UNWANTED", "CLAUDECODE"}
    assert {name: value for name, value in recorder.environment.items() if name in names} == {
        "A": "b=c",
        "EMPTY": "",
        "WANTED": "x",
    }


def test_offline_nothing_leads_to_a_real_model(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    request = {
        "session_name": "s",
        "agent_type": "coder",
        "project_dir": ".",
        "starting_message": "hi",
        "setting_sources": ["user"],
        "env": {"ANTHROPIC_BASE_URL": "http://model.invalid", "KEPT": "1"},
    }
    more = ["--env", "ANTHROPIC_BASE_URL=http://model.invalid", "--pass-env", "AWS_SECRET_ACCESS_KEY", "--env", "A=b"]
    ended = run("--offline", "--request", "-", *more, stdin=json.dumps(request))
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert recorder.request["env"] == {"KEPT": "1"}
    assert "setting_sources" not in recorder.request
    assert "secret" not in recorder.environment.values()
    assert recorder.environment["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert recorder.environment["A"] == "b"
    assert not {"HTTPS_PROXY", "CLAUDE_CODE_USE_BEDROCK"} & recorder.environment.keys()


@pytest.mark.parametrize("arguments", [[], ["-"]])
@pytest.mark.parametrize("piped", ["two\nlines\n", "\ufefftwo\nlines\n"])
def test_what_is_piped_in_is_the_message(recorder: Recorder, arguments: list[str], piped: str) -> None:
    assert run(*arguments, stdin=piped).exit_code == 0
    assert recorder.request["starting_message"] == "two\nlines\n"


def test_bytes_that_are_no_text_are_replaced(recorder: Recorder) -> None:
    run(stdin=b"a\xff")
    assert recorder.request["starting_message"] == "a\ufffd"


def test_an_agent_type_with_a_context_needs_no_message(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "context.json").write_text("{}")
    assert run("--context", str(tmp_path / "context.json")).exit_code == 0
    assert "starting_message" not in recorder.request


@pytest.mark.parametrize(
    "written",
    [
        json.dumps({"a": "🦊", "b": 1e300}),
        json.dumps({"a": "🦊", "b": 1e300}, indent="\t"),
        '\ufeff{"a": "🦊", "b": 1e300}',
        "a: 🦊\nb: 1.0e+300\n",
    ],
    ids=["escaped", "indented by tabs", "marked", "YAML"],
)
def test_a_context_is_read_as_it_was_meant(recorder: Recorder, tmp_path: Path, written: str) -> None:
    (tmp_path / "context").write_text(written)
    assert run("--context", str(tmp_path / "context")).exit_code == 0
    assert recorder.request["context"] == {"a": "🦊", "b": 1e300}


@pytest.mark.parametrize("agent_type", ["documentation_generator", "unknown"])
def test_for_an_agent_type_that_needs_no_message_stdin_is_not_read(recorder: Recorder, agent_type: str) -> None:
    stdin = BytesIO(b"In French.")
    ended = CliRunner().invoke(agentcell, ["run", "--agent-type", agent_type], input=stdin)
    assert (ended.exit_code, stdin.read()) == (0, b"In French.")
    assert recorder.request["agent_type"] == agent_type
    assert "starting_message" not in recorder.request


@pytest.mark.parametrize("arguments", [["planner"], ["documentation_generator", "-"]])
def test_what_is_piped_in_for_an_agent_type_is_its_message(recorder: Recorder, arguments: list[str]) -> None:
    assert run("--agent-type", *arguments, stdin="In French.").exit_code == 0
    assert recorder.request["starting_message"] == "In French."


def test_without_a_listing_what_is_piped_in_is_the_message(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "LISTING", ("/nonexistent/python",))
    assert run("--agent-type", "documentation_generator", stdin="In French.").exit_code == 0
    assert recorder.request["starting_message"] == "In French."


@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_whole_request_may_be_indented(recorder: Recorder, tmp_path: Path, start: str) -> None:
    request: dict[str, Any] = {
        "session_name": "s",
        "agent_type": "coder",
        "project_dir": ".",
        "starting_message": "hi",
        "limits": {"max_execution_seconds": 9, "drain_seconds": 1},
    }
    (tmp_path / "request.json").write_text(start + json.dumps(request, indent=2))
    ended = run("--request", str(tmp_path / "request.json"), "--timeout", "5")
    assert (ended.exit_code, ended.stderr) == (0, "")
    request.pop("limits")
    assert recorder.request == {**request, "project_dir": str(tmp_path / "project")}
    assert recorder.limits == Limits(max_execution_seconds=5, drain_seconds=1)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["  "], "Invalid value for MESSAGE: is blank; say what the agent is to do"),
        (["-C", "nowhere", "hi"], "Invalid value for --project-dir: {project}/nowhere is not a directory"),
        (["--permission-mode", "never", "hi"], "Invalid value for --permission-mode: "),
        (["--setting-sources", "user,project", "hi"], "Invalid value for --setting-sources: "),
        (["--max-turns", "0", "hi"], "Invalid value for --max-turns: "),
        (["--max-budget-usd", "-1", "hi"], "Invalid value for --max-budget-usd: "),
        (["--session-name", "a/b", "hi"], "Invalid value for --session-name: cannot be used as a name; give "),
        (["--session-id", "no", "hi"], "Invalid value for --session-id: "),
        (["--timeout", "0", "hi"], "Invalid value for '--timeout': 0.0 is no limit; give a positive number of seconds"),
        (["--timeout", "nan", "hi"], "Invalid value for '--timeout': nan is no limit"),
        (["--env", "NAME", "hi"], "Invalid value for '--env': 'NAME' is not of the form NAME=VALUE; --pass-env NAME "),
        (["--env", "=x", "hi"], "Invalid value for '--env': '' is not of the form NAME=VALUE"),
        (["--context", "nowhere", "hi"], "Invalid value for '--context': nowhere cannot be read: No such file or dir"),
        (["--context", "list.json", "hi"], "Invalid value for '--context': list.json holds no object; write one "),
        (["--context", "broken.json", "hi"], "Invalid value for '--context': broken.json is neither JSON nor YAML: "),
        (
            ["--context", "deep.json", "hi"],
            "Invalid value for '--context': deep.json is nested too deep; write one object",
        ),
        (["--mcp-config", "text.json", "hi"], "Invalid value for '--mcp-config': text.json names no servers; write "),
        (["--request", "nowhere"], "Invalid value for --request: nowhere cannot be read: No such file or directory; "),
        (["--request", "broken.json"], "Invalid value for --request: the line is not valid JSON"),
        (
            ["--request", "-", "hi", "--tools", "x"],
            "--request is the whole request, it cannot go with MESSAGE, --tools",
        ),
        (["--request", "-", "-C", "."], "--request is the whole request, it cannot go with --project-dir; write "),
        ([], "the message on stdin is blank; say what the agent is to do"),
        (["--agent-type", "coder", "-"], "the message on stdin is blank; say what the agent is to do"),
    ],
)
def test_a_mistake_is_named_with_option_reason_and_remedy(
    recorder: Recorder, tmp_path: Path, arguments: list[str], reason: str
) -> None:
    files = {"list.json": "[]", "broken.json": "{", "deep.json": "[" * 9000, "text.json": '{"mcpServers": {"a": 1}}'}
    for name, content in files.items():
        Path(name).write_text(content)
    ended = run(*arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert reason.format(project=tmp_path / "project") in ended.stderr
    assert recorder.request == {}


def test_a_wrong_request_is_told_by_its_members(recorder: Recorder) -> None:
    ended = run("--request", "-", stdin='{"sesion_name": "s"}')
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert (
        ended.stderr == "error (bad_request): sesion_name: is not a member of a request; did you mean session_name?\n"
    )


def test_with_json_a_wrong_request_is_a_result_too(recorder: Recorder) -> None:
    ended = run("--json", "--session-name", "s", "--max-turns", "0", "hi")
    assert ended.exit_code == 2
    result = json.loads(ended.stdout)
    assert list(result)[:3] == ["status", "response", "session_name"]
    assert (result["session_name"], result["agent_type"]) == ("s", "coder")
    assert result["error"]["category"] == "bad_request"
    assert result["error"]["details"]["member"] == "max_turns"


def test_a_project_without_a_name_has_a_session_name_all_the_same(recorder: Recorder) -> None:
    assert run("-C", "/", "hi").exit_code == 0
    assert recorder.request["session_name"] == "session"


@pytest.mark.parametrize(("arguments", "keep"), [([], True), (["--no-keep"], False), (["--offline"], False)])
def test_a_conversation_is_kept_unless_it_is_not_wanted_or_a_rehearsal(
    recorder: Recorder, arguments: list[str], keep: bool
) -> None:
    assert run("hi", *arguments).exit_code == 0
    assert recorder.keep is keep
