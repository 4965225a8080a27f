"""What `agentcell run` prints, and where: for a terminal, for a pipe, for a program."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Protocol

from agentcell.commands.output import tell, write
from agentcell.terminal import closing_line, error_lines, event_line, flow_lines, warning_lines, without_escapes
from agentcell_protocol.codec import encode
from agentcell_protocol.events import Detail
from agentcell_protocol.result import SessionResult


class View(Protocol):
    """One way to show a session."""

    @property
    def detail(self) -> Detail:
        """The events it wants."""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show what happens."""

    def close(self, result: SessionResult) -> None:
        """Show how it ended; raises OSError when that cannot be written."""


@dataclass
class QuietView:
    """Nothing on stdout before the end; what happens meanwhile on stderr, if that is asked for."""

    verbose: bool

    @property
    def detail(self) -> Detail:
        """What is told on stderr."""
        return "summary" if self.verbose else "none"

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Tell it on stderr."""
        tell(event_line(event))


class JsonView(QuietView):
    """One line of JSON: the result."""

    def close(self, result: SessionResult) -> None:
        """Print the result."""
        write(encode(result.to_message()))


class PipeView(QuietView):
    """Only the answer; what a flow made, and what went wrong, on stderr."""

    def close(self, result: SessionResult) -> None:
        """Print the answer, or tell the error."""
        tell(*flow_lines(result.flow))
        if self.verbose:
            tell(*warning_lines(result), closing_line(result))
        if result.error is not None:
            tell(*error_lines(result.error))
        elif answer := result.response.encode("utf-8", "replace"):
            write(answer if answer.endswith(b"\n") else answer + b"\n")


@dataclass
class TerminalView:
    """The text as it streams, tools as short lines, and a closing line."""

    verbose: bool
    _is_streaming: bool = False
    _is_at_line_start: bool = True

    @property
    def detail(self) -> Detail:
        """All there is: text is shown as it streams."""
        return "full"

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show it at once; a terminal that went away is no reason to end the session."""
        with suppress(OSError):
            self._show(event)

    def close(self, result: SessionResult) -> None:
        """Tell what a flow made, the error if there is one, and the closing line."""
        self._end_line()
        if self.verbose:
            tell(*warning_lines(result))
        tell(*flow_lines(result.flow))
        if result.error is not None:
            tell(*error_lines(result.error))
        tell(closing_line(result))

    def _show(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"type": "text_delta", "text": text}:
                self._is_streaming = True
                self._print(text)
            case {"type": "text", "text": text}:
                if not self._is_streaming:
                    self._print(text)
                self._is_streaming = False
                self._end_line()
            case {"type": "tool_use"}:
                self._end_line()
                write(_encoded(f"{event_line(event)}\n"))
            case {"type": "api_retry" | "permission_denied" | "check"}:
                self._tell_between(event)
            case _ if self.verbose:
                self._tell_between(event)

    def _print(self, text: str) -> None:
        if shown := without_escapes(text):
            write(_encoded(shown))
            self._is_at_line_start = shown.endswith("\n")

    def _end_line(self) -> None:
        if not self._is_at_line_start:
            write(b"\n")
            self._is_at_line_start = True

    def _tell_between(self, event: Mapping[str, Any]) -> None:
        if line := event_line(event):
            self._end_line()
            tell(line)


def view_for(stdout: IO[str] | None, *, as_json: bool, verbose: bool) -> View:
    """The view for where stdout goes (None: nowhere)."""
    if as_json:
        return JsonView(verbose)
    if stdout is not None and stdout.isatty():
        return TerminalView(verbose)
    return PipeView(verbose)


def _encoded(text: str) -> bytes:
    return text.encode(sys.stdout.encoding, "replace")
