"""Which turn of the script answers which request.

A conversation is a session, or a subagent within one. Each of its requests takes the next turn (a turn with
`times: N` is taken N times), whatever became of the one before: a request that is sent again after an error
or a dropped connection takes the next turn as well. After the last turn, and in a subagent that the script
does not match, the model answers `AFTER_LAST`.
"""

from dataclasses import dataclass, field, replace

from agentcell.offline.request import ModelRequest
from agentcell.offline.script import Script, Turn

AFTER_LAST = Turn(text=["The script has no further turn."])

BESIDE = {
    "title": Turn(text=['{"title": "Offline session"}']),
    "search": Turn(text=["Nothing is found offline."]),
}
"""The answers to what the CLI asks beside a conversation, by kind of request."""

Key = tuple[str | None, str | None]
"""A session's id and, for its subagents, the agent's."""


@dataclass
class Conversations:
    """The state of everything that is said with one endpoint; `requests` is all that was asked, in order."""

    script: Script
    requests: list[ModelRequest] = field(default_factory=list)
    _turns: dict[Key, list[Turn]] = field(default_factory=dict)
    _taken: dict[Key, int] = field(default_factory=dict)

    def take(self, request: ModelRequest) -> Turn:
        """The turn that answers a request to the messages API."""
        if request.kind in BESIDE:
            self.requests.append(request)
            return BESIDE[request.kind]
        key = (request.session_id, request.agent_id)
        if key not in self._turns:
            self._turns[key] = self._fitting(request)
        number = self._taken[key] = self._taken.get(key, 0) + 1
        self.requests.append(replace(request, turn=number))
        return _nth(self._turns[key], number)

    def _fitting(self, request: ModelRequest) -> list[Turn]:
        is_subagent = request.agent_id is not None
        order = 0 if is_subagent else 1 + sum(agent_id is None for _, agent_id in self._turns)
        for conversation in self.script.sessions:
            is_named = conversation.match is not None and conversation.match in request.prompt
            if is_named or conversation.session == order:
                return conversation.turns
        return [] if is_subagent else self.script.turns


def _nth(turns: list[Turn], number: int) -> Turn:
    for turn in turns:
        if turn.times == "always" or number <= turn.times:
            return turn
        number -= turn.times
    return AFTER_LAST
