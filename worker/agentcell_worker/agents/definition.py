"""One agent type that a user defines: a Markdown file in the form that Claude Code's own agents have."""

import re
import stat
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from agentcell_protocol.codec import kind
from agentcell_protocol.members import Name, PermissionMode
from agentcell_worker.agents.known_tools import unknown_tools
from agentcell_worker.agents.registry import AGENT_CONFIGS, BUILD_TOOLS, AgentType
from agentcell_worker.front_matter import FrontMatterError, is_begun, members_of, parted

MAX_BYTES = 262_144
"""In the largest definition: a role prompt of more than 60,000 tokens is another file by mistake."""

BOM = "\ufeff"

MEMBERS = ("name", "description", "tools", "disallowedTools", "model", "permissionMode")

NOT_USED = frozenset(
    {
        "autoCompactWindow",
        "background",
        "color",
        "displayName",
        "effort",
        "hooks",
        "initialPrompt",
        "isolation",
        "maxTurns",
        "mcpServers",
        "memory",
        "observeSubagents",
        "observeToolResults",
        "observer",
        "observerMessage",
        "omitClaudeMd",
        "skills",
        "version",
    }
)
"""What Claude Code reads in such a file, and a cell does not."""

MEANT = {"allowedTools": "tools", "tool": "tools"}
"""What people write whose spelling leads to another member than they mean."""

EVERYTHING = ("*", ["*"])
"""All tools, as it can be written."""

FORM = "begin the file with a line ---, then name: NAME and further members, then a line ---, then the role prompt"

_TOOLS = re.compile(r"[^\s,()]+(?:\([^()]*\))?|[^\s,]")
"""What lies between commas and blanks, and rules such as Bash(git log:*) as a whole."""

_TOOL = re.compile(r"[A-Za-z][\w.*:-]*(?:\(.*\))?")

_NAME: TypeAdapter[str] = TypeAdapter(Name)


class DefinitionError(ValueError):
    """A file that defines no agent type: what is wrong with it, and what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}")


def defined_in(file: Path) -> tuple[AgentType, list[str]]:
    """The type that a file defines, and what is odd about the file, without its name. Raises DefinitionError."""
    text = _text(file)
    front, body = parted(text)
    if front is None and is_begun(text):
        raise DefinitionError("its front matter has no end", "write a line --- between it and the role prompt")
    if front is None:
        raise DefinitionError("it has no front matter", FORM)
    if not (role := body.strip()):
        raise DefinitionError("it has no role prompt", "write what the agent is to be and do below the front matter")
    members, unused = _members(front)
    model = _string(members, "model")
    agent = AgentType(
        _name(members.get("name", "")),
        "coding",
        _string(members, "description"),
        tools=BUILD_TOOLS if members.get("tools", "*") in EVERYTHING else _tools(members, "tools"),
        disallowed_tools=_tools(members, "disallowedTools"),
        permission_mode=_permission_mode(members),
        model=None if model in {"", "inherit"} else model,
        role=role,
        source=file,
    )
    return agent, [*_unused_notes(unused), *unknown_tools(agent.tools + agent.disallowed_tools)]


def _unused_notes(unused: list[str]) -> list[str]:
    return [f"sets what has no effect here: {', '.join(unused)}"] if unused else []


def _text(file: Path) -> str:
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # to open a pipe would wait for who writes into it
            raise DefinitionError("it is not a file", "move it elsewhere")
        with file.open("rb") as content:
            data = content.read(MAX_BYTES + 1)
    except OSError as unreadable:
        raise DefinitionError(
            f"it cannot be read: {unreadable.strerror}", "make it readable, or move it elsewhere"
        ) from None
    if len(data) > MAX_BYTES:
        raise DefinitionError(f"it has more than {MAX_BYTES:,} bytes", "shorten it, or move it elsewhere")
    try:
        return data.decode().removeprefix(BOM)
    except UnicodeDecodeError as broken:
        raise DefinitionError(f"it is not UTF-8 from byte {broken.start} on", "save it as UTF-8") from None


def _members(front: str) -> tuple[dict[str, Any], list[str]]:
    """The members that count, by the name they have here, and the names of those that do not."""
    members: dict[str, Any] = {}
    unused = []
    try:
        read = members_of(front, {*MEMBERS, *map(_snake, MEMBERS)})
    except FrontMatterError as unreadable:
        raise DefinitionError(str(unreadable), unreadable.remedy) from None
    for written, value in read:
        name = _camel(written)
        if name in NOT_USED:
            unused.append(written)
        elif name not in MEMBERS:  # a `tools` that is misspelt must not leave the agent with all tools
            raise DefinitionError(f"{written[:40]!r} is not a member of a definition", _suggestion(name))
        elif name in members:
            raise DefinitionError(f"{written} is there twice", "keep one")
        else:
            members[name] = value
    return members, unused


def _suggestion(name: str) -> str:
    close = [MEANT[name]] if name in MEANT else get_close_matches(name, MEMBERS, n=1)
    return f"did you mean {close[0]}?" if close else f"leave it out; the members are {', '.join(MEMBERS)}"


def _camel(name: str) -> str:
    return re.sub(r"[_-]([a-z])", lambda match: match[1].upper(), name)


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), name)


def _name(given: Any) -> str:
    if not given:
        raise DefinitionError("it has no name", "add name: NAME to the front matter")
    if not isinstance(given, str):
        raise DefinitionError(f"its name is {kind(given)}", "give a string")
    try:
        name = _NAME.validate_python(given)
    except ValidationError as refused:
        context = refused.errors()[0]["ctx"]
        raise DefinitionError(f"its name {context['reason']}", context["remedy"]) from None
    if name in AGENT_CONFIGS:
        raise DefinitionError(f"its name {name!r} is that of a built-in type", "give it another")
    return name


def _string(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name, "")
    if not isinstance(value, str):
        raise DefinitionError(f"its {name} is {kind(value)}", "give a string")
    return value.strip()


def _permission_mode(members: Mapping[str, Any]) -> PermissionMode:
    modes = get_args(PermissionMode)
    mode = _string(members, "permissionMode") or "acceptEdits"
    if mode not in modes:
        raise DefinitionError(f"its permissionMode is {mode[:40]!r}", f"give one of {', '.join(modes)}")
    return cast("PermissionMode", mode)


def _tools(members: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The tools that a member names; an empty one names none."""
    given = members.get(name, "")
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(tool, str) for tool in listed):
        raise DefinitionError(f"its {name} are {kind(given)}", f"write {name}: Read, Grep, or a list of such names")
    tools = [tool for text in listed for tool in _TOOLS.findall(text)]
    if any(text.count("(") > text.count(")") for text in listed):
        raise DefinitionError(f"its {name} have a '(' without a ')'", "close it, as in Bash(git log:*)")
    if odd := [tool for tool in tools if not _TOOL.fullmatch(tool)]:
        raise DefinitionError(f"its {name} have {odd[0][:40]!r}", "give names of tools, parted by commas")
    return tuple(dict.fromkeys(tools))
