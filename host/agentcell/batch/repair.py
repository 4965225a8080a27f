"""Files of JSON lines whose writer may have died: what is whole is read, what is not is set aside."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from agentcell.transcripts import PRIVATE_FILE

Accept = Callable[[int, dict[str, Any]], bool]
"""Gets the message of each line in order, and its offset after the repair; says whether it makes sense there."""

BUFFER_BYTES = 1024 * 1024
"""Read at a time: a thousand results, or one that is long."""


class Line(NamedTuple):
    """A line as it stands in its file; `message` is None where it is no object of JSON."""

    number: int
    offset: int
    content: bytes
    message: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Repair:
    """What was set aside: the lines of `path` with these numbers are in the file `aside` now."""

    path: Path
    aside: Path
    lines: tuple[int, ...]

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.lines))
        return f"{self.path.name}: not whole, and moved to {self.aside.name}: line {numbers}"


def scan(file: BinaryIO) -> Iterator[Line]:
    """The lines of a file that are not blank. Blocks."""
    offset = 0
    for number, content in enumerate(file, 1):
        if not content.isspace():
            yield Line(number, offset, content, _message(content))
        offset += len(content)


def read_whole(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The messages of a file that may be written to meanwhile, with their offsets; it is left as it is. Blocks."""
    with suppress(FileNotFoundError), path.open("rb", BUFFER_BYTES) as file:
        offset = 0
        for content in file:
            if (message := _message(content)) is not None:
                yield offset, message
            offset += len(content)


def repaired(path: Path, accept: Accept) -> Repair | None:
    """Leave only whole lines in the file, each of which was accepted; what else was there is set aside. Blocks.

    An object that only lacks its line end is whole. Raises OSError; then the file is as it was.
    """
    with path.open("rb", BUFFER_BYTES) as file:
        broken, offset, taken, last = list[Line](), 0, 0, b"\n"
        for number, content in enumerate(file, 1):
            message = _message(content)
            if message is not None and accept(offset - taken, message):
                last = content
            elif not content.isspace():
                broken.append(Line(number, offset, content, message))
                taken += len(content)
            offset += len(content)
    repair = _set_aside(path, broken, offset) if broken else None
    if not last.endswith(b"\n"):
        _change(path, lambda fd: os.write(fd, b"\n"))
    return repair


def put_whole(path: Path, chunks: Iterator[bytes]) -> None:
    """Give the file another content by rename: a reader sees the old or the new, whenever power is lost. Blocks."""
    draft = path.with_name(f".{path.name}.new")
    with suppress(FileNotFoundError):
        draft.unlink()
    try:
        with open(draft, "xb", opener=_private) as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Have the names in the directory outlast a loss of power. Blocks."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _message(content: bytes) -> dict[str, Any] | None:
    try:
        message = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return message if isinstance(message, dict) else None


def _set_aside(path: Path, broken: list[Line], size: int) -> Repair:
    aside = _unused(path)
    put_whole(aside, (line.content for line in broken))
    first, length = broken[0].offset, sum(len(line.content) for line in broken)
    if first + length == size:  # the tail, which needs no room on a full disk
        _change(path, lambda fd: os.ftruncate(fd, first))
    else:
        put_whole(path, _without(path, {line.number for line in broken}))
    return Repair(path, aside, tuple(line.number for line in broken))


def _unused(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.torn-{number}")).exists():
        number += 1
    return aside


def _without(path: Path, numbers: set[int]) -> Iterator[bytes]:
    with path.open("rb", BUFFER_BYTES) as file:
        for number, content in enumerate(file, 1):
            if number not in numbers:
                yield content


def _change(path: Path, change: Callable[[int], object]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        change(fd)
        os.fsync(fd)
    finally:
        os.close(fd)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)
