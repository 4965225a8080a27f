"""What a caller of the host can get wrong. How a session ends is never an exception: it is a `SessionResult`.

ValueError
├── RequestError        the request is not one the protocol knows (agentcell_protocol)
└── (ValueError)        a limit that makes no sense, named
RuntimeError
├── HostClosedError     a `Host` is used outside its `async with`, or was left while there was more to run
├── HostOpenError       a `Host` is entered again while it is open
├── CallbackCancelledError `on_event` raised a cancellation, and nobody had cancelled it
├── SourceCancelledError what gives the requests raised a cancellation, and nobody had cancelled it
├── ExecutorError       an executor cannot be opened
├── RunDirectoryError   a directory cannot be a batch's run directory
│   └── BusyError       another batch has it
└── RunningLoopError    `run_session_sync` is called where a loop runs already
"""

import time
from pathlib import Path

from agentcell_protocol.errors import Category, RequestError, SessionError


class HostClosedError(RuntimeError):
    """A `Host` runs sessions only inside its `async with` block."""

    def __init__(self) -> None:
        super().__init__("this host is closed: use it inside `async with Host() as host:`")


class HostOpenError(RuntimeError):
    """A `Host` is entered once at a time."""

    def __init__(self) -> None:
        super().__init__("this host is open already: share it, or make another Host()")


class CallbackCancelledError(RuntimeError):
    """`on_event` raised the event loop's cancellation exception: something it waited for was cancelled."""

    def __init__(self) -> None:
        super().__init__("on_event did not take an event: something that it waited for was cancelled")


class SourceCancelledError(RuntimeError):
    """The requests' source raised the event loop's cancellation exception: something it waited for was cancelled."""

    def __init__(self) -> None:
        super().__init__("the requests end here: something that their source waited for was cancelled")


class ExecutorError(RuntimeError):
    """An executor that cannot be opened: the `reason`, and what to do as `remedy`."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}")


class RunDirectoryError(RuntimeError):
    """A directory that a batch cannot use: `path`, the `reason`, and what to do as `remedy`."""

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        self.path = path
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{path}: {reason}; {remedy}")


class BusyError(RunDirectoryError):
    """A run directory that another batch has: process `pid`, `since` then (Unix seconds), where that is known."""

    def __init__(self, path: Path, pid: int | None, since: float | None) -> None:
        self.pid = pid
        self.since = since
        reason = "another batch has it"
        if pid is not None and since is not None:
            reason = f"process {pid} has it, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(since))}"
        super().__init__(path, reason, "wait for that batch, stop it with agentcell stop, or name another directory")


class RunningLoopError(RuntimeError):
    """`run_session_sync` starts an event loop of its own and cannot do so inside another."""

    def __init__(self) -> None:
        super().__init__("run_session_sync() cannot be called from a running event loop: await run_session() instead")


def request_error(error: SessionError | None) -> RequestError | None:
    """The exception that a `bad_request` found inside the cell stands for; None for every other ending."""
    if error is None or error.category is not Category.BAD_REQUEST:
        return None
    return RequestError.from_session_error(error)
