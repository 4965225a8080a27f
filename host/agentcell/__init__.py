"""Run Claude agent sessions in cells: one isolated worker process per session, one truthful result each."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentcell.environment import cell_environment
    from agentcell.errors import ExecutorError, HostClosedError, HostOpenError, RunningLoopError
    from agentcell.executors.executor import Executor
    from agentcell.host import Host
    from agentcell.isolated import run_agent_session_isolated
    from agentcell.limits import Limits
    from agentcell.run import run_session, run_session_sync
    from agentcell_protocol.errors import Category, RequestError, SessionError
    from agentcell_protocol.request import SessionRequest
    from agentcell_protocol.result import SessionResult, Usage
    from agentcell_protocol.version import __version__

_HOMES = {
    "Category": "agentcell_protocol.errors",
    "Executor": "agentcell.executors.executor",
    "ExecutorError": "agentcell.errors",
    "Host": "agentcell.host",
    "HostClosedError": "agentcell.errors",
    "HostOpenError": "agentcell.errors",
    "Limits": "agentcell.limits",
    "RequestError": "agentcell_protocol.errors",
    "RunningLoopError": "agentcell.errors",
    "SessionError": "agentcell_protocol.errors",
    "SessionRequest": "agentcell_protocol.request",
    "SessionResult": "agentcell_protocol.result",
    "Usage": "agentcell_protocol.result",
    "__version__": "agentcell_protocol.version",
    "cell_environment": "agentcell.environment",
    "run_agent_session_isolated": "agentcell.isolated",
    "run_session": "agentcell.run",
    "run_session_sync": "agentcell.run",
}
"""Where each public name is defined; it is loaded when it is first asked for."""

__all__ = [
    "Category",
    "Executor",
    "ExecutorError",
    "Host",
    "HostClosedError",
    "HostOpenError",
    "Limits",
    "RequestError",
    "RunningLoopError",
    "SessionError",
    "SessionRequest",
    "SessionResult",
    "Usage",
    "__version__",
    "cell_environment",
    "run_agent_session_isolated",
    "run_session",
    "run_session_sync",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
