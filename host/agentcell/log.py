"""A copy of a stream in a file: without secrets, and up to a size."""

import os
from collections.abc import Callable
from pathlib import Path

from agentcell.writing import write_all
from agentcell_protocol.result import Notice

MOST_BYTES = 16 * 1024 * 1024
"""In the file: a cell that writes without end must not fill the disk."""

LINE_BYTES = 64 * 1024
"""Of a line that waits for its end; what is longer is masked in pieces, and a secret across two of them is not seen."""

FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

MODE = 0o600


class Log:
    """Appends what is added to `file`, masked, until it has `most` bytes; without a file it does nothing.

    To be closed. `notices` say what could not be kept: that ends no session. Blocks no longer than a disk's cache does.
    """

    def __init__(self, file: Path | None, mask: Callable[[str], str] = str, most: int = MOST_BYTES) -> None:
        self.notices: list[Notice] = []
        self._file = file
        self._mask = mask
        self._most = most
        self._fd = -1
        self._room = 0
        self._line = b""
        if file is not None:
            self._open(file)

    def add(self, chunk: bytes) -> None:
        """Take more of the stream; the end of its last line may still come."""
        if self._fd >= 0:
            said = self._line + chunk
            end = said.rfind(b"\n") + 1
            if len(said) - end > LINE_BYTES:
                end = len(said)
            self._line = said[end:]
            self._write(said[:end])

    def close(self) -> None:
        """Write what is left and give the file back."""
        self._write(self._line)
        self._line = b""
        self._release()

    def _open(self, file: Path) -> None:
        try:
            self._fd = os.open(file, FLAGS, MODE)
            self._room = self._most - os.fstat(self._fd).st_size
        except OSError as problem:
            self._give_up(problem)

    def _write(self, data: bytes) -> None:
        if self._fd < 0 or not data:
            return
        data = self._mask(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        is_cut = len(data) > self._room
        if is_cut:
            data = data[: max(0, self._room)] + f"\n[cut: {self._most} bytes are kept]\n".encode()
        try:
            write_all(self._fd, data)
        except OSError as problem:
            self._give_up(problem)
        self._room -= len(data)
        if is_cut:
            self._release()

    def _give_up(self, problem: OSError) -> None:
        text = f"the worker's stderr cannot be kept in {self._file}: {problem.strerror}"
        self.notices.append(Notice(code="stderr_not_kept", message=text))
        self._release()

    def _release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
