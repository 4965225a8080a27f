"""A result on one line: what is too long for it becomes an error that says so, with a part of the text."""

from agentcell_protocol.codec import encode_noting
from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.framing import LINE_LIMIT
from agentcell_protocol.result import Notice, SessionResult
from agentcell_protocol.text import PARTIAL_CHARACTERS


def fitting(result: SessionResult, *, hosted: bool) -> tuple[SessionResult, bytes]:
    """The result as it has room on a line, and the line; `hosted` with what only a host knows."""
    line, has_cut = encode_noting(result.to_message(hosted=hosted))
    if has_cut:
        result = result.noting(Notice(code="nesting_cut", message="the result was nested too deep and has been cut"))
        line, _ = encode_noting(result.to_message(hosted=hosted))
    if len(line) > LINE_LIMIT:
        result = _bounded(result, len(line))
        line, _ = encode_noting(result.to_message(hosted=hosted))
    return result, line


def _bounded(result: SessionResult, size: int) -> SessionResult:
    said = result.response if result.error is None else result.error.partial_response or ""
    error = session_error(
        Category.PROTOCOL,
        f"the result is {size} bytes long, over the limit of {LINE_LIMIT} for a line",
        hint="have the agent write large answers to a file",
        partial_response=said[:PARTIAL_CHARACTERS],
        bytes=size,
        limit=LINE_LIMIT,
    )
    bare = result.model_copy(update={"flow": None, "structured_output": None, "permission_denials": []})
    return bare.as_error(error)
