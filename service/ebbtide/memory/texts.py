"""The casefolded texts of an agent's memories in one buffer, for keyword matching without decoding nodes.

The content and the keywords of a node are one piece. Fields and pieces are separated by a byte that never occurs in
UTF-8, so a keyword cannot match across them. A rewritten node gets a new piece; the old one is waste until half of the
buffer is waste. Comparing UTF-8 bytes is equivalent to comparing characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from ebbtide.memory.columns import Array, Columns

APART = b"\xff"

STRETCH = 1 << 20
"""Bytes searched at once: the interpreter lock is held meanwhile, for about half a millisecond."""

BYTES_PER_NODE = 400
"""Bytes of the buffer that are searched in the time of matching one node by itself."""

MIN_WASTE = 1 << 16
"""Less waste than this is not worth a clean-up."""


def folded(text: str) -> bytes:
    """Return a text in the form in which texts are compared."""
    return text.casefold().encode("utf-8", "surrogatepass")


def piece_of(content: str, keywords: Sequence[str]) -> bytes:
    """Return the piece of one node."""
    # Folded at once, because each character is folded by itself. NUL separates the fields unless a field contains it.
    piece = folded("\0".join((content, *keywords, "")))
    if piece.count(0) == len(keywords) + 1:
        return piece.replace(b"\0", APART)
    return APART.join([folded(content), *map(folded, keywords), b""])


class FoldedTexts:
    """Pieces by slot."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._pieces = Columns(start=np.int64, slot=np.int32)
        self._piece_of_slot = Columns(piece=np.int32)
        self._waste = 0
        self._sorted_end = 0
        """End of the pieces that are in the order of their slots; later ones are in the order of writing."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return len(self._buffer) + self._pieces.nbytes + self._piece_of_slot.nbytes

    def put(self, slot: int, piece: bytes) -> None:
        """Set the piece of a node. New slots must be added in order."""
        if slot < self._piece_of_slot.count:
            self._discard(slot)
        else:
            self._add_slots(slot + 1)
        newest = int(self._pieces["slot"][-1]) if self._pieces.count else -1
        is_in_order = self._sorted_end == len(self._buffer) and slot > newest
        self._piece_of_slot["piece"][slot] = self._pieces.count
        self._pieces.append(1, start=len(self._buffer), slot=slot)
        self._buffer += piece
        if is_in_order:
            self._sorted_end = len(self._buffer)
        unsorted = len(self._buffer) - self._sorted_end
        if self._waste > max(MIN_WASTE, len(self._buffer) // 2) or unsorted > max(
            MIN_WASTE, len(self._buffer) // 8
        ):
            self._rearrange(np.arange(self._piece_of_slot.count))

    def load(self, buffer: bytearray, slots: Array, starts: Array, slot_count: int) -> None:
        """Replace the whole buffer. `slots` are ascending, and `starts` are the positions of their pieces."""
        self._buffer, self._waste, self._sorted_end = buffer, 0, len(buffer)
        self._pieces.replace(start=starts, slot=slots)
        self._piece_of_slot = Columns(piece=np.int32)
        self._add_slots(slot_count)
        self._piece_of_slot["piece"][slots] = np.arange(len(slots))

    def _add_slots(self, slot_count: int) -> None:
        self._piece_of_slot.append(slot_count - self._piece_of_slot.count, piece=-1)

    def drop(self, slot: int) -> None:
        """Remove the piece of a node."""
        self._discard(slot)

    def _discard(self, slot: int) -> None:
        begin, end = self._bounds(slot)
        # Overwritten at once: the buffer must not contain forgotten text.
        self._buffer[begin:end] = APART * (end - begin)
        self._waste += end - begin
        self._piece_of_slot["piece"][slot] = -1

    def _bounds(self, slot: int) -> tuple[int, int]:
        piece = int(self._piece_of_slot["piece"][slot]) if slot < self._piece_of_slot.count else -1
        if piece < 0:
            return 0, 0
        starts = self._pieces["start"]
        end = int(starts[piece + 1]) if piece + 1 < self._pieces.count else len(self._buffer)
        return int(starts[piece]), end

    def renumber(self, old_slots: Array) -> None:
        """Renumber the slots: new slot i is `old_slots[i]`."""
        missing = int(old_slots.max(initial=-1)) + 1 - self._piece_of_slot.count
        if missing > 0:
            self._piece_of_slot.append(missing, piece=-1)
        self._rearrange(old_slots)

    def _rearrange(self, old_slots: Array) -> None:
        buffer, slots, starts = bytearray(), [], []
        for slot, (begin, end) in enumerate(map(self._bounds, old_slots.tolist())):
            if end > begin:
                slots.append(slot)
                starts.append(len(buffer))
                buffer += self._buffer[begin:end]
        self.load(buffer, np.array(slots, dtype=np.int32), np.array(starts, dtype=np.int64), len(old_slots))

    def piece(self, slot: int) -> bytes:
        """Return the piece of one node."""
        begin, end = self._bounds(slot)
        return bytes(self._buffer[begin:end])

    def first_keyword(self, slot: int) -> str:
        """Return the first keyword of a node, casefolded; empty if it has none."""
        begin, end = self._bounds(slot)
        begin = self._buffer.find(APART, begin, end) + 1
        stop = self._buffer.find(APART, begin, end) if begin else -1
        return self._buffer[begin:stop].decode("utf-8", "surrogatepass") if stop >= 0 else ""

    # --- matching ----------------------------------------------------------------------------------

    def are_few(self, node_count: int) -> bool:
        """Whether matching this many nodes one by one costs less than searching the whole buffer."""
        return node_count * BYTES_PER_NODE < len(self._buffer)

    def matches_each(self, slots: Array, words: Sequence[bytes]) -> Array:
        """Return which of these nodes contain any of the words, matched one by one."""
        pieces = self._piece_of_slot["piece"][slots]
        begins = self._pieces["start"][pieces]
        last = self._pieces.count - 1
        ends = np.where(
            pieces == last, len(self._buffer), self._pieces["start"][np.minimum(pieces + 1, last)]
        )
        found = np.zeros(len(slots), dtype=np.bool_)
        left = np.arange(len(slots))
        for word in words:
            # `map` calls `find` without interpreter overhead per node.
            places = map(self._buffer.find, repeat(word), begins[left].tolist(), ends[left].tolist())
            matching = np.fromiter(places, dtype=np.int64, count=len(left)) >= 0
            found[left[matching]] = True
            left = left[~matching]
        return found

    def newest_with(self, word: bytes, most: int) -> tuple[Array, bool]:
        """Return the newest slots that contain a word, newest first, and whether they are all that contain it.

        The first `most` are exact. Pieces up to `_sorted_end` are in the order of their slots, so the search for a
        common word begins at their end and stops early.
        """
        found = self._slots_at(self._places_of(word, self._sorted_end))
        older, begin = self._last_with(word, most)
        is_complete = len(older) < most
        if is_complete:
            # The word is rare: a search forward is three times as fast as one backward.
            older = np.concatenate([self._slots_at(self._places_of(word, 0, begin)), older])
        newest: Array = np.unique(np.concatenate([found, older]))[::-1]
        return newest, is_complete

    def _last_with(self, word: bytes, most: int) -> tuple[Array, int]:
        """Return the last `most` slots with a word in the last stretch of the sorted pieces, and where it begins."""
        end = self._sorted_end
        piece = int(np.searchsorted(self._pieces["start"], max(0, end - STRETCH), side="right")) - 1
        begin = int(self._pieces["start"][piece]) if piece >= 0 else 0
        found: list[int] = []
        while len(found) < most and (place := self._buffer.rfind(word, begin, end)) >= 0:
            piece = int(np.searchsorted(self._pieces["start"], place, side="right")) - 1
            found.append(int(self._pieces["slot"][piece]))
            # No other piece contains its bytes.
            end = int(self._pieces["start"][piece])
        return np.array(found, dtype=np.int64), begin

    def _slots_at(self, places: Sequence[int]) -> Array:
        pieces = np.searchsorted(self._pieces["start"], np.array(places, dtype=np.int64), side="right") - 1
        slots: Array = self._pieces["slot"][pieces].astype(np.int64)
        return slots

    def matches_all(self, words: Sequence[bytes], slot_count: int) -> Array:
        """Return, by slot, which nodes contain any of the words, with one search of the buffer per word."""
        found = np.zeros(slot_count, dtype=np.bool_)
        for word in words:
            found[self._slots_at(self._places_of(word))] = True
        return found

    def _places_of(self, word: bytes, first: int = 0, last: int | None = None) -> list[int]:
        places: list[int] = []
        buffer, end = self._buffer, len(self._buffer) if last is None else last
        for begin in range(first, end, STRETCH):
            stop = min(end, begin + STRETCH + len(word) - 1)
            place = buffer.find(word, begin, stop)
            while place >= 0:
                places.append(place)
                place = buffer.find(word, place + 1, stop)
        return places
