"""How a batch ended: its exit code, and what is said of the rows that are left. Pure."""

from dataclasses import dataclass, replace

from agentcell.batch.admission import Closing
from agentcell.batch.phrases import GO_ON, pending
from agentcell.batch.tally import Snapshot
from agentcell_protocol.exitcodes import CANCEL_SIGNALS, ERROR, OK, PAUSED, SIGNALLED

GO_ON_CAPPED = "run the command again with another cap to go on"


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """How a batch ended. `reason` is a sentence about why rows are left, and how to go on; None when none are."""

    exit_code: int
    snapshot: Snapshot
    reason: str | None = None


def finished(snapshot: Snapshot, changed: str | None = None) -> BatchEnd:
    """The end of a batch that has dealt with every row; `changed` is what is said of those that were."""
    is_well = snapshot.failed == 0 and changed is None
    return BatchEnd(OK if is_well else ERROR, replace(snapshot, paused=None), changed)


def closed(snapshot: Snapshot, closing: Closing, changed: str | None = None, *, signal: str | None = None) -> BatchEnd:
    """The end of a batch that has rows left, by the `signal` when somebody interrupted it."""
    left = "the rows that are left are pending" if snapshot.total is None else pending(snapshot)
    how = GO_ON_CAPPED if closing.kind == "cap" else GO_ON
    reason = closing.sentence if left is None else f"{closing.sentence}. {left.capitalize()}: {how}"
    reasons = [part for part in (reason, changed) if part]
    return BatchEnd(_code(closing, signal), replace(snapshot, paused=closing.sentence), "; ".join(reasons))


def _code(closing: Closing, signal: str | None) -> int:
    match closing.kind:
        case "interrupted":
            return SIGNALLED + CANCEL_SIGNALS.get(signal or "", CANCEL_SIGNALS["SIGTERM"])
        case "aborted":
            return ERROR
    return PAUSED
