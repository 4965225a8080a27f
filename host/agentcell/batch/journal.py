"""The lines of a journal: what happened to a batch, in order. Pure; `at` is in Unix seconds."""

from collections.abc import Collection, Mapping
from typing import Any

from agentcell.attempts import Mode, Tried
from agentcell_protocol.version import PROTOCOL, __version__

Message = dict[str, Any]

FINISHED = "finished"
"""The reason of `closed` when every row has its result."""


def opened(at: float, *, host_pid: int, boot_id: str, config: Mapping[str, Any]) -> Message:
    """A host has begun, or goes on."""
    versions = {"agentcell": __version__, "protocol": PROTOCOL}
    return {"at": at, "event": "opened", "host_pid": host_pid, "boot_id": boot_id, **versions, "config": dict(config)}


def started(
    at: float,
    *,
    id: str,  # noqa: A002 - it is what it is called everywhere
    digest: str,
    line: int,
    attempt: int,
    mode: Mode,
    session_id: str | None,
    marker: str,
    host_pid: int,
    boot_id: str,
) -> Message:
    """An attempt is about to be started: on the disk before there is a process."""
    return {
        "at": at,
        "event": "started",
        "id": id,
        "digest": digest,
        "line": line,
        "attempt": attempt,
        "mode": mode,
        "session_id": session_id,
        "marker": marker,
        "host_pid": host_pid,
        "boot_id": boot_id,
    }


def ended(at: float, *, id: str, tried: Tried, retry_at: float | None = None) -> Message:  # noqa: A002
    """An attempt has ended, and nothing of it is left. What it said is in its folder only."""
    attempt = tried.attempt.model_dump(exclude={"number": True, "error": {"partial_response"}})
    return {
        "at": at,
        "event": "ended",
        "id": id,
        "attempt": tried.attempt.number,
        **attempt,
        "tool_calls": tried.tool_calls,
        "has_transcript": tried.has_transcript,
        "counted": tried.is_counted,
        "retry_at": retry_at,
    }


def paused(at: float, *, reason: str, until: float | None = None) -> Message:
    """Nothing is started until then, or until somebody goes on."""
    return {"at": at, "event": "paused", "reason": reason, "until": until}


def resumed(at: float) -> Message:
    """Rows are started again."""
    return {"at": at, "event": "resumed"}


def reopened(at: float, *, ids: Collection[str]) -> Message:
    """These rows are to run again as if they had not been tried: their results are about to be dropped."""
    return {"at": at, "event": "reopened", "ids": sorted(ids)}


def left(at: float, *, markers: Collection[str]) -> Message:
    """Of these cells, and no others, nobody saw the end: something of them may be left on other machines."""
    return {"at": at, "event": "left", "markers": sorted(markers)}


def closed(at: float, *, reason: str) -> Message:
    """The host has ended by itself."""
    return {"at": at, "event": "closed", "reason": reason}
