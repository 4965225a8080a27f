"""What `agentcell run` was told, and the values its options read from files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import Any

import click

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `agentcell run`, as given; None and empty stand for what was not given.

    `given` holds the names of those that were on the command line.
    """

    message: str | None
    project_dir: str
    agent_type: str
    agents_dir: str | None
    session_name: str | None
    spec_dir: str | None
    model: str | None
    system_prompt: str | None
    timeout: float | None
    max_turns: int | None
    max_budget_usd: float | None
    permission_mode: str | None
    tools: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    disallowed_tools: tuple[str, ...]
    setting_sources: tuple[str, ...]
    mcp_config: dict[str, Any] | None = field(repr=False)
    session_id: str | None
    resume: str | None
    env: dict[str, str] = field(repr=False)
    pass_env: tuple[str, ...]
    context: dict[str, Any] | None
    request: str | None
    no_keep: bool
    as_json: bool
    offline: bool
    verbose: bool
    given: frozenset[str] = frozenset()


def option_of(member: str) -> str:
    """The option that gives a member of a request, as a user types it."""
    match member.split(".", maxsplit=1)[0]:
        case "starting_message":
            return "MESSAGE"
        case "mcp_servers":
            return "--mcp-config"
        case name:
            return "--" + name.replace("_", "-")


def seconds(_context: click.Context, _option: click.Parameter, given: float | None) -> float | None:
    """A number of seconds that a limit can be."""
    if given is not None and not 0 < given < inf:
        raise click.BadParameter(f"{given} is no limit; give a positive number of seconds")
    return given


def finite(_context: click.Context, _option: click.Parameter, given: float | None) -> float | None:
    """A number that something can be compared with."""
    if given is not None and not isfinite(given):
        raise click.BadParameter(f"{given} is no amount; give a finite number")
    return given


def pairs(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The variables of `--env NAME=VALUE`, given any number of times."""
    variables = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{name!r} is not of the form NAME=VALUE; --pass-env NAME passes one on as it is")
        variables[name] = value
    return variables


@dataclass(frozen=True, slots=True)
class MappingFile:
    """The object in a JSON or YAML file, and the file's path."""

    path: str
    members: dict[str, Any] = field(repr=False)


def named_mapping(context: click.Context, option: click.Parameter, path: str | None) -> MappingFile | None:
    """As `mapping_file`, where what is wrong with a member is told with the file's name."""
    members = mapping_file(context, option, path)
    return None if path is None or members is None else MappingFile(path, members)


def mapping_file(_context: click.Context, _option: click.Parameter, path: str | None) -> dict[str, Any] | None:
    """The object in a JSON or YAML file."""
    import yaml

    if path is None:
        return None
    try:
        content = _parsed(Path(path).read_bytes().removeprefix(BOM))
    except OSError as unreadable:
        raise click.BadParameter(f"{path} cannot be read: {unreadable.strerror}; name a JSON or YAML file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as invalid:
        raise click.BadParameter(f"{path} is neither JSON nor YAML: {invalid}; write one object in it") from None
    except RecursionError:
        raise click.BadParameter(f"{path} is nested too deep; write one object in it") from None
    if not isinstance(content, dict):
        raise click.BadParameter(f"{path} holds no object; write one with named members in it")
    return {str(name): value for name, value in content.items()}


def _parsed(data: bytes) -> Any:
    """JSON, and what is none as YAML, which is read hundreds of times slower, and splits emoji that are escaped."""
    import orjson
    import yaml

    class Loader(yaml.SafeLoader):
        """Has no dates, which JSON has not: they are the text that they are written as."""

        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
            for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return yaml.load(data, Loader)  # noqa: S506 - it is a safe one


def mcp_servers(context: click.Context, option: click.Parameter, path: str | None) -> dict[str, Any] | None:
    """The servers of a file in the usual form, `{"mcpServers": {name: {...}}}`, or of the inner object alone."""
    content = mapping_file(context, option, path)
    if content is None:
        return None
    servers = content.get("mcpServers", content)
    if not isinstance(servers, Mapping) or not all(isinstance(server, Mapping) for server in servers.values()):
        raise click.BadParameter(f'{path} names no servers; write {{"mcpServers": {{"NAME": {{"command": "..."}}}}}}')
    return dict(servers)
