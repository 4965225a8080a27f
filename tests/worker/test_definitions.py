"""Agent types in Markdown files: what they may look like, and what is said of those that define none."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.worker.script import SUCCESS, fake_cli, request, run_worker, scripted

from agentcell_protocol.codec import encode
from agentcell_protocol.errors import RequestError
from agentcell_protocol.request import parse_request
from agentcell_protocol.result import Notice
from agentcell_worker import preflight
from agentcell_worker.agents.definition import FORM, MAX_BYTES, MEMBERS
from agentcell_worker.agents.definitions import MAX_IN_MESSAGE, MAX_TOLD, Definitions, Problem, read_definitions
from agentcell_worker.agents.known_tools import unknown_tools
from agentcell_worker.agents.registry import AGENT_CONFIGS, BUILD_TOOLS, AgentType
from agentcell_worker.client import create_client

BODY = "\nYou review.\n"


def definition(*lines: str, body: str = BODY) -> str:
    """A definition with this front matter."""
    return "\n".join(["---", *lines, "---", body])


def read(folder: Path, **files: str | bytes) -> Definitions:
    """What is found in a directory with these files."""
    for name, content in files.items():
        (folder / f"{name}.md").write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_definitions(folder)


def own(found: Definitions) -> dict[str, AgentType]:
    """The types that are not built in."""
    return {name: agent for name, agent in found.types.items() if name not in AGENT_CONFIGS}


def the_one(folder: Path, content: str | bytes) -> AgentType:
    """The type that a file with this content defines."""
    found = read(folder, one=content)
    assert found.problems == ()
    [agent] = own(found).values()
    return agent


def the_problem(folder: Path, content: str | bytes) -> tuple[str, str]:
    """Reason and remedy for a file with this content, which defines nothing."""
    found = read(folder, one=content)
    [problem] = found.problems
    assert (problem.file, own(found)) == ("one.md", {})
    return problem.reason, problem.remedy


def test_a_definition_has_all_that_a_type_has(tmp_path: Path) -> None:
    content = definition(
        "name: reviewer",
        "description: Reads, and changes nothing.",
        "tools: Read, Grep,Glob",
        "disallowedTools: [WebFetch, 'Bash(rm:*)']",
        "model: opus",
        "permissionMode: plan",
    )
    assert the_one(tmp_path, content) == AgentType(
        "reviewer",
        "coding",
        "Reads, and changes nothing.",
        tools=("Read", "Grep", "Glob"),
        disallowed_tools=("WebFetch", "Bash(rm:*)"),
        permission_mode="plan",
        model="opus",
        role="You review.",
        source=tmp_path / "one.md",
    )


def test_a_name_is_enough(tmp_path: Path) -> None:
    content = definition("name: reviewer")
    assert the_one(tmp_path, content) == AgentType("reviewer", "coding", role="You review.", source=tmp_path / "one.md")


def test_the_built_in_types_come_first_and_the_files_in_their_order(tmp_path: Path) -> None:
    found = read(tmp_path, b=definition("name: x"), a=definition("name: z"), c=definition("name: y"))
    assert list(found.types) == [*AGENT_CONFIGS, "z", "x", "y"]


@pytest.mark.parametrize(
    ("lines", "tools"),
    [
        ([], BUILD_TOOLS),
        (["tools: '*'"], BUILD_TOOLS),
        (["tools: *"], BUILD_TOOLS),
        (["tools: ['*']"], BUILD_TOOLS),
        (["tools:"], ()),
        (["tools: ''"], ()),
        (["tools: []"], ()),
        (["tools: Read"], ("Read",)),
        (["tools: Read, Read,"], ("Read",)),
        (["tools: Read Grep"], ("Read", "Grep")),
        (["tools: Read, Bash(git log:*, -n 1), mcp__tickets__*"], ("Read", "Bash(git log:*, -n 1)", "mcp__tickets__*")),
        (["tools:", "  - Read", "  - Grep"], ("Read", "Grep")),
        (["tools:", "- Read # to look", "- Grep"], ("Read", "Grep")),
        (["tools: [Read, 'Grep, Glob']"], ("Read", "Grep", "Glob")),
        (["description: a: b", "tools: [Read, Grep]"], ("Read", "Grep")),
        (["description: a: b", "tools:", "  - Read", "  - Grep"], ("Read", "Grep")),
        (["description: a: b", "'tools': Read"], ("Read",)),
    ],
)
def test_tools_are_a_list_in_any_form(tmp_path: Path, lines: list[str], tools: tuple[str, ...]) -> None:
    assert the_one(tmp_path, definition("name: reviewer", *lines)).tools == tools


@pytest.mark.parametrize("member", ["permissionMode", "permission_mode", "permission-mode"])
def test_a_member_may_be_spelled_in_each_way(tmp_path: Path, member: str) -> None:
    assert the_one(tmp_path, definition("name: reviewer", f"{member}: dontAsk")).permission_mode == "dontAsk"


def test_disallowed_tools_may_be_spelled_as_in_a_request(tmp_path: Path) -> None:
    assert the_one(tmp_path, definition("name: x", "disallowed_tools: Write")).disallowed_tools == ("Write",)


@pytest.mark.parametrize(("model", "taken"), [("inherit", None), ("", None), ("opus", "opus"), ("'1.5'", "1.5")])
def test_an_inherited_model_is_none_of_its_own(tmp_path: Path, model: str, taken: str | None) -> None:
    assert the_one(tmp_path, definition("name: x", f"model: {model}")).model == taken


@pytest.mark.parametrize(("written", "name"), [("yes", "yes"), ("007", "007"), ("null", "null"), ("'a b'", "a b")])
def test_a_name_is_what_stands_there(tmp_path: Path, written: str, name: str) -> None:
    assert the_one(tmp_path, definition(f"name: {written}")).name == name


WILD = "Use this: when code changes. <example>user: \"Look\\nat: it\" assistant: 'I will' & [more] {#1}</example>"


@pytest.mark.parametrize(
    ("lines", "description"),
    [
        ([f"description: {WILD}"], WILD),
        (["description: Use this:", "  <example>", "  user: look", "", "  </example>"], None),
        (["description: Use: it", "<example>look</example>"], "Use: it\n<example>look</example>"),
        (["description: |", "  Use: it", "  tools: of the trade"], "Use: it\ntools: of the trade"),
        (["description: >-", "  Use", "  it"], "Use it"),
        (["description: `code` @once"], "`code` @once"),
        (["# a comment", "description: a: b"], "a: b"),
        (["description: " + "[" * 5_000], "[" * 5_000),
        (["description: tab\there: \x07"], "tab\there: \x07"),
        (["description: !!python/object:os.system x"], "x"),
    ],
)
def test_a_description_may_be_any_text(tmp_path: Path, lines: list[str], description: str | None) -> None:
    agent = the_one(tmp_path, definition(*lines, "name: reviewer", "tools: Read"))
    assert (agent.name, agent.tools) == ("reviewer", ("Read",))
    assert agent.description == (description or "Use this:\n  <example>\n  user: look\n\n  </example>")


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + definition("name: reviewer", "tools: Read"),
        definition("name: reviewer", "tools: Read").replace("\n", "\r\n"),
        definition("name: reviewer", "description: a: b", "tools: Read").replace("\n", "\r\n"),
        definition("name: reviewer", "tools: Read").replace("---", "---  "),
        definition("name: reviewer", "tools: Read", body="You review.\n---\nname: other\n---"),
        "---\nname: reviewer\ntools: Read\n---\nYou review.",
    ],
    ids=["mark", "carriage returns", "no YAML", "blanks", "rulers", "no blank lines"],
)
def test_the_file_may_come_from_any_editor(tmp_path: Path, content: str) -> None:
    agent = the_one(tmp_path, content)
    assert (agent.name, agent.tools) == ("reviewer", ("Read",))
    assert (agent.role or "").startswith("You review.")


STRING = "give a string"
BEGIN = "write lines such as name: NAME"
MARGIN = "begin the line at the margin, or put the text that has tools: in it into quotes"
LIST = "write tools: Read, Grep, or a list of such names"


WRONG: list[tuple[str | bytes, str, str | None]] = [
    ("", "it has no front matter", FORM),
    ("You review.\n", "it has no front matter", FORM),
    (
        "---\nname: reviewer\nYou review.\n",
        "its front matter has no end",
        "write a line --- between it and the role prompt",
    ),
    (" ---\nname: reviewer\n---\nYou review.\n", "it has no front matter", FORM),
    (
        definition("name: reviewer", body=" \n\n"),
        "it has no role prompt",
        "write what the agent is to be and do below the front matter",
    ),
    (definition(), "it has no name", "add name: NAME to the front matter"),
    (definition("name:"), "it has no name", "add name: NAME to the front matter"),
    (definition("description: x"), "it has no name", "add name: NAME to the front matter"),
    (definition("name: [a, b]"), "its name is an array", STRING),
    (
        definition("name: a/b"),
        "its name cannot be used as a name",
        "give printable characters without '/', and not '.' or '..'",
    ),
    (definition(f"name: {'n' * 201}"), "its name is 201 characters long", "give 1 to 200 characters"),
    (definition("name: coder"), "its name 'coder' is that of a built-in type", "give it another"),
    (definition("name: x", "description: {a: b}"), "its description is an object", STRING),
    (definition("name: x", "model: [opus]"), "its model is an array", STRING),
    (definition("name: x", "tools: {Read: yes}"), "its tools are an object", LIST),
    (definition("name: x", "tools: [[Read]]"), "its tools are an array", LIST),
    (definition("name: x", 'tools: "Read'), "its tools have '\"Read'", "give names of tools, parted by commas"),
    (definition("name: x", "tools: *, Read"), "its tools have '*'", "give names of tools, parted by commas"),
    (
        definition("name: x", "tools: Read, Bash(git diff"),
        "its tools have a '(' without a ')'",
        "close it, as in Bash(git log:*)",
    ),
    (
        definition("name: x", "disallowedTools: '*'"),
        "its disallowedTools have '*'",
        "give names of tools, parted by commas",
    ),
    (
        definition("name: x", "permissionMode: never"),
        "its permissionMode is 'never'",
        "give one of default, acceptEdits, plan, bypassPermissions, dontAsk, auto",
    ),
    (definition("name: x", "tool: Read"), "'tool' is not a member of a definition", "did you mean tools?"),
    (definition("name: x", "toolz: Read"), "'toolz' is not a member of a definition", "did you mean tools?"),
    (definition("name: x", "Tools: Read"), "'Tools' is not a member of a definition", "did you mean tools?"),
    (
        definition("name: x", "allowed-tools: Read"),
        "'allowed-tools' is not a member of a definition",
        "did you mean tools?",
    ),
    (
        definition("name: x", "description: a: b", "user: look"),
        "'user' is not a member of a definition",
        f"leave it out; the members are {', '.join(MEMBERS)}",
    ),
    (
        definition("name: x", "? [a]", ": b"),
        "its front matter holds what is no member",
        BEGIN,
    ),
    (definition("name: x", "<<: {tools: Read}"), "'<<' is not a member of a definition", None),
    (definition("name: x", "tools: Read", "tools: Write"), "tools is there twice", "keep one"),
    (
        definition("name: x", "permissionMode: plan", "permission_mode: auto"),
        "permission_mode is there twice",
        "keep one",
    ),
    (definition("name: x", "description: a", "  tools: Read"), "its tools is not at the margin", MARGIN),
    (definition("name: x", "description: a: b", "\ttools: Read"), "its tools is not at the margin", MARGIN),
    (definition("- name: x"), "its front matter holds what is no member", BEGIN),
    (definition("name"), "its front matter holds what is no member", BEGIN),
    (definition("<name>", "name: x: y"), "its front matter holds what is no member", BEGIN),
    (b"---\nname: x\n---\nca\xe9\n", "it is not UTF-8 from byte 18 on", "save it as UTF-8"),
    (
        "---\nname: x\n---\n".encode("utf-16"),
        "it is not UTF-8 from byte 0 on",
        "save it as UTF-8",
    ),
    (
        definition("name: x", body="x" * MAX_BYTES),
        "it has more than 262,144 bytes",
        "shorten it, or move it elsewhere",
    ),
]


@pytest.mark.parametrize(("content", "reason", "remedy"), WRONG, ids=[f"content {n}" for n in range(len(WRONG))])
def test_what_defines_nothing_is_told_with_reason_and_remedy(
    tmp_path: Path, content: str | bytes, reason: str, remedy: str | None
) -> None:
    told, what_to_do = the_problem(tmp_path, content)
    assert (told, what_to_do) == (reason, what_to_do if remedy is None else remedy)


def test_a_value_that_is_nested_too_deep_is_text_and_takes_no_time(tmp_path: Path) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)  # as a worker has it
    try:
        deep = "[" * 20_000
        found = read(
            tmp_path, x=definition("name: x", f"description: {deep}"), y=definition("name: y", f"hooks: {deep}")
        )
    finally:
        sys.setrecursionlimit(limit)
    assert (found.types["x"].description, list(own(found))) == (deep, ["x", "y"])


def _directory(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _circle(path: Path) -> None:
    path.symlink_to(path.name)


ELSEWHERE, READABLE = "move it elsewhere", "make it readable, or move it elsewhere"


@pytest.mark.parametrize(
    ("make", "reason", "remedy"),
    [
        (_directory, "it is not a file", ELSEWHERE),
        (_pipe, "it is not a file", ELSEWHERE),
        (_endless, "it is not a file", ELSEWHERE),
        (_dangling, "it cannot be read: No such file or directory", READABLE),
        (_circle, "it cannot be read: Too many levels of symbolic links", READABLE),
    ],
)
def test_what_is_no_file_is_a_problem_too(
    tmp_path: Path, make: Callable[[Path], None], reason: str, remedy: str
) -> None:
    make(tmp_path / "x.md")
    found = read(tmp_path, y=definition("name: y"))
    assert (list(own(found)), found.problems) == (["y"], (Problem("x.md", reason, remedy),))


def test_a_file_that_fails_when_it_is_read_is_a_problem_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "x.md").write_text(definition("name: x"))
    monkeypatch.setattr(Path, "open", fail)
    assert read_definitions(tmp_path).problems == (Problem("x.md", "it cannot be read: Permission denied", READABLE),)


def test_what_is_not_a_definition_by_its_name_is_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", ".#x.md", ".hidden.md", "x.md~"):
        (tmp_path / name).write_text("nothing")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "x.md").write_text(definition("name: x"))
    found = read_definitions(tmp_path)
    assert (own(found), found.problems) == ({}, ())


def test_an_empty_directory_adds_nothing(tmp_path: Path) -> None:
    assert read_definitions(tmp_path) == Definitions(AGENT_CONFIGS)


def test_a_tool_that_is_not_known_is_told(tmp_path: Path) -> None:
    tools = "tools: Raed, bash(git log:*), mcp__tickets__list, Grep, Frobnicate, Raed(x)"
    found = read(tmp_path, x=definition("name: x", tools, "disallowedTools: WebFetsch"))
    assert found.notes["x"] == (
        "x.md names Raed, which is no known tool; did you mean Read?",
        "x.md names bash, which is no known tool; did you mean Bash?",
        "x.md names Frobnicate, which is no known tool",
        "x.md names WebFetsch, which is no known tool; did you mean WebFetch?",
    )
    assert found.named("x")[1] == tuple(Notice(code="agent_definition", message=note) for note in found.notes["x"])


def test_the_tools_of_the_built_in_types_are_known() -> None:
    assert [unknown_tools(agent.tools) for agent in AGENT_CONFIGS.values()] == [[]] * len(AGENT_CONFIGS)


def test_of_two_files_with_one_name_neither_counts(tmp_path: Path) -> None:
    found = read(tmp_path, a=definition("name: x", "tools: Read"), b=definition("name: x"), c=definition("name: c"))
    reason, remedy = "its name 'x' is that of another file as well", "give each a name of its own"
    assert list(own(found)) == ["c"]
    assert found.problems == (Problem("a.md", reason, remedy), Problem("b.md", reason, remedy))


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "No such file or"), ("file", "Not a directory")])
def test_a_directory_that_cannot_be_read_is_a_mistake_of_the_request(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match=f"^agents_dir: {tmp_path / name} cannot be read: {reason}"):
        read_definitions(tmp_path / name)


def test_what_is_odd_about_the_definitions_comes_with_the_type(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        good=definition("name: good", "color: red", "max_turns: 3", "hooks: {}"),
        other=definition("name: other", "memory: user"),
        broken=definition("name: broken", "toolz: Read"),
    )
    agent, notices = found.named("good")
    broken = "broken.md defines no agent type: 'toolz' is not a member of a definition; did you mean tools?"
    unused = "good.md sets what has no effect here: color, max_turns, hooks"
    assert agent is found.types["good"]
    assert notices == tuple(Notice(code="agent_definition", message=message) for message in (broken, unused))
    assert found.named("coder") == (AGENT_CONFIGS["coder"], notices[:1])


def test_a_type_that_is_not_found_lists_the_known_and_the_problems(tmp_path: Path) -> None:
    found = read(tmp_path, good=definition("name: good"), broken=definition("name: broken", "toolz: Read"))
    known = ", ".join([*AGENT_CONFIGS, "good"])
    with pytest.raises(RequestError) as refused:
        found.named("broken")
    assert str(refused.value) == (
        f"agent_type: 'broken' is not known; use one of {known}; "
        "broken.md: 'toolz' is not a member of a definition; did you mean tools?"
    )


def test_of_many_broken_definitions_a_session_tells_the_first(tmp_path: Path) -> None:
    files = {f"x{number:03}": definition(f"name: x{number}", "toolz: Read") for number in range(MAX_TOLD + 5)}
    found = read(tmp_path, good=definition("name: good"), **files)
    rest = "5 more files define no agent type; agentcell agents --agents-dir DIR lists them"
    notices = found.named("good")[1]
    assert (len(found.problems), len(notices)) == (MAX_TOLD + 5, MAX_TOLD + 1)
    assert notices[-1] == Notice(code="agent_definition", message=rest)
    with pytest.raises(RequestError) as refused:
        found.named("x0")
    assert str(refused.value).count("toolz") == MAX_IN_MESSAGE
    assert str(refused.value).endswith(
        "; 22 more files define no agent type; agentcell agents --agents-dir DIR lists them"
    )


def test_the_permission_mode_of_a_definition_is_checked_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (tmp_path / "x.md").write_text(definition("name: bold", "permissionMode: bypassPermissions"))
    asked = parse_request(request(tmp_path, agent_type="bold", agents_dir=str(tmp_path)))
    agent, _ = preflight.find_agent(asked)
    preflight.check_request(asked, agent)
    assert preflight.check_permissions(asked, agent, {}) is not None


def test_a_client_has_the_tools_of_the_definition_and_refuses_what_it_refuses(tmp_path: Path) -> None:
    content = definition("name: x", "tools: Read, Bash(git log:*), Bash(git diff:*)", "disallowedTools: Write, Edit")
    agent = the_one(tmp_path, content)
    options = create_client(tmp_path, None, None, agent_type=agent, disallowed_tools=["Edit", "Glob"]).options
    assert options.tools == ["Read", "Bash"]
    assert options.allowed_tools == ["Read", "Bash(git log:*)", "Bash(git diff:*)"]
    assert options.disallowed_tools == ["Write", "Edit", "Glob"]


def worked(folder: Path, agents_dir: Path, **members: Any) -> tuple[int, dict[str, Any]]:
    """Exit code and result of a worker that is asked for a type of that directory, and has a fake CLI."""
    asked = request(folder, agents_dir=str(agents_dir), cli_path=fake_cli(folder), **members)
    code, [result], _ = run_worker(folder, encode(asked))
    return code, result


def test_a_worker_says_what_defines_nothing_when_it_does_not_find_the_type(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("nothing")
    code, result = worked(tmp_path, tmp_path, agent_type="x")
    details = {"member": "agent_type", "reason": "'x' is not known"}
    assert (code, result["session_name"], result["error"]["details"]) == (2, "s", details)
    assert result["error"]["hint"] == f"use one of {', '.join(AGENT_CONFIGS)}; x.md: it has no front matter; {FORM}"


def test_a_worker_refuses_a_directory_that_is_not_there(tmp_path: Path) -> None:
    code, result = worked(tmp_path, tmp_path / "nowhere")
    assert (code, result["error"]["details"]["member"]) == (2, "agents_dir")


def test_a_worker_serves_a_type_of_the_directory_and_warns_of_the_rest(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("nothing")
    (tmp_path / "y.md").write_text(definition("name: y", "color: red"))
    code, result = worked(tmp_path, tmp_path, agent_type="y", env=scripted(SUCCESS))
    assert (code, result["response"], result["agent_type"]) == (0, "hello", "y")
    assert result["warnings"] == [
        {"code": "agent_definition", "message": f"x.md defines no agent type: it has no front matter; {FORM}"},
        {"code": "agent_definition", "message": "y.md sets what has no effect here: color"},
    ]
