"""Writing to a descriptor, past the buffers that the interpreter locks."""

import os


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it. Blocks. Raises OSError; then some of it may be written."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
