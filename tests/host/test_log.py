"""A stream is copied to a file whole, without secrets, for its user alone, and up to a size."""

import stat
from pathlib import Path

import pytest

from agentcell.log import LINE_BYTES, Log
from agentcell_protocol.masking import Mask

SECRET = "hunter2hunter2"

MASKED = Mask({"API_KEY": SECRET})

CUT = b"\n[cut: 100 bytes are kept]\n"


def kept(file: Path, *chunks: bytes, most: int = 100) -> bytes:
    log = Log(file, MASKED, most)
    for chunk in chunks:
        log.add(chunk)
    log.close()
    assert log.notices == []
    return file.read_bytes()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stderr.log"


def test_all_is_kept_for_its_user_alone(file: Path) -> None:
    assert kept(file, b"on", b"e\ntwo\nthr", b"ee") == b"one\ntwo\nthree"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_was_there_stays(file: Path) -> None:
    kept(file, b"one\n")
    assert kept(file, b"two\n") == b"one\ntwo\n"


def test_a_line_is_there_as_soon_as_it_ends(file: Path) -> None:
    log = Log(file)
    log.add(b"one\ntw")
    assert file.read_bytes() == b"one\n"
    log.close()


@pytest.mark.parametrize("chunks", [[b"a %s b\n"], [b"a %s"], [b"\n", b"a %s b\n", b"c"]])
def test_a_secret_is_masked_however_it_comes(file: Path, chunks: list[bytes]) -> None:
    said = b"".join(chunks) % SECRET.encode()
    assert kept(file, *(said[i : i + 1] for i in range(len(said)))) == b"".join(chunks) % b"[masked]"


def test_bytes_that_are_no_text_stay_as_they_are(file: Path) -> None:
    assert kept(file, b"\xff\xfe\n", b"\xc3", b"\xa4\n") == b"\xff\xfe\n\xc3\xa4\n"


@pytest.mark.parametrize("size", [100, 101, 1000])
def test_no_more_is_kept_than_there_is_room_for(file: Path, size: int) -> None:
    assert kept(file, b"x" * size) == b"x" * 100 + (CUT if size > 100 else b"")


def test_what_comes_after_the_cut_is_not_kept(file: Path) -> None:
    assert kept(file, *[b"123456789\n"] * 50) == b"123456789\n" * 10 + CUT


def test_a_line_without_an_end_is_not_waited_for(file: Path) -> None:
    log = Log(file)
    log.add(b"x" * LINE_BYTES)
    assert file.read_bytes() == b""
    log.add(b"x")
    assert file.stat().st_size == LINE_BYTES + 1
    log.close()


def test_without_a_file_nothing_is_kept() -> None:
    log = Log(None)
    log.add(b"one\n")
    log.close()
    assert log.notices == []


def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.add(b"one\n")
    log.close()
    assert [(one.code, str(tmp_path) in one.message) for one in log.notices] == [("stderr_not_kept", True)]


def test_a_full_disk_is_told_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    log = Log(file)
    monkeypatch.setattr("os.write", refuse)
    log.add(b"one\n")
    log.add(b"two\n")
    log.close()
    assert [one.message for one in log.notices] == [
        f"the worker's stderr cannot be kept in {file}: No space left on device"
    ]
