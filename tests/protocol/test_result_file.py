"""What stands where a result is to be put is replaced as a whole, or left as it is."""

import os
import stat
from pathlib import Path

import pytest

from agentcell_protocol.result_file import put_result


def test_a_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text("before")
    assert put_result(b"after", str(file)) is None
    assert (file.read_text(), list(tmp_path.iterdir())) == ("after", [file])


def test_a_pipe_is_left_as_it_is_and_that_is_told(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    notice = put_result(b"after", str(pipe))
    assert notice is not None
    told = f"the result was not put into {pipe}: it is no ordinary file; name one, which need not exist"
    assert notice.message == told
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["none/result.json", "x" * 5000])
def test_where_no_file_can_be_that_is_told(tmp_path: Path, name: str) -> None:
    notice = put_result(b"after", str(tmp_path / name))
    assert notice is not None
    assert notice.code == "result_file"
