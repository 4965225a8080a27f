"""The life of a worker: claim the streams, read one request, run one session, write one result, exit."""

import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from agentcell_protocol import cell
from agentcell_protocol.credentials import auth_notices, auth_source
from agentcell_protocol.errors import Category, RequestError, SessionError, internal_error, session_error
from agentcell_protocol.exitcodes import exit_code
from agentcell_protocol.intake import read_message
from agentcell_protocol.masking import Mask
from agentcell_protocol.request import SessionRequest, parse_request, with_session_id
from agentcell_protocol.result import SECONDS_DIGITS, SessionResult, failed, names_in
from agentcell_protocol.sdk import bundled_cli, sdk_version
from agentcell_protocol.version import PROTOCOL, __version__
from agentcell_worker import lifeline, stdio
from agentcell_worker.agents.job import Job
from agentcell_worker.emit import Emitter
from agentcell_worker.preflight import check_permissions, check_request, find_agent
from agentcell_worker.progress import Progress
from agentcell_worker.report import Report
from agentcell_worker.sdk_log import mute_sdk
from agentcell_worker.signals import Cancellation, Stopped

RECURSION_LIMIT = 10_000
"""The SDK decodes with `json`, whose depth this limits: a tool's input may be nested a thousand levels deep."""


def main(cancellation: Cancellation | None = None, *, start: cell.Start = "cold") -> int:
    """Run one session, from the request on stdin to the result on stdout; the exit code."""
    wire = stdio.claim()
    cancellation = cancellation or _installed()
    life = _Life(wire, cancellation, start)
    result = life.run()
    cancellation.settle()
    written = life.emitter.result(result, file=life.request.result_file if life.request else None)
    return exit_code(written.error)


def _installed() -> Cancellation:
    cancellation = Cancellation()
    cancellation.install()
    return cancellation


class _Life:
    """What a worker knows so far, so that whatever ends it ends with a result that says it."""

    def __init__(self, wire: stdio.Wire, cancellation: Cancellation, start: cell.Start) -> None:
        self.emitter = Emitter(wire.writes)
        self.request: SessionRequest | None = None
        self._wire = wire
        self._cancellation = cancellation
        self._start = start
        self._names: dict[str, str] = {}
        self._report: Report | None = None
        self._progress = Progress()
        self._drain_seconds = _drain_seconds(os.environ.pop(cell.DRAIN_VARIABLE, None))

    def run(self) -> SessionResult:
        """The session's result, whatever happens."""
        sys.setrecursionlimit(RECURSION_LIMIT)
        mute_sdk()
        cell.become_subreaper()
        try:
            self._cancellation.interrupt()
            result = self._session()
        except RequestError as refused:
            result = self._ended(refused.as_session_error())
        except Stopped:
            result = self._ended(self._cancelled())
        except Exception as unexpected:  # noqa: BLE001 - the outermost frame of the worker
            self._cancellation.settle()
            sys.excepthook(type(unexpected), unexpected, unexpected.__traceback__)
            result = self._ended(internal_error(unexpected))
        self._cancellation.settle()
        return self._swept(result)

    def _session(self) -> SessionResult:
        received = read_message(self._wire.reads)
        self._names = names_in(received.message)
        request = self.request = with_session_id(parse_request(received.message))
        environment = {**os.environ, **(request.env or {})}
        notices = (*auth_notices(environment), *received.notices)
        report = self._report = Report(request, auth_source(environment), notices, Mask(environment))
        agent, oddities = find_agent(request)
        report = self._report = replace(report, notices=(*notices, *oddities))
        check_request(request, agent)
        self.emitter = Emitter(self._wire.writes, request.events)
        self.emitter.event(_hello(request, self._start))
        if (refused := check_permissions(request, agent, environment)) is not None:
            return report.failed(refused)
        flow = agent.load()
        self._cancellation.check()
        return anyio.run(self._guarded, partial(flow, Job(agent, report, self._listen, self._drain_seconds)))

    async def _guarded(self, flow: Callable[[], Awaitable[SessionResult]]) -> SessionResult:
        """Run the flow until it ends, a signal comes, or the host is gone."""
        result: SessionResult | None = None
        async with anyio.create_task_group() as tasks:
            with self._cancellation.cancelling(tasks.cancel_scope):
                if self.request is not None and self.request.lifeline:
                    tasks.start_soon(self._watch_host, tasks.cancel_scope)
                result = await flow()
            tasks.cancel_scope.cancel()
        if result is not None:
            return result
        return self._ended(self._cancelled() if self._cancellation.signal else self._host_lost())

    async def _watch_host(self, scope: anyio.CancelScope) -> None:
        if self._wire.reads is not None:
            # a fork's parent is the server, which may be lost; it watches the host itself
            await lifeline.wait_for_end(self._wire.reads, parent=None if self._start == "fork" else os.getppid())
            scope.cancel()

    def _listen(self, event: dict[str, Any]) -> None:
        if event["type"] == "warning" and self._report is not None:
            event = {**event, "message": self._report.mask(event["message"])}
        self._progress.note(event, time.monotonic())
        self.emitter.event(event)

    def _ended(self, error: SessionError) -> SessionResult:
        if self._report is None:
            return failed(error, **self._names)
        return self._report.cut(error, self._progress)

    def _cancelled(self) -> SessionError:
        return session_error(
            Category.CANCELLED,
            f"the session was cancelled by {self._cancellation.signal}",
            partial_response=self._progress.text or None,
            signal=self._cancellation.signal,
        )

    def _host_lost(self) -> SessionError:
        return session_error(Category.HOST_LOST, "the host is gone", partial_response=self._progress.text or None)

    def _swept(self, result: SessionResult) -> SessionResult:
        """End what the session left running, and say how much that was."""
        began = time.monotonic()
        swept = cell.end_descendants()
        sweeping = time.monotonic() - began
        return result.model_copy(
            update={
                "swept_processes": swept,
                "execution_time": round(result.execution_time + sweeping, SECONDS_DIGITS),
                "working_time": round(result.working_time + sweeping, SECONDS_DIGITS),
            }
        )


def _hello(request: SessionRequest, start: cell.Start) -> dict[str, Any]:
    bundled = bundled_cli()
    return {
        "type": "hello",
        "protocol": PROTOCOL,
        "pid": os.getpid(),
        "agentcell": __version__,
        "sdk": sdk_version(),
        "cli": request.cli_path or (bundled and str(bundled)),
        "start": start,
    }


def _drain_seconds(given: str | None) -> float:
    try:
        return max(0.0, float(given)) if given else cell.DRAIN_SECONDS
    except ValueError:
        return cell.DRAIN_SECONDS
