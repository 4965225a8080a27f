"""Where lines are taken: each is a run, a word about one, or refused."""

from collections.abc import Callable
from typing import Any

from agentcell.limits import Limits
from agentcell.orders import Order
from agentcell.outlet import Outlet
from agentcell.serve.runs import MAX_WAITING, MAX_WAITING_BYTES, Runs
from agentcell.serve.voice import Voice
from agentcell.stop import CANCEL_LINE
from agentcell_protocol.errors import RequestError
from agentcell_protocol.framing import Overlong
from agentcell_protocol.intake import decode_request
from agentcell_protocol.refusals import shown
from agentcell_protocol.serving import CancelLine, RunLine, ShutdownLine, parse_line, refusal


class Desk:
    """Takes lines, and answers those that nothing comes of. `make` has what all orders have in common."""

    def __init__(self, runs: Runs, outlet: Outlet, make: Callable[..., Order]) -> None:
        self._runs = runs
        self._outlet = outlet
        self._make = make

    def take(self, line: bytes | Overlong, *, has_ended: bool = False) -> None:
        """Do what the line says, or say why not; `has_ended` as for `decode_request`."""
        message: dict[str, Any] = {}
        size = 0 if isinstance(line, Overlong) else len(line)
        try:
            message = decode_request(line, has_ended=has_ended)
            match parse_line(message):
                case RunLine() as run:
                    self._run(run, size)
                case CancelLine(id=run_id):
                    self._cancel(run_id)
                case ShutdownLine():
                    self._runs.close()
        except RequestError as mistake:
            self._outlet.put(refusal(mistake, message))

    def warn_of_unfinished_line(self) -> None:
        """Say what is missing to who waits for an answer to it."""
        self._warn(
            "unfinished_line", "stdin has part of a line and no line end: end each line with a line feed, and flush"
        )

    def _run(self, line: RunLine, size: int) -> None:
        self._check(line.id, size)
        limits = Limits.from_mapping(line.limits)
        voice = Voice(line.id, self._outlet)
        on_event = None if line.request.events == "none" else voice.tell
        self._runs.add(self._make(line.request, limits=limits, on_event=on_event, tag=voice), size)

    def _check(self, run_id: str, size: int) -> None:
        if self._runs.is_closed:
            raise RequestError("type", "no run is begun after a shutdown", "start another agentcell serve for it")
        if run_id in self._runs:
            reason = f"{shown(run_id)} is the id of a run that has no result yet"
            raise RequestError("id", reason, "give each run an id of its own")
        if self._runs.is_full:
            raise RequestError("type", f"{MAX_WAITING} runs are waiting already", "send it when there are results")
        if not self._runs.has_room(size):
            reason = f"with this line those of the runs that wait would have more than {MAX_WAITING_BYTES} bytes"
            raise RequestError("type", reason, "send it when there are results, or put large inputs into files")

    def _cancel(self, run_id: str) -> None:
        if run_id in self._runs:
            self._runs.cancel(run_id, CANCEL_LINE)
        else:
            self._warn("unknown_run", "there is no run with this id, or it has its result already", id=run_id)

    def _warn(self, code: str, message: str, **about: str) -> None:
        self._outlet.put({"type": "warning", **about, "code": code, "message": message})
