"""Framing against a bare join and split of the same bytes."""

from agentcell_protocol.framing import LineFramer
from benchmarks.row import Row, compare

CHUNK = 64 * 1024
"""Bytes: what a pipe holds, and so what one read gives."""

ROUNDS = 15


def run() -> list[Row]:
    """A line near the limit, and a stream of small ones."""
    return [
        _row("one line of 30 MB", b"x" * 30_000_000 + b"\n", bound=3.0),
        _row("30 MB of lines of 200 bytes", (b"x" * 199 + b"\n") * 150_000, bound=6.0),
    ]


def _row(what: str, stream: bytes, *, bound: float) -> Row:
    chunks = [stream[start : start + CHUNK] for start in range(0, len(stream), CHUNK)]
    assert _frame(chunks) == _join_and_split(chunks)
    ratio, mine, bare = compare(lambda: _frame(chunks), lambda: _join_and_split(chunks), rounds=ROUNDS)
    return Row("framing", what, ratio, bound, f"{mine * 1000:.1f} ms, bare join and split {bare * 1000:.1f} ms")


def _frame(chunks: list[bytes]) -> list[object]:
    framer = LineFramer()
    lines: list[object] = []
    for chunk in chunks:
        lines += framer.push(chunk)
    return lines + framer.finish()


def _join_and_split(chunks: list[bytes]) -> list[object]:
    return [line for line in b"".join(chunks).split(b"\n") if line]
