"""Conversations are kept one by one, privately, and found again."""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from agentcell.transcripts import (
    KEPT_SECONDS,
    OccupiedError,
    conversation,
    find,
    is_session_id,
    kept_root,
    prune,
    restore,
    state_directory,
)

ONE, OTHER = "0c4989bf-3a27-495f-bd3f-2db89ed162d9", "7bcc0501-f587-40ed-a00f-8d939baf96ee"


def say(directory: Path, session_id: str = ONE, *, project: str = "-p") -> Path:
    """What the CLI leaves of a conversation."""
    file = directory / project / f"{session_id}.jsonl"
    (directory / project / "memory").mkdir(parents=True, exist_ok=True)
    file.write_text(session_id)
    file.with_suffix("").mkdir()
    (file.with_suffix("") / "agent.jsonl").write_text("agent")
    file.chmod(0o644)
    return file


def below(root: Path) -> list[str]:
    return sorted(f"{path.stat().st_mode & 0o777:o} {path.relative_to(root)}" for path in root.rglob("*"))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HOME": "/h"}, "/h/.local/state/agentcell"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/s"}, "/s/agentcell"),
        ({"HOME": "/h", "XDG_STATE_HOME": "relative"}, "/h/.local/state/agentcell"),
    ],
)
def test_state_lies_where_the_user_has_it(environment: dict[str, str], expected: str) -> None:
    assert state_directory(environment) == Path(expected)
    assert kept_root(environment) == Path(expected, "transcripts")


def test_what_was_said_is_kept_and_is_nobody_elses(tmp_path: Path) -> None:
    with conversation(tmp_path, ONE) as directory:
        file = say(directory)
    assert find(directory, ONE) == file
    assert below(tmp_path) == [
        f"600 {ONE}/-p/{ONE}.jsonl",
        f"600 {ONE}/-p/{ONE}/agent.jsonl",
        f"700 {ONE}",
        f"700 {ONE}/-p",
        f"700 {ONE}/-p/{ONE}",
    ]


def test_a_conversation_in_which_nothing_was_said_leaves_nothing(tmp_path: Path) -> None:
    with conversation(tmp_path / "deep", ONE) as directory:
        (directory / "-p/memory").mkdir(parents=True)
    assert below(tmp_path) == ["700 deep"]


def test_other_conversations_of_the_same_session_get_directories_of_their_own(tmp_path: Path) -> None:
    with conversation(tmp_path, ONE) as directory:
        say(directory)
        say(directory, OTHER)
    assert find(tmp_path / OTHER, OTHER) == tmp_path / OTHER / "-p" / f"{OTHER}.jsonl"
    assert (tmp_path / OTHER / "-p" / OTHER / "agent.jsonl").read_text() == "agent"
    assert find(tmp_path / ONE, OTHER) is None


def test_two_sessions_cannot_have_one_conversation_at_once(tmp_path: Path) -> None:
    with conversation(tmp_path, ONE), pytest.raises(OccupiedError) as refused, conversation(tmp_path, ONE):
        pass
    assert (refused.value.session_id, refused.value.is_live) == (ONE, True)
    with conversation(tmp_path, ONE), conversation(tmp_path, OTHER):
        pass


def test_what_goes_wrong_inside_is_not_taken_for_that(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), conversation(tmp_path, ONE):
        raise BlockingIOError


def test_a_conversation_is_brought_from_where_it_is_unless_it_is_there(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    say(there, project="-q")
    restore(here, ONE, [tmp_path / "nowhere", there])
    restored = find(here, ONE)
    assert restored == here / "-q" / f"{ONE}.jsonl"
    assert (here / "-q" / ONE / "agent.jsonl").read_text() == "agent"
    restored.write_text("newer")
    restore(here, ONE, [there])
    assert restored.read_text() == "newer"
    restore(here, OTHER, [there])
    assert find(here, OTHER) is None


def test_old_conversations_are_removed_unless_somebody_has_them(tmp_path: Path) -> None:
    live, old, new = (str(uuid4()) for _ in range(3))
    long_ago = tmp_path.stat().st_mtime - KEPT_SECONDS - 60
    for session_id in (live, old, new):
        with conversation(tmp_path, session_id) as directory:
            say(directory, session_id)
    (tmp_path / "notes").mkdir()
    with conversation(tmp_path, live):
        for name in (live, old, "notes"):
            os.utime(tmp_path / name, (long_ago, long_ago))
        prune(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {live, new, "notes"}
    prune(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [(ONE, True), (ONE.upper(), True), (ONE.replace("-", ""), False), ("../x", False), ("", False), (None, False)],
)
def test_only_a_uuid_names_a_conversation(text: str | None, is_one: bool) -> None:
    assert is_session_id(text) is is_one
