"""Whatever a writer's death has done to a file of lines, what was whole is read, and the rest is set aside."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcell.batch import repair
from agentcell.batch.repair import Repair, put_whole, read_whole, repaired

THREE = [{"n": 1}, {"n": 2, "text": "Tür 😀"}, {"n": 3, "deep": {"list": [1, None]}}]
LINES = [orjson.dumps(message) + b"\n" for message in THREE]


def accepted(path: Path) -> tuple[Repair | None, list[dict[str, Any]]]:
    """What was done to the file, and its messages."""
    messages: list[dict[str, Any]] = []

    def accept(_: int, message: dict[str, Any]) -> bool:
        messages.append(message)
        return True

    return repaired(path, accept), messages


@pytest.mark.parametrize("cut", range(len(b"".join(LINES)) + 1))
def test_a_file_that_was_cut_anywhere_loses_no_whole_line_and_no_byte(tmp_path: Path, cut: int) -> None:
    path, content = tmp_path / "f", b"".join(LINES)
    path.write_bytes(content[:cut])
    repair, messages = accepted(path)
    after = path.read_bytes()
    whole = [
        line
        for end, line in zip((len(b"".join(LINES[: n + 1])) for n in range(3)), LINES, strict=True)
        if cut >= end - 1
    ]
    assert (after, messages) == (b"".join(whole), THREE[: len(whole)])
    if (rest := content[: max(cut, len(after))][len(after) :]) == b"":
        assert repair is None
    else:
        assert repair == Repair(path, tmp_path / "f.torn-1", (len(whole) + 1,))
        assert repair.aside.read_bytes() == rest
    assert accepted(path) == (None, messages)


@given(
    st.lists(st.sampled_from([*LINES, b"\n", b"rubbish\n", b"[1]\n", b"\xf0\x9f\n", b"\0\0\0\n", b'{"n": 4}\r\n'])),
    st.binary(),
)
def test_whatever_is_in_a_file_it_is_whole_afterwards(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("r") / "f"
    path.write_bytes(b"".join(lines) + tail)
    before = list(read_whole(path))
    repair, messages = accepted(path)
    assert messages == [message for _, message in before]
    assert [message for _, message in read_whole(path)] == messages
    assert accepted(path) == (None, messages)
    aside = repair.aside.read_bytes() if repair else b""
    assert sorted((path.read_bytes() + aside).split()) == sorted((b"".join(lines) + tail).split())


def test_garbage_in_the_middle_is_named_by_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(LINES[0] + b"rubbish\n\n" + LINES[1] + b"[]\n" + LINES[2])
    repair, messages = accepted(path)
    assert str(repair) == "f: not whole, and moved to f.torn-1: line 2, 5"
    assert (tmp_path / "f.torn-1").read_bytes() == b"rubbish\n[]\n"
    assert (messages, path.read_bytes().split()) == (THREE, b"".join(LINES).split())


def test_what_makes_no_sense_where_it_stands_is_set_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"".join(LINES))
    offsets: list[int] = []

    def accept(offset: int, message: dict[str, Any]) -> bool:
        offsets.append(offset)
        return bool(message["n"] != 2)

    repair = repaired(path, accept)
    assert offsets == [0, len(LINES[0]), len(LINES[0])]
    assert repair == Repair(path, tmp_path / "f.torn-1", (2,))
    assert path.read_bytes() == LINES[0] + LINES[2]


def test_what_was_set_aside_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for number in (1, 2):
        path.write_bytes(LINES[0] + b"torn%d" % number)
        accepted(path)
    assert [(tmp_path / f"f.torn-{number}").read_bytes() for number in (1, 2)] == [b"torn1", b"torn2"]


def test_what_is_set_aside_is_private(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"torn\n" + LINES[0])
    accepted(path)
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {
        "f": "0o600",
        "f.torn-1": "0o600",
    }


def test_a_live_file_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(LINES[0] + LINES[1] + LINES[2][:5])
    assert list(read_whole(path)) == [(0, THREE[0]), (len(LINES[0]), THREE[1])]
    assert [file.name for file in tmp_path.iterdir()] == ["f"]
    assert list(read_whole(tmp_path / "none")) == []


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "f"
    put_whole(path, iter([b"one"]))

    def failing() -> Iterator[bytes]:
        yield b"two"
        raise OSError(28, os.strerror(28))

    with pytest.raises(OSError, match="No space left"):
        put_whole(path, failing())
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("f", b"one")]


def test_what_replaces_a_file_is_on_the_disk_before_it_has_its_name_and_then_the_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flush = tmp_path / "f", os.fsync
    path.write_bytes(b"one")
    flushed: list[tuple[str, bytes]] = []

    def seen(fd: int) -> None:
        file = Path(f"/proc/self/fd/{fd}").readlink()
        flushed.append((path.read_bytes().decode(), b"" if file.is_dir() else file.read_bytes()))
        flush(fd)

    monkeypatch.setattr(os, "fsync", seen)
    put_whole(path, iter([b"two"]))
    assert flushed == [("one", b"two"), ("two", b"")]


def test_the_draft_of_one_who_died_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".f.new").write_bytes(b"half")
    put_whole(tmp_path / "f", iter([b"one"]))
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("f", b"one")]


def test_a_repair_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(LINES[0] + b"torn")
    monkeypatch.setattr(repair, "put_whole", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        accepted(path)
    assert path.read_bytes() == LINES[0] + b"torn"
