"""The first line on a cell's stdin, which is the request."""

from typing import Any

from agentcell_protocol.codec import decode
from agentcell_protocol.errors import RequestError, WireError
from agentcell_protocol.framing import Overlong


def decode_request(line: bytes | Overlong | None) -> dict[str, Any]:
    """The object of a request line, for `parse_request`; None is a stdin that ended without a line.

    Raises RequestError, whose remedy says how a line is to be sent.
    """
    if line is None:
        raise RequestError(None, "stdin ended without a line", "send the request as one line of JSON on stdin")
    if isinstance(line, Overlong):
        raise RequestError(None, str(line), "put large inputs into files and name them in the message")
    try:
        return decode(line)
    except WireError as invalid:
        raise RequestError(None, str(invalid), _remedy(line, invalid)) from None


def _remedy(line: bytes, invalid: WireError) -> str:
    if invalid.is_cut and b"{" in line[:4]:
        return "a request is one line: write the whole object without line breaks"
    return "send one JSON object on one line"
