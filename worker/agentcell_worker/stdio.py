"""The worker's standard streams: the protocol on private descriptors, everybody else's elsewhere."""

import os
from dataclasses import dataclass

INPUT, OUTPUT, ERROR = 0, 1, 2


@dataclass(frozen=True)
class Wire:
    """The protocol's own descriptors, which no child inherits. `reads` is None when there was no stdin."""

    reads: int | None
    writes: int


def claim() -> Wire:
    """Take stdin and stdout for the protocol; from then on fd 0 is /dev/null and fd 1 is stderr."""
    has_input = _is_open(INPUT)
    for fd in (INPUT, OUTPUT, ERROR):  # a closed one would be given to the next file that is opened
        if not _is_open(fd):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    wire = Wire(reads=os.dup(INPUT) if has_input else None, writes=os.dup(OUTPUT))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, INPUT)
    os.close(null)
    os.dup2(ERROR, OUTPUT)
    return wire


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
