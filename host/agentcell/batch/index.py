"""What is known of each result, held in memory for as long as a batch runs: in some eighty bytes a row."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from struct import Struct
from threading import Lock
from typing import NamedTuple, Self

HEAD = Struct("<QIIII")
"""Before each record: its offset, the number of its kind, how many bytes its id and digest have, the last attempt."""

LAST = Struct("<I")
"""The last of these, at the head's end."""

MOST_ATTEMPTS = 2**32 - 1
"""At a row, as there is room for."""

FEWEST_SLOTS = 64

HASH = 2**32 - 1
"""The bits of a slot that are its id's hash."""

Kind = tuple[str, str | None]
"""The status and the category of a result."""


class Entry(NamedTuple):
    """Where the line of a result begins, in bytes, and what decides about its row.

    `last_attempt` is the number of the last attempt at it, 0 as long as nobody has told of one.
    """

    offset: int
    status: str
    category: str | None
    digest: str | None
    last_attempt: int = 0


class Index:
    """Entries by the ids of their rows, in the order in which they came. `kinds` counts them.

    All of them are in one block of bytes, a head, an id and a digest each, so that none is an object. A table that has
    a third of its slots free says where they are: in a slot is where the record begins, and half of its id's hash. It
    is the first that is free from where the hash points to; 0 is a free one. One thread may write while another looks.
    """

    def __init__(self) -> None:
        self.kinds: Counter[Kind] = Counter()
        self._numbers: dict[Kind, int] = {}
        self._kinds: list[Kind] = []
        self._size = 0
        self._block = bytearray(1)  # so that no record begins at 0
        self._slots = array("Q", bytes(8 * FEWEST_SLOTS))
        self._lock = Lock()

    @classmethod
    def of(cls, entries: dict[str, Entry]) -> Self:
        """One with these entries."""
        index = cls()
        for id_, entry in entries.items():
            index.add(id_, entry)
        return index

    def __len__(self) -> int:
        return self._size

    def __contains__(self, id_: str) -> bool:
        with self._lock:
            return self._slots[self._find(id_, _bytes(id_))] != 0

    def __iter__(self) -> Iterator[str]:
        return (id_ for id_, _ in self.items())

    def offsets(self) -> Iterator[int]:
        """Those of all of them."""
        return (entry.offset for _, entry in self.items())

    def items(self) -> Iterator[tuple[str, Entry]]:
        """All of them, with their ids."""
        position = 1
        while position < len(self._block):
            entry, start, end, position = self._record(position)
            yield self._block[start:end].decode("utf-8", "surrogatepass"), entry

    def get(self, id_: str) -> Entry | None:
        """That of the row, if it has one."""
        with self._lock:
            slot = self._slots[self._find(id_, _bytes(id_))]
            return self._record(slot >> 32)[0] if slot else None

    def last_attempt(self, id_: str) -> int:
        """That of the row's entry, 0 where it has none."""
        with self._lock:
            slot = self._slots[self._find(id_, _bytes(id_))]
            return HEAD.unpack_from(self._block, slot >> 32)[4] if slot else 0

    def was_tried(self, id_: str, number: int) -> bool:
        """Have the row's entry say that this was the last attempt at it; false when it has none."""
        with self._lock:
            slot = self._slots[self._find(id_, _bytes(id_))]
            if slot:
                LAST.pack_into(self._block, (slot >> 32) + HEAD.size - LAST.size, number)
            return slot != 0

    def add(self, id_: str, entry: Entry) -> bool:
        """Take it in; false when the row has one."""
        with self._lock:
            return self._add(id_, entry)

    def move(self, moved: Callable[[int], int | None]) -> None:
        """Have each offset be what it is moved to; entries that are moved to None are gone."""
        other = type(self)()
        for id_, entry in self.items():
            if (offset := moved(entry.offset)) is not None:
                other.add(id_, entry._replace(offset=offset))
        with self._lock:
            self.kinds.clear()
            self.kinds.update(other.kinds)
            vars(self).update({**vars(other), "kinds": self.kinds, "_lock": self._lock})

    def _add(self, id_: str, entry: Entry) -> bool:
        name = _bytes(id_)
        slot = self._find(id_, name)
        if self._slots[slot]:
            return False
        offset, status, category, digest, last = entry
        kind = status, category
        if kind not in self._numbers:
            self._numbers[kind] = len(self._kinds)
            self._kinds.append(kind)
        self.kinds[kind] += 1
        rest = _bytes(digest or "")
        self._slots[slot] = len(self._block) << 32 | hash(id_) & HASH
        self._block += HEAD.pack(offset, self._numbers[kind], len(name), len(rest), last) + name + rest
        self._size += 1
        if self._size * 3 > len(self._slots) * 2:
            self._grow()
        return True

    def _find(self, id_: str, name: bytes) -> int:
        """The slot of the row, whose id is this in bytes, or the free one in which it is to be put."""
        slots, block = self._slots, self._block
        last = len(slots) - 1
        half = hash(id_) & HASH
        slot = half & last
        while found := slots[slot]:
            if found & HASH == half:
                position = found >> 32
                if block.startswith(name, position + HEAD.size) and HEAD.unpack_from(block, position)[2] == len(name):
                    break
            slot = (slot + 1) & last
        return slot

    def _record(self, position: int) -> tuple[Entry, int, int, int]:
        """The entry there, where its id begins and ends, and where the next one is."""
        offset, kind, id_length, digest_length, last = HEAD.unpack_from(self._block, position)
        start = position + HEAD.size
        end = start + id_length
        after = end + digest_length
        status, category = self._kinds[kind]
        digest = self._block[end:after].decode("utf-8", "surrogatepass") or None
        return Entry(offset, status, category, digest, last), start, end, after

    def _grow(self) -> None:
        slots = array("Q", bytes(16 * len(self._slots)))
        last = len(slots) - 1
        for found in self._slots:
            if found:
                slot = found & HASH & last
                while slots[slot]:
                    slot = (slot + 1) & last
                slots[slot] = found
        self._slots = slots


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
