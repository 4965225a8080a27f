"""What is written is strict JSON on one line, whatever is given; what is read is an object or a named error."""

import json
from datetime import date
from enum import Enum, IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentcell_protocol.codec import CUT, MAX_DEPTH, decode, decode_all, encode, encode_noting
from agentcell_protocol.errors import WireError


class Ratio(float):
    pass


class Word(str):
    __slots__ = ()


class Level(IntEnum):
    HIGH = 3


class Colour(Enum):
    RED = "red"


class Mute:
    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")


class Broken:
    def __str__(self) -> str:
        return "half a pair: \ud83d"


any_text = st.text(max_size=8) | st.text(st.sampled_from("a🙂\ud800\udbff\udc00\u2028\u2029\x85\n\ufeff\0"), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**53)
    | st.integers(max_value=-(2**63))
    | st.floats()
    | st.floats().map(Ratio)
    | any_text
    | any_text.map(Word)
    | st.binary()
    | st.sampled_from([Level.HIGH, Colour.RED, Mute(), Broken(), Path("a"), date(2026, 1, 2), object, 10**400, 1j])
    | st.sets(st.integers())
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(any_text | st.integers() | st.none() | st.floats() | st.booleans(), inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4).map(MappingProxyType)
    ),
    max_leaves=12,
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def read_strictly(line: bytes) -> Any:
    """The value of a line, by a decoder that is not ours and takes no constants that JSON does not have."""

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is not JSON")

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line.decode("utf-8"), parse_constant=refuse)


def nested(depth: int) -> Any:
    """Lists in lists, with `depth` levels of them."""
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    return value


def depth_of(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        (value,), depth = value, depth + 1
    return depth


@given(st.dictionaries(any_text, values, max_size=4))
def test_any_value_becomes_one_line_of_strict_json(message: dict[str, Any]) -> None:
    line = encode(message)
    assert isinstance(read_strictly(line), dict)
    assert encode(decode(line)) == line


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_what_json_can_say_is_read_as_it_was_written(message: dict[str, Any]) -> None:
    line, has_cut = encode_noting(message)
    assert read_strictly(line) == message == decode(line)
    assert not has_cut


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (float("-inf"), None),
        (Ratio(1.5), 1.5),
        (2**53 + 1, 2**53 + 1),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
        (2**64, float(2**64)),
        (10**400, None),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude42", "🙂"),
        ("\ufeff\ud800", "\ufeff\ufffd"),
        ("\u2028\u2029\x85", "\u2028\u2029\x85"),
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        (Path("a/b"), "a/b"),
        (Mute(), "<Mute>"),
        (Broken(), "half a pair: \ufffd"),
        ({1: "a", None: "b", "\ud800": "c"}, {"1": "a", "None": "b", "\ufffd": "c"}),
        ((1, [2]), [1, [2]]),
    ],
)
def test_what_json_cannot_say_is_said_as_near_as_it_can(given: Any, written: Any) -> None:
    assert read_strictly(encode({"value": given})) == {"value": written}
    assert read_strictly(encode({"value": given, "odd": 2**70})) == {"value": written, "odd": float(2**70)}


@pytest.mark.parametrize("depth", [1, 250, 253, 254, 255, 400, 1_000, 2_000, 100_000])
def test_what_is_nested_too_deep_is_cut_and_noted(depth: int) -> None:
    line, has_cut = encode_noting({"value": nested(depth)})
    written = read_strictly(line)["value"]
    assert has_cut == (depth_of(written) < depth)
    if has_cut:
        assert depth_of(written) == MAX_DEPTH - 1
        assert CUT.encode() in line
    assert decode(line)["value"] == written


def test_what_contains_itself_is_cut_where_it_does() -> None:
    loop: list[Any] = [1]
    loop += [loop, loop]
    line, has_cut = encode_noting({"loop": loop})
    assert read_strictly(line) == {"loop": [1, CUT, CUT]}
    assert has_cut


def test_what_is_there_twice_is_written_twice() -> None:
    shared = ["\ud800"]
    assert read_strictly(encode({"a": shared, "b": shared})) == {"a": ["\ufffd"], "b": ["\ufffd"]}


pieces = st.sampled_from(
    [
        b'{"a":1}',
        b'{"a":2,"a":3}',
        b'{"a":',
        b"1}",
        b"[",
        b"]",
        b",",
        b"1",
        b'"',
        b"NaN",
        b"\xff",
        b"\0",
        b"\xef\xbb\xbf",
        b" ",
    ]
)


@example([b"[1", b"2]", b"1,2,3"])
@given(st.lists(st.lists(pieces, max_size=3).map(b"".join), min_size=1, max_size=4))
def test_lines_are_read_at_once_as_one_by_one_or_not_at_all(lines: list[bytes]) -> None:
    try:
        one_by_one = [orjson.loads(line) for line in lines]
    except orjson.JSONDecodeError:
        one_by_one = None
    assert decode_all(lines) == one_by_one


def test_what_is_nested_too_deep_to_be_read_at_once_is_read_by_itself() -> None:
    line = b'{"a":' + b"[" * 1023 + b"1" + b"]" * 1023 + b"}"
    assert (decode_all([line]), depth_of(decode(line)["a"])) == (None, 1023)


def test_of_a_member_that_is_there_twice_the_last_one_counts() -> None:
    assert decode(b'{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


def test_a_bom_before_a_line_is_skipped() -> None:
    assert decode(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


@pytest.mark.parametrize("line", [b'{"a":"\xff"}', b'{"a":"\xf0\x9f\x99"}', b'{"a":"\xed\xa0\x80"}'])
def test_bytes_that_are_not_utf8_are_read_as_replacement_characters(line: bytes) -> None:
    assert set(decode(line)["a"]) == {"\ufffd"}


def test_an_integer_beyond_64_bits_is_read_as_a_float() -> None:
    assert decode(b'{"a":123456789012345678901234567890}') == {"a": 1.2345678901234568e29}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"", "the line is not valid JSON: "),
        (b"hello", "the line is not valid JSON: "),
        (b"\xff", "the line is not valid JSON: "),
        (b'{"a":NaN}', "the line is not valid JSON: "),
        (b'{"a":Infinity}', "the line is not valid JSON: "),
        (b'{"a":1e999}', "the line is not valid JSON: "),
        (b'{"a":"\\ud800"}', "the line is not valid JSON: "),
        (b'{"a":1}{"b":2}', "the line is not valid JSON: "),
        (b"[" * 2_000 + b"]" * 2_000, "the line is not valid JSON: "),
        (b"[]", "the line is an array, not an object"),
        (b'"a"', "the line is a string, not an object"),
        (b"1.5", "the line is a number, not an object"),
        (b"false", "the line is a boolean, not an object"),
        (b"null", "the line is null, not an object"),
    ],
)
def test_what_is_no_message_is_named(line: bytes, text: str) -> None:
    with pytest.raises(WireError, match=f"^{text}"):
        decode(line)


@pytest.mark.parametrize("line", [b"{", b'{"a":1', b'{"a":"x', b'{"a":', b'{"a":"\xff'])
def test_a_line_that_ends_before_its_json_does_is_known(line: bytes) -> None:
    with pytest.raises(WireError) as raised:
        decode(line)
    assert raised.value.is_cut


@pytest.mark.parametrize("line", [b"hello", b'{"a":1}}', b"{]", b"[]"])
def test_a_line_that_is_wrong_before_its_end_is_not_called_cut(line: bytes) -> None:
    with pytest.raises(WireError) as raised:
        decode(line)
    assert not raised.value.is_cut
