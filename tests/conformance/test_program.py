"""A program that is checked is waited for, but never for ever."""

from pathlib import Path

import pytest

from agentcell.conformance.program import MOST_LINES, Program

PATIENCE_SECONDS = 60.0


@pytest.mark.parametrize(("script", "code"), [("yes &", 0), ("exec yes", None)], ids=["a child", "itself"])
def test_what_writes_without_end_is_not_read_to_its_end(tmp_path: Path, script: str, code: int | None) -> None:
    patience = PATIENCE_SECONDS if code == 0 else 0.5
    program = Program(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, tmp_path / "stderr", patience)
    try:
        assert program.ended() == code
        assert len(program.lines) < 2 * MOST_LINES
    finally:
        program.close()
