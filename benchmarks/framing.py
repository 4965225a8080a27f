"""Framing against a bare join and split of the same bytes."""

from agentcell_protocol.framing import LineFramer
from benchmarks.measure import Figure, compare, wall

CHUNK = 64 * 1024
"""Bytes: what a pipe holds, and so what one read gives."""

PAIRS = 15


def run() -> list[Figure]:
    """A line near the limit, and a stream of small ones."""
    return [
        _figure("one line of 30 MB, framed", b"x" * 30_000_000 + b"\n", goal=3.0),
        _figure("30 MB of lines of 200 bytes, framed", (b"x" * 199 + b"\n") * 150_000, goal=6.0),
    ]


def _figure(what: str, stream: bytes, *, goal: float) -> Figure:
    chunks = [stream[start : start + CHUNK] for start in range(0, len(stream), CHUNK)]
    assert _frame(chunks) == _join_and_split(chunks)
    seen = compare(wall(lambda: _frame(chunks)), wall(lambda: _join_and_split(chunks)), pairs=PAIRS)
    detail = f"{seen.ours.median * 1000:.1f} ms, bare {seen.theirs.median * 1000:.1f} ms"
    return Figure("framing", what, "a bare join and split", seen.ratio, goal, noise=seen.noise, detail=detail)


def _frame(chunks: list[bytes]) -> list[object]:
    framer = LineFramer()
    lines: list[object] = []
    for chunk in chunks:
        lines += framer.push(chunk)
    return lines + framer.finish()


def _join_and_split(chunks: list[bytes]) -> list[object]:
    return [line for line in b"".join(chunks).split(b"\n") if line]
