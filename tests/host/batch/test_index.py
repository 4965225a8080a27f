"""The index of the results holds what a dict would, in a fraction of the memory."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from agentcell.batch.index import MOST_ATTEMPTS, Entry, Index

ROWS = 10_000

BYTES_A_ROW = 100

TEXT = st.text(st.characters(), max_size=4)  # among them halves of surrogate pairs, which a file may have

ENTRIES = st.builds(
    Entry,
    st.integers(0, 2**64 - 1),
    st.sampled_from(["complete", "error"]),
    st.none() | TEXT,
    st.none() | TEXT.filter(bool),
    st.integers(0, MOST_ATTEMPTS),
)


@given(st.lists(st.tuples(TEXT, ENTRIES), max_size=200))
def test_it_is_a_dict_in_which_the_first_entry_of_an_id_counts(pairs: list[tuple[str, Entry]]) -> None:
    index, known = Index(), dict[str, Entry]()
    for id_, entry in pairs:
        assert index.add(id_, entry) is (known.setdefault(id_, entry) is entry)
        assert (index.get(id_), id_ in index, index.get(f"{id_}!")) == (known[id_], True, known.get(f"{id_}!"))
    assert (len(index), list(index), list(index.items())) == (len(known), list(known), list(known.items()))
    assert list(index.offsets()) == [entry.offset for entry in known.values()]
    assert sum(index.kinds.values()) == len(known)


@given(st.dictionaries(TEXT, ENTRIES, max_size=200))
def test_what_is_moved_is_elsewhere_and_what_is_moved_nowhere_is_gone(entries: dict[str, Entry]) -> None:
    index = Index.of(entries)
    index.move(lambda offset: offset // 3 if offset % 2 else None)
    left = {id_: entry._replace(offset=entry.offset // 3) for id_, entry in entries.items() if entry.offset % 2}
    assert list(index.items()) == list(left.items())
    assert +index.kinds == Index.of(left).kinds
    for id_, entry in entries.items():
        assert index.add(id_, entry) is (id_ not in left)


@given(st.dictionaries(TEXT, ENTRIES, min_size=1, max_size=20), st.data())
def test_an_entry_can_be_told_of_a_later_attempt(entries: dict[str, Entry], data: st.DataObject) -> None:
    index = Index.of(entries)
    id_, number = data.draw(st.sampled_from([*entries])), data.draw(st.integers(0, MOST_ATTEMPTS))
    assert index.was_tried(id_, number)
    told = {**entries, id_: entries[id_]._replace(last_attempt=number)}
    assert list(index.items()) == list(told.items())
    assert [index.last_attempt(one) for one in told] == [entry.last_attempt for entry in told.values()]


def test_of_a_row_without_an_entry_no_attempt_is_known() -> None:
    index = Index()
    assert (index.was_tried("a", 1), index.last_attempt("a"), len(index)) == (False, 0, 0)


def test_an_entry_takes_less_than_a_hundred_bytes() -> None:
    index = Index.of({f"row-{n}": Entry(1_000 * n, "complete", None, f"1:{n:016x}") for n in range(ROWS)})
    taken = sum(sys.getsizeof(value) for value in vars(index).values())
    assert (len(index), taken < BYTES_A_ROW * ROWS) == (ROWS, True)
