"""The account of one prompt: what its messages, taken one by one, add up to."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentcell_protocol.errors import Category, SessionError
from agentcell_protocol.result import Denial, Notice, Usage
from agentcell_worker.carried import own_cost
from agentcell_worker.outcome import FATAL_STATUSES, Seen, TurnEnd, failure, judge
from agentcell_worker.progress import Progress
from agentcell_worker.trace import Trace
from agentcell_worker.translate import (
    api_error_of,
    causes_a_turn,
    counts_of,
    events_of,
    is_spoken,
    task_change_of,
    texts_of,
    turn_end_of,
)


class Account:
    """Takes the messages of a session and knows, at any time, how it stands.

    `prompt_id` is the uuid of the prompt, `asked` what the request asked for, `listen` takes the events.
    """

    def __init__(self, prompt_id: str, asked: Seen, listen: Callable[[dict[str, Any]], object]) -> None:
        self.progress = Progress()
        self.error: SessionError | None = None
        self.turn: TurnEnd | None = None
        self.response = ""
        self.live_tasks: dict[str, str] = {}
        self.must_end_now = False
        self.prompt_id = prompt_id
        self._asked = asked
        self._listen = listen
        self._answer = _Answer()
        self._api_error: str | None = None
        self._resets_at: float | None = None
        self._usage = _Usages(asked.carried_cost_usd)
        self._is_in_turn = False
        self._is_turn_owed = False

    @property
    def has_ended(self) -> bool:
        """Whether the prompt was answered or failed."""
        return self.turn is not None or self.error is not None

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to wait for: no background task, and no turn that one of them causes."""
        return self.error is not None or not (self.live_tasks or self._is_in_turn or self._is_turn_owed)

    def take(self, message: Any) -> None:
        """Take one message of the SDK."""
        for event in events_of(message):
            self._hear(event)
        self._follow_tasks(message)
        if is_spoken(message):
            self._is_in_turn, self._is_turn_owed = True, False
            self._answer.add(message)
        if type(message).__name__ == "AssistantMessage":
            self._api_error = api_error_of(message) or self._api_error
            self._count(self._usage.seen(str(message.message_id), counts_of(message.usage)))
        if (turn := turn_end_of(message)) is not None:
            self._end_turn(turn)

    def warn(self, code: str, message: str) -> None:
        """Note something odd that is no failure."""
        self._hear({"type": "warning", "code": code, "message": message})

    def fail(self, error: SessionError) -> None:
        """End the account with an error, unless the prompt was answered before: then it is only odd."""
        if self.turn is not None:
            self.warn("late_failure", f"after the session had succeeded: {error.message}")
        elif self.error is None:
            self.error = error

    def seen(self) -> Seen:
        """What there is to judge by at this moment."""
        resets_in = None if self._resets_at is None else max(0.0, self._resets_at - time.time())
        return replace(
            self._asked,
            response=self.response,
            partial=self.progress.text,
            tool_calls=self.progress.tool_calls,
            api_error=self._api_error,
            retry_after_s=resets_in,
            has_started=self.progress.session_id is not None,
        )

    def trace(self, session_id: str | None) -> Trace:
        """The trace, with `session_id` standing in for one the CLI never told."""
        self.progress.settle(time.monotonic())
        turn = self.turn or self._usage.last_turn
        return Trace(
            error=self.error,
            session_id=self.progress.session_id or session_id,
            model=self.progress.model,
            cost_usd=self._usage.cost_usd,
            num_turns=self._usage.num_turns,
            stop_reason=turn.stop_reason if turn else None,
            tool_calls=self.progress.tool_calls,
            permission_denials=tuple(self.progress.denials),
            warnings=tuple(self.progress.notices),
            structured_output=turn.structured_output if turn and self.error is None else None,
            must_end_now=self.must_end_now,
            waited_seconds=self.progress.waited_seconds,
        )

    def _hear(self, event: dict[str, Any]) -> None:
        if event["type"] == "session_started":
            self._is_in_turn = True
            if event["session_id"] == self.progress.session_id:
                return
        if event["type"] == "warning" and self._has_warned(event):
            return
        self.progress.note(event, time.monotonic())
        self._listen(event)
        match event:
            case {"type": "api_retry", "http_status": status, "error": name} if status in FATAL_STATUSES:
                self.must_end_now = True
                self.fail(failure(Category.AUTHENTICATION, self.seen(), http_status=status, api_error=name))
            case {"type": "rate_limit", "status": "rejected", "resets_at": int(resets_at)}:
                self._resets_at = resets_at

    def _has_warned(self, event: dict[str, Any]) -> bool:
        """The CLI tells of its start again with each turn."""
        return Notice(code=event["code"], message=event["message"]) in self.progress.notices

    def _follow_tasks(self, message: Any) -> None:
        change = task_change_of(message)
        if change is None:
            return
        task, description = change
        if description is not None:
            self.live_tasks[task] = description
        else:
            self.live_tasks.pop(task, None)
            self._is_turn_owed |= causes_a_turn(message)

    def _end_turn(self, turn: TurnEnd) -> None:
        self._is_in_turn = False
        self._count(self._usage.ended(turn))
        if self.turn is not None and self.prompt_id not in turn.answers:
            self._is_turn_owed = False
            if turn.is_error:
                self.warn("late_failure", f"after the session had succeeded, a turn ended with {turn.subtype}")
            return
        if turn.answers and self.prompt_id not in turn.answers:
            return
        self.response = self._answer.text(turn.text if not turn.is_error else None)
        verdict = judge(turn, self.seen())
        if verdict.error is not None:
            self.fail(verdict.error)
            return
        for notice in verdict.notices:
            self.warn(notice.code, notice.message)
        self.turn = turn
        self._note_denials(turn)

    def _note_denials(self, turn: TurnEnd) -> None:
        known = {denial.tool_use_id for denial in self.progress.denials}
        for tool_name, tool_use_id in turn.denials:
            if tool_use_id not in known:
                self.progress.denials.append(Denial(tool_name=tool_name, tool_use_id=tool_use_id))

    def _count(self, total: Usage) -> None:
        if total != self.progress.usage:
            self._hear({"type": "usage", **total.model_dump()})


class _Answer:
    """The text blocks of the model's last message that had any."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._blocks: list[str] = []

    def add(self, message: Any) -> None:
        texts = texts_of(message)
        if texts and message.message_id != self._message_id:
            self._message_id = message.message_id
            self._blocks.clear()
        self._blocks += texts

    def text(self, told: str | None) -> str:
        """The answer, given the one the CLI tells: it tells only the last block of a message in several."""
        said = "".join(self._blocks)
        return said if not told or said.endswith(told) else told


class _Usages:
    """Tokens and cost of the turns that ended, and tokens of the messages of the one under way.

    `carried_cost_usd` is what the conversation had cost before.
    """

    def __init__(self, carried_cost_usd: float) -> None:
        self.cost_usd: float | None = None
        self.num_turns = 0
        self.last_turn: TurnEnd | None = None
        self._carried_cost_usd = carried_cost_usd
        self._ended = Usage()
        self._messages: dict[str | None, Usage] = {}

    def seen(self, message_id: str | None, counts: dict[str, int]) -> Usage:
        self._messages[message_id] = Usage(**counts)
        return self.total

    def ended(self, turn: TurnEnd) -> Usage:
        told = Usage(**turn.usage)
        self._ended += told if told != Usage() else self._under_way  # a turn that the budget ended tells none
        self._messages.clear()
        self.num_turns += turn.num_turns
        if turn.cost_usd is not None:
            self.cost_usd = own_cost(turn.cost_usd, self._carried_cost_usd)
        self.last_turn = turn
        return self.total

    @property
    def total(self) -> Usage:
        return self._ended + self._under_way

    @property
    def _under_way(self) -> Usage:
        return sum(self._messages.values(), Usage())
