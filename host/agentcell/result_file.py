"""The file a request may name for its result."""

from functools import partial
from pathlib import Path

import anyio
from pydantic import ValidationError

from agentcell.attempt import fit
from agentcell.reap import in_thread
from agentcell_protocol.codec import decode, encode
from agentcell_protocol.errors import WireError
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult
from agentcell_protocol.result_file import put_result


async def write_result_file(request: SessionRequest, result: SessionResult) -> SessionResult:
    """As `put_into`, for the file that the request names, if it names one.

    The worker has written its own result there before; this one is complete, and there too when the worker died.
    """
    if request.result_file is not None:
        with anyio.CancelScope(shield=True):
            result = await in_thread(partial(put_into, request.result_file, result))
    return result


def put_into(file: str, result: SessionResult) -> SessionResult:
    """Put the result into the file; the result, with a warning when that could not be done. Blocks."""
    notice = put_result(encode(result.to_message()), file)
    return result if notice is None else fit(result.noting(notice))


def read_result_file(file: Path) -> SessionResult | None:
    """The result in the file; None if there is none that can be read. Blocks."""
    try:
        return SessionResult.model_validate(decode(file.read_bytes()))
    except (OSError, WireError, ValidationError):
        return None
