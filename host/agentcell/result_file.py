"""The file a request may name for its result."""

from functools import partial

import anyio

from agentcell_protocol.codec import encode
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult
from agentcell_protocol.result_file import put_result


async def write_result_file(request: SessionRequest, result: SessionResult) -> SessionResult:
    """Put the result where the request wants it; the result, with a warning when that could not be done.

    The worker has written its own result there before; this one is complete, and there too when the worker died.
    """
    if request.result_file is None:
        return result
    put = partial(put_result, encode(result.to_message()), request.result_file)
    with anyio.CancelScope(shield=True):
        notice = await anyio.to_thread.run_sync(put)
    if notice is None:
        return result
    return result.model_copy(update={"warnings": [*result.warnings, notice]})
