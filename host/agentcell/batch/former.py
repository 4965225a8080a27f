"""What former runs of a run directory have spent: caps and counts are those of the whole batch."""

from collections.abc import Iterator

from pydantic import ValidationError

from agentcell.batch.directory import RESULTS, RunDirectory
from agentcell.batch.repair import read_whole
from agentcell.batch.tally import Tally
from agentcell_protocol.result import Attempt


def count_former(run: RunDirectory, tally: Tally) -> None:
    """Add every attempt that was made before to the tally. Blocks."""
    for attempt in _former(run):
        tally.spent(attempt.usage, attempt.cost_usd)


def _former(run: RunDirectory) -> Iterator[Attempt]:
    for _, message in read_whole(run.path / RESULTS):
        try:
            yield from [Attempt.model_validate(attempt) for attempt in message.get("attempts") or []]
        except (ValidationError, TypeError):
            continue
    for id_ in run.history.pending():
        if (history := run.history.of(id_)) is not None:
            yield from history.attempts
