"""Of a stream without end the end is kept, without secrets."""

import pytest

from agentcell.tail import Tail
from agentcell_protocol.masking import Mask


def tail(*chunks: bytes, kept: int = 100) -> Tail:
    new = Tail(kept)
    for chunk in chunks:
        new.add(chunk)
    return new


def test_a_short_stream_is_kept_whole() -> None:
    assert tail(b"one\n", b"two\n").text() == "one\ntwo\n"


@pytest.mark.parametrize("chunks", [(), (b"",), (b"\n \n",)])
def test_nothing_said_is_nothing(chunks: tuple[bytes, ...]) -> None:
    assert tail(*chunks).text() is None


def test_a_long_stream_is_cut_and_says_so() -> None:
    text = tail(*[b"0123456789"] * 1000).text(shown=15)
    assert text == "[cut: the last 15 characters of 10000 bytes]\n567890123456789"


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert tail(b"\xff!").text() == "\ufffd!"


def test_secrets_are_masked_by_name_and_by_shape() -> None:
    mask = Mask({"MY_TOKEN": "hush-hush", "HOME": "/home/u", "A_KEY": "1"})
    text = tail(b"hush-hush sk-ant-api03_x-y /home/u 1").text(mask)
    assert text == "[masked] [masked] /home/u 1"


def test_a_secret_that_the_cut_would_halve_is_masked_first() -> None:
    mask = Mask({"MY_TOKEN": "hush-hush"})
    assert "hush" not in str(tail(b"x" * 50 + b"hush-hush" + b"y" * 10).text(mask, shown=14))
