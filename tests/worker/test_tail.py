"""Secrets do not get out."""

from agentcell_protocol.masking import Mask
from agentcell_worker.tail import TAIL_CHARACTERS, Tail


def test_values_of_secret_variables_and_known_shapes_are_masked() -> None:
    mask = Mask({"MY_API_KEY": "abcdef", "HOME": "/home/me"}, {"github_token": "abcdef-longer"})
    assert mask("abcdef abcdef-longer sk-ant-oat01-x_Y /home/me") == "[masked] [masked] [masked] /home/me"


def test_short_values_are_left_alone() -> None:
    assert Mask({"KEY": "on", "TOKEN": ""})("on and on") == "on and on"


def test_a_tail_keeps_the_last_lines_masked_and_marks_what_is_cut() -> None:
    forwarded: list[str] = []
    tail = Tail(Mask({"KEY": "secret"}), forwarded.append)
    for number in range(2000):
        tail.add(f"secret {number}")
    assert forwarded[0] == "[masked] 0"
    assert len(forwarded) == 2000
    first, *_, last = tail.text().splitlines()
    assert (first, last) == ("…", "[masked] 1999")
    assert len(tail.text()) <= TAIL_CHARACTERS + 2


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    tail = Tail(Mask(), lambda _: None)
    tail.add("x" * 1_000_000)
    assert tail.text() == "…" + "x" * 1000


def test_a_tail_of_nothing_is_empty() -> None:
    assert Tail(Mask(), lambda _: None).text() == ""
