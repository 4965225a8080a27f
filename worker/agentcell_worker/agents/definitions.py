"""The agent types of a directory: the built-in ones, and those that its files define."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from agentcell_protocol.errors import RequestError
from agentcell_protocol.result import Notice
from agentcell_worker.agents.definition import DefinitionError, defined_in
from agentcell_worker.agents.registry import AGENT_CONFIGS, AgentType, agent_named

SUFFIX = ".md"

MAX_TOLD = 20
"""Files that a session says cannot be used: of a directory of something else that is more than anybody reads."""

MAX_IN_MESSAGE = 3
"""Files that one message names."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file defines no agent type, and what to do about it."""

    file: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Definitions:
    """All types by name, the built-in ones first, and what is wrong with the files that define none.

    `notes` has what is odd about the file of a type that can be used.
    """

    types: Mapping[str, AgentType]
    problems: tuple[Problem, ...] = ()
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def named(self, name: str) -> tuple[AgentType, tuple[Notice, ...]]:
        """The type of that name, and what is odd about the definitions. Raises RequestError."""
        try:
            agent = agent_named(name, self.types)
        except RequestError as unknown:
            first = map(str, self.problems[:MAX_IN_MESSAGE])
            remedy = "; ".join([unknown.remedy, *first, *self._untold(MAX_IN_MESSAGE)])
            raise RequestError("agent_type", unknown.reason, remedy) from None
        told = self.problems[:MAX_TOLD]
        odd = [f"{problem.file} defines no agent type: {problem.reason}; {problem.remedy}" for problem in told]
        odd += [*self._untold(MAX_TOLD), *self.notes.get(name, ())]
        return agent, tuple(Notice(code="agent_definition", message=message) for message in odd)

    def _untold(self, told: int) -> list[str]:
        more = len(self.problems) - told
        return [f"{more} more files define no agent type; agentcell agents --agents-dir DIR lists them"] * (more > 0)


def read_definitions(directory: str | Path) -> Definitions:
    """The built-in types, and those that the `*.md` files in the directory define.

    A file that cannot be used is a problem, the others count all the same. Raises RequestError for a directory that
    cannot be read.
    """
    found: list[tuple[str, AgentType]] = []
    problems: list[Problem] = []
    notes: dict[str, tuple[str, ...]] = {}
    for file in _files(Path(directory)):
        try:
            agent, odd = defined_in(file)
        except DefinitionError as broken:
            problems.append(Problem(file.name, broken.reason, broken.remedy))
            continue
        found.append((file.name, agent))
        notes[agent.name] = tuple(f"{file.name} {note}" for note in odd)
    count = Counter(agent.name for _, agent in found)
    for file_name, agent in found:
        if count[agent.name] > 1:  # which of them is meant decides what the agent may do
            reason = f"its name {agent.name!r} is that of another file as well"
            problems.append(Problem(file_name, reason, "give each a name of its own"))
    own = {agent.name: agent for _, agent in found if count[agent.name] == 1}
    return Definitions(MappingProxyType({**AGENT_CONFIGS, **own}), tuple(problems), notes)


def _files(directory: Path) -> list[Path]:
    try:
        files = sorted(directory.iterdir())
    except OSError as unreadable:
        remedy = "name the directory that holds the definitions of agent types"
        raise RequestError("agents_dir", f"{directory} cannot be read: {unreadable.strerror}", remedy) from None
    return [file for file in files if file.suffix == SUFFIX and not file.name.startswith(".")]
