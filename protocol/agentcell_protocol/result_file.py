"""The file a request may name for its result: whole or not there, whichever side writes it."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from agentcell_protocol.result import Notice


def put_result(line: bytes, file: str) -> Notice | None:
    """Put the line into the file by rename, so that a reader sees the old content or the new.

    What went wrong, if something did; then the file is as it was. Blocks.
    """
    if is_occupied(file):
        message = f"the result was not put into {file}: it is no ordinary file; name one, which need not exist"
        return Notice(code="result_file", message=message)
    path = Path(file)
    draft = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        draft.write_bytes(line)
        draft.replace(path)
    except OSError as problem:
        with suppress(OSError):
            draft.unlink()
        message = f"the result could not be put into {file}: {problem.strerror}"
        return Notice(code="result_file", message=message)
    return None


def is_occupied(file: str) -> bool:
    """Whether something is there that is no file, nor a link to one: a rename would destroy a pipe or a device."""
    return os.path.exists(file) and not os.path.isfile(file)  # noqa: PTH110, PTH113 - pathlib raises for an overlong name
