"""The file a request may name for its result."""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio

from agentcell_protocol.codec import encode
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Notice, SessionResult


async def write_result_file(request: SessionRequest, result: SessionResult) -> SessionResult:
    """Put the result where the request wants it; the result, with a warning when that could not be done.

    The worker has written its own result there before; this one is complete, and there too when the worker died.
    """
    if request.result_file is None:
        return result
    write = partial(replace_file, Path(request.result_file), encode(result.to_message()))
    try:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(write)
    except OSError as problem:
        notice = Notice(code="result_file", message=f"{request.result_file} could not be written: {problem.strerror}")
        return result.model_copy(update={"warnings": [*result.warnings, notice]})
    return result


def replace_file(path: Path, content: bytes) -> None:
    """Write the file whole, by rename: a reader sees the old content or the new. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
