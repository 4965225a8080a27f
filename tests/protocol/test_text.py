"""The text so far, whole as far as it is kept."""

from agentcell_protocol.text import TEXT_KEPT, Text


def test_blocks_and_the_block_on_its_way_are_parted_by_blank_lines() -> None:
    text = Text()
    text.add_piece("on")
    text.add_block("one")
    text.add_block("")
    text.add_piece("tw")
    text.add_piece("o")
    assert str(text) == "one\n\ntwo"


def test_a_block_takes_the_place_of_its_pieces() -> None:
    text = Text()
    for number in range(20):
        text.add_piece("x" * (TEXT_KEPT // 8))
        text.add_block(str(number) + "x" * (TEXT_KEPT // 8))
        assert text.size == sum(map(len, [*text.blocks, *text.pieces])) <= TEXT_KEPT
    assert len(text.blocks) == 7


def test_of_a_block_that_is_too_long_the_end_is_kept() -> None:
    text = Text()
    for _ in range(2):
        text.add_block("x" * TEXT_KEPT + "end")
    assert str(text) == "x" * (TEXT_KEPT - 3) + "end"


def test_of_endless_blocks_the_end_is_kept() -> None:
    text = Text()
    for number in range(9):
        text.add_block(str(number) + "x" * (TEXT_KEPT // 4))
    assert len(str(text)) <= TEXT_KEPT
    assert sum(map(len, text.blocks)) <= TEXT_KEPT
    assert str(text).startswith(("6x", "5x", "x"))


def test_endless_pieces_are_bounded_too() -> None:
    text = Text()
    for _ in range(80):
        text.add_piece("x" * (TEXT_KEPT // 10))
    assert sum(map(len, text.pieces)) <= TEXT_KEPT
