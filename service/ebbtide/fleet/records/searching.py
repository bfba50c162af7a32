"""Search of records by words: the texts of each record, cut and analysed as messages are, and their scores.

The terms of texts are computed by the first search that needs them, and kept in memory by version, never in a file.
A version never has another value, so they are never outdated; those of deleted records are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ebbtide.fleet.deletion.records import value_of
from ebbtide.records import StoredRecord
from ebbtide.retrieval.lexical import WordScores, weights_of
from ebbtide.retrieval.passages import Entry, IndexedPassage, PassageIndex, entries_of

MAX_KEPT_CHARS = 40_000_000
"""Most characters of texts whose terms are kept in memory."""

ENTRY_BYTES, TERM_BYTES = 400, 5
"""Memory of a passage, and of each of its terms."""

NEIGHBOURS = 0.5
"""Weight of the words of the passages before and after in the same record."""

PATH = re.compile(r"[^.\[\]]++(?:\[(?:\*|[0-9]{1,6})\])*+(?:\.[^.\[\]]++(?:\[(?:\*|[0-9]{1,6})\])*+)*+")
"""A path in a value: names of fields with dots between them, each with items of lists: `a.b[*].c`, `a[0]`."""

_STEP = re.compile(r"[^.\[\]]++")


def text_of(record: StoredRecord) -> str:
    """Return the texts of a record that a search finds, one on each line."""
    value = value_of(record)
    parts = [value] if record.index is None else [one for path in record.index for one in _at(value, path)]
    return "\n".join(text for part in parts for text in _texts_in(part))


def _at(value: object, path: str) -> list[object]:
    """Return what is in a value at a path."""
    found = [value]
    for step in _STEP.findall(path):
        found = [inner for one in found for inner in _inside(one, step)]
    return found


def _inside(value: object, step: str) -> Iterator[object]:
    if isinstance(value, dict):
        if step in value:
            yield value[step]
    elif isinstance(value, list):
        if step == "*":
            yield from value
        elif step.isdecimal() and int(step) < len(value):
            yield value[int(step)]


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts in a value at any depth, and numbers as texts, but not the names of fields."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += reversed(one.values())
        elif isinstance(one, list):
            waiting += reversed(one)
        elif isinstance(one, str):
            yield one
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield str(one)


def analysed_texts(texts: Sequence[str]) -> list[list[Entry]]:
    """Return the passages of each text with their terms."""
    return [entries_of(text, "") for text in texts]


@dataclass(slots=True)
class KeptTerms:
    """The passages of records by version, the oldest first."""

    _entries: dict[int, list[Entry]] = field(default_factory=dict)
    _chars: int = 0
    resident_bytes: int = 0
    """Approximate size in memory."""

    def __contains__(self, version: int) -> bool:
        return version in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def of(self, record: StoredRecord) -> list[Entry]:
        """Return the passages of a record. Compute them if they are not kept."""
        found = self._entries.get(record.version)
        if found is None:
            [found] = analysed_texts([text_of(record)])
            self.keep({record.version: found})
        return found

    def keep(self, entries: Mapping[int, list[Entry]]) -> None:
        """Keep the passages of records, and drop the oldest if there are too many."""
        for version, some in entries.items():
            if version not in self._entries:
                self._entries[version] = some
                self._count(some, 1)
        while self._chars > MAX_KEPT_CHARS and len(self._entries) > 1:
            self.drop([next(iter(self._entries))])

    def drop(self, versions: Iterable[int]) -> None:
        """Drop the passages of deleted records."""
        for version in versions:
            if version in self._entries:
                self._count(self._entries.pop(version), -1)

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self._chars = self.resident_bytes = 0

    def _count(self, entries: Sequence[Entry], sign: int) -> None:
        self._chars += sign * (1 + sum(one.length for one in entries))
        self.resident_bytes += sign * sum(ENTRY_BYTES + TERM_BYTES * len(one.terms) for one in entries)


def scores(query: str, entries: Sequence[Sequence[Entry]]) -> list[tuple[float, int]]:
    """Return how well each record fits a query, by the entries of each: 1 for the best, 0 for none of the words.

    The number is that of its entry that fits best.
    """
    index = PassageIndex()
    index.add(
        IndexedPassage(place, entry, 0, "", str(place))
        for place, some in enumerate(entries)
        for entry in some
    )
    given, places = WordScores(index).scores(weights_of([query]), NEIGHBOURS), index.column("message")
    found, best = np.zeros(len(entries)), np.zeros(len(entries), dtype=np.int64)
    np.maximum.at(found, places, given)
    # The first of the best entries is assigned last.
    upwards = np.lexsort((-np.arange(len(given)), given))
    best[places[upwards]] = upwards - np.searchsorted(places, places[upwards])
    shares: list[float] = (found / (found.max(initial=0.0) or 1.0)).tolist()
    return list(zip(shares, best.tolist(), strict=True))
