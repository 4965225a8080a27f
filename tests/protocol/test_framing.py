"""Bytes in any chunking become the same lines."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcell_protocol.framing import LineFramer, Overlong

LIMIT = 12

AMPLE = 4096
"""More than any of these streams has."""

streams = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b" ", b"{}", b'"a"', b"\xff", "🙂".encode(), "\u2028\x85".encode()])
    | st.binary(max_size=LIMIT + 3)
).map(b"".join)


def expected(stream: bytes, limit: int) -> list[bytes | Overlong]:
    """The rules, said once more in the plainest way."""
    lines: list[bytes | Overlong] = []
    for piece in stream.split(b"\n"):
        if len(piece) > limit:
            lines.append(Overlong(limit))
        elif piece.strip():
            lines.append(piece.removesuffix(b"\r"))
    return lines


def framed(chunks: list[bytes], limit: int = LIMIT) -> list[bytes | Overlong]:
    framer = LineFramer(limit)
    lines = [line for chunk in chunks for line in framer.push(chunk)]
    return lines + framer.finish()


@pytest.mark.parametrize("limit", [LIMIT, AMPLE])
@given(stream=streams, data=st.data())
def test_any_chunking_gives_the_lines_of_a_split_on_line_feeds(limit: int, stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert framed(chunks, limit) == expected(stream, limit)


@given(stream=streams)
def test_one_byte_at_a_time_gives_the_same_lines_as_all_at_once(stream: bytes) -> None:
    assert framed([stream[i : i + 1] for i in range(len(stream))]) == framed([stream])


def test_a_four_byte_character_comes_whole_from_single_bytes() -> None:
    line = '{"text":"🙂"}'.encode()
    assert framed([bytes([byte]) for byte in line + b"\n"], limit=64) == [line]


def test_only_a_line_feed_ends_a_line() -> None:
    line = "a\u2028b\u2029c\x85d\x0be\x0cf\rg".encode()
    assert framed([(line + b"\r\n") * 3], limit=AMPLE) == [line] * 3


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \n", b"\t\r\n"])
def test_blank_lines_are_not_lines(blank: bytes) -> None:
    assert framed([blank * 2 + b"a\n" + blank], limit=AMPLE) == [b"a"]


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 1024 * 1024])
def test_a_line_longer_than_a_pipe_is_whole(size: int) -> None:
    stream = b"x" * size + b"\n"
    chunks = [stream[i : i + 65_536] for i in range(0, len(stream), 65_536)]
    assert framed(chunks, limit=size) == [b"x" * size]


def test_a_line_of_the_limit_is_a_line_and_one_byte_more_is_not() -> None:
    assert framed([b"x" * LIMIT + b"\n" + b"x" * (LIMIT + 1) + b"\nnext\n"]) == [b"x" * LIMIT, Overlong(LIMIT), b"next"]


def test_an_overlong_line_is_told_as_soon_as_it_is_too_long() -> None:
    framer = LineFramer(LIMIT)
    assert framer.push(b"x" * LIMIT) == []
    assert framer.push(b"x") == [Overlong(LIMIT)]
    assert framer.push(b"x" * 100) == []
    assert framer.push(b"\nnext\n") == [b"next"]


def test_an_overlong_line_names_the_limit() -> None:
    assert str(Overlong(LIMIT)) == "a line is longer than the limit of 12 bytes"


def test_an_endless_line_takes_no_more_memory_than_the_limit() -> None:
    limit, chunk = 1024 * 1024, 64 * 1024
    framer = LineFramer(limit)
    tracemalloc.start()
    try:
        for number in range(800):
            framer.push(bytes([number % 9 + 48]) * chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit + 4 * chunk
