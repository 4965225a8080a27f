"""The legacy interface's options and answers."""

from pathlib import Path

import pytest

from agentcell_protocol.legacy import (
    Arguments,
    ArgumentsError,
    answer,
    exit_code,
    failed,
    fatal,
    parse_arguments,
    succeeded,
)

REQUIRED = ["--project-dir", "p", "--spec-dir", "s", "--agent-type", "coder"]


def test_the_required_options_are_enough() -> None:
    assert parse_arguments([*REQUIRED, "--message", "hi"]) == Arguments(
        project_dir="p",
        spec_dir="s",
        agent_type="coder",
        starting_message="hi",
        model=None,
        system_prompt=None,
        max_thinking_tokens=None,
        session_name="agent-session",
    )


def test_every_option_has_its_member() -> None:
    more = [
        "--model",
        "m",
        "--system-prompt",
        "r",
        "--max-thinking-tokens",
        "5",
        "--session-name",
        "n",
        "--message",
        "-x",
    ]
    assert parse_arguments([*REQUIRED, *more[:-2], "--message=-x"]) == Arguments(
        "p", "s", "coder", "-x", "m", "r", 5, "n"
    )


def test_a_message_file_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "message.txt"
    file.write_bytes(b"\xef\xbb\xbftwo\nlines \xff")
    assert parse_arguments([*REQUIRED, "--message-file", str(file)]).starting_message == "two\nlines �"


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        ([], "the following arguments are required: --project-dir, --spec-dir, --agent-type"),
        (REQUIRED, "one of the arguments --message --message-file is required"),
        (
            [*REQUIRED, "--message", "a", "--message-file", "b"],
            "argument --message-file: not allowed with argument --message",
        ),
        (
            [*REQUIRED, "--message", "a", "--max-thinking-tokens", "x"],
            "argument --max-thinking-tokens: invalid int value: 'x'",
        ),
        ([*REQUIRED, "--message", "a", "--mess", "b"], "unrecognized arguments: --mess b"),
        (
            [*REQUIRED, "--message-file", "/does/not/exist"],
            "argument --message-file: /does/not/exist cannot be read: No such file or directory",
        ),
    ],
)
def test_wrong_options_are_named(argv: list[str], reason: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(argv)
    assert str(caught.value) == reason


def test_a_request_has_only_the_members_that_were_given() -> None:
    assert Arguments("p", "s", "coder", "hi", model="m").as_request() == {
        "project_dir": "p",
        "spec_dir": "s",
        "agent_type": "coder",
        "starting_message": "hi",
        "model": "m",
        "session_name": "agent-session",
    }


def test_an_answer_has_an_output_or_an_error() -> None:
    assert answer(succeeded("done", "coder", "n"), 1.23456) == {
        "success": True,
        "output": {"response": "done", "agent_type": "coder", "session_name": "n"},
        "error": None,
        "execution_time": 1.235,
    }
    assert answer(failed("no"), 2) == {"success": False, "output": None, "error": "no", "execution_time": 2}
    assert fatal("bad") == failed("Fatal error: bad")


def test_the_exit_code_says_what_the_outcome_says() -> None:
    assert exit_code(succeeded("done", "coder", "n")) == 0
    assert exit_code(failed("no")) == 1
