"""Passages: what hybrid recall finds. A passage is a message as it was said, or a stretch of a long one.

Memories are shortened and forgotten; passages are not: they stand for the archive, and the memories made from
them are found through their sources. `cut` makes passages of a text, `Entry` is one as the store keeps it, and
`PassageIndex` holds those of one agent as columns, with the terms that stand in them by passage *and* by term.

The rule guarded here: the shelf is derived. Whatever it holds can be made anew from the entries, and adding one
entry after the other gives the same shelf as loading them all.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import Terms, analysed, term_of, words_of
from ebbtide.retrieval.forms import terms_of_forms

LONGEST = 1500
"""Characters of a message that is one passage."""

STRETCH = 1000
"""Characters of a passage of a longer one."""

_END_OF_SENTENCE = re.compile(r"[.!?。！？…;；]['\")”’」』]*\s*|\n+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage as it is kept: which stretch of its message it is, in characters, and its terms."""

    begin: int
    length: int
    terms: Terms
    counts: NDArray[np.uint8]
    word_count: int


def cut(text: str) -> list[tuple[int, int]]:
    """(begin, end) of the passages of a message, in characters; long ones end where a sentence does."""
    if len(text) <= LONGEST:
        return [(0, len(text))]
    spans, begin = [], 0
    while len(text) - begin > LONGEST:
        ends = [
            found.end() for found in _END_OF_SENTENCE.finditer(text, begin + STRETCH // 2, begin + STRETCH)
        ]
        end = ends[-1] if ends else begin + STRETCH
        spans.append((begin, end))
        begin = end
    spans.append((begin, len(text)))
    return spans


def entries_of(text: str, speaker: str) -> list[Entry]:
    """The entries of a message; who said it is found like what was said."""
    return [entry_of(text[begin:end], speaker, begin) for begin, end in cut(text)]


def entry_of(stretch: str, speaker: str, begin: int) -> Entry:
    """The entry of a stretch of a message that begins at a place; a blank one is found by nothing."""
    return Entry(begin, len(stretch), *analysed(spoken(stretch, speaker) if stretch.strip() else ""))


def spoken(stretch: str, speaker: str) -> str:
    """A stretch with who said it before it, where that is known."""
    return f"{speaker}: {stretch}" if speaker else stretch


@dataclass(frozen=True, slots=True)
class Shelved:
    """What is known of an entry beside its text: which message, whose, when, in which conversation."""

    message: int
    entry: Entry
    time_ms: int
    speaker: str
    conversation: str
    """Passages of one conversation are neighbours; empty where nothing says that messages belong together."""
    is_withdrawn: bool = False
    """Whether the text is gone: the entry is then of the memories made of it."""
    role: str = "user"
    accepted_ms: int = 0
    """When the message was accepted."""


@dataclass(slots=True)
class Postings:
    """Which passages a term stands in, and how often: sorted by term, as one array for all terms."""

    terms: Terms = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    passages: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    counts: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    def of(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """(passages, counts) of a term."""
        key = np.uint32(term)
        begin = int(np.searchsorted(self.terms, key, side="left"))
        end = int(np.searchsorted(self.terms, key, side="right"))
        return self.passages[begin:end], self.counts[begin:end]

    def with_others(self, entries: Mapping[int, Entry]) -> Postings:
        """These postings where some passages have other terms; nothing of the old ones is left."""
        left = ~np.isin(self.passages, list(entries))
        terms, passages, counts = self.terms[left], self.passages[left], self.counts[left]
        new = _sorted(
            np.concatenate([entry.terms for _, entry in sorted(entries.items())]),
            np.repeat(
                np.array(sorted(entries), dtype=np.int32),
                [len(entry.terms) for _, entry in sorted(entries.items())],
            ),
            np.concatenate([entry.counts for _, entry in sorted(entries.items())]),
        )
        # By term, and among those of one term by passage.
        places = np.searchsorted(_order(terms, passages), _order(new.terms, new.passages))
        return Postings(
            np.insert(terms, places, new.terms),
            np.insert(passages, places, new.passages),
            np.insert(counts, places, new.counts),
        )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.terms.nbytes + self.passages.nbytes + self.counts.nbytes


def _sorted(terms: Terms, passages: NDArray[np.int32], counts: NDArray[np.uint8]) -> Postings:
    order = np.argsort(terms, kind="stable")
    return Postings(terms[order], passages[order], counts[order])


def _order(terms: Terms, passages: NDArray[np.int32]) -> NDArray[np.uint64]:
    order: NDArray[np.uint64] = (terms.astype(np.uint64) << np.uint64(32)) | passages.astype(np.uint64)
    return order


class PassageIndex:
    """The passages of one agent, by number from 0."""

    def __init__(self) -> None:
        self.speakers: list[str] = []
        self.speaker_numbers: dict[str, int] = {}
        self._speakers_by_term: dict[int, list[int]] = {}
        self._titles_by_term: dict[int, list[int]] = {}
        self._title_terms: list[frozenset[int]] = []
        self._said_by: list[list[int]] = []
        self._conversations: dict[str, int] = {}
        self._latest: dict[int, int] = {}
        self._columns = {name: array("q") for name in _COLUMNS}
        self._arrays: dict[str, NDArray[np.int64]] = {}
        self._sorted = Postings()
        self._tail: list[tuple[Terms, NDArray[np.uint8]]] = []
        self._tail_begin = 0
        self._tail_count = 0
        """Postings of the tail."""
        self._recent: Postings | None = None

    def __len__(self) -> int:
        return len(self._columns["message"])

    def add(self, shelved: Iterable[Shelved]) -> None:
        """Put passages on the shelf, in order."""
        self._arrays.clear()
        self._recent = None
        for one in shelved:
            self._add(one)
        if self._tail_count > max(FEWEST_MERGED, len(self._sorted.terms) // 4):
            self._merge()

    def _add(self, one: Shelved) -> None:
        number = len(self)
        conversation = self._conversations.setdefault(one.conversation, len(self._conversations))
        speaker = self.speaker_numbers.setdefault(one.speaker, len(self.speaker_numbers))
        if speaker == len(self.speakers):
            self.speakers.append(one.speaker)
            self._add_speaker(speaker, one.speaker)
        if len(self._said_by[speaker]) <= MOST_TITLED:
            self._said_by[speaker].append(number)
        before = self._latest.get(conversation, -1) if one.conversation else -1
        if before >= 0:
            self._columns["next"][before] = number
        self._latest[conversation] = number
        values = {
            "message": one.message,
            "begin": one.entry.begin,
            "length": one.entry.length,
            "time_ms": one.time_ms,
            "speaker": speaker,
            "conversation": conversation,
            "word_count": one.entry.word_count,
            "previous": before,
            "next": -1,
            "withdrawn": int(one.is_withdrawn),
            "role": ROLES.index(one.role),
            "accepted_ms": one.accepted_ms,
        }
        for name, value in values.items():
            self._columns[name].append(value)
        self._tail.append((one.entry.terms, one.entry.counts))
        self._tail_count += len(one.entry.terms)

    def retell(self, told: Mapping[int, Sequence[Entry]], *, is_withdrawn: bool) -> None:
        """Messages say something else: their passages are found by these entries, and by nothing else, from now on.

        `is_withdrawn` tells that they are without their text. ValueError unless there are as many as before.
        """
        messages = self.column("message")
        merged: dict[int, Entry] = {}
        for message, entries in told.items():
            first, end = np.searchsorted(messages, [message, message + 1]).tolist()
            if end - first != len(entries):
                raise ValueError("a message keeps its passages, whatever they say")
            for number, entry in enumerate(entries, first):
                values = {"begin": entry.begin, "length": entry.length, "word_count": entry.word_count}
                for name, value in {**values, "withdrawn": int(is_withdrawn)}.items():
                    self._columns[name][number] = value
                place = number - self._tail_begin
                if place < 0:
                    merged[number] = entry
                    continue
                self._tail_count += len(entry.terms) - len(self._tail[place][0])
                self._tail[place] = (entry.terms, entry.counts)
        self._arrays.clear()
        self._recent = None
        if merged:
            self._sorted = self._sorted.with_others(merged)

    def speakers_saying(self, terms: Iterable[int]) -> list[str]:
        """Speakers in whose names one of these terms stands: thousands of titles are not looked at one by one."""
        numbers = {number for term in terms for number in self._speakers_by_term.get(term, ())}
        return [self.speakers[number] for number in sorted(numbers)]

    def conversation_numbers(self, names: Iterable[str]) -> list[int]:
        """The numbers of conversations, as far as they are known."""
        return [self._conversations[name] for name in names if name in self._conversations]

    def _add_speaker(self, speaker: int, name: str) -> None:
        for word in set(words_of(name)):
            self._speakers_by_term.setdefault(term_of(word), []).append(speaker)
        title = list(words_of(name.partition("(")[0]))
        self._title_terms.append(frozenset(map(term_of, title)))
        self._said_by.append([])
        if title:
            self._titles_by_term.setdefault(term_of(max(title, key=len)), []).append(speaker)

    def named_by(self, terms: Collection[int], speaker: int) -> Iterator[tuple[int, int]]:
        """Passages that a passage with these terms names by their title, each with how many say the title's words.

        A title is the name of whoever has said hardly anything: the title of a document, a person heard once. The
        partners of a dialogue name each other all the time, and that leads nowhere. What stands in brackets after
        a title tells it apart from others, and is seldom said.
        """
        held = terms if isinstance(terms, Set) else frozenset(terms)
        for term in held & self._titles_by_term.keys():
            for titled in self._titles_by_term[term]:
                said = self._said_by[titled]
                if titled == speaker or len(said) > MOST_TITLED or not self._title_terms[titled] <= held:
                    continue
                saying = min(len(self.postings(one)[0]) for one in self._title_terms[titled])
                for passage in said:
                    yield passage, saying

    def _merge(self) -> None:
        recent = self._recent_postings()
        self._sorted = _sorted(
            np.concatenate([self._sorted.terms, recent.terms]),
            np.concatenate([self._sorted.passages, recent.passages]),
            np.concatenate([self._sorted.counts, recent.counts]),
        )
        self._tail, self._tail_begin, self._tail_count, self._recent = [], len(self), 0, None

    def _recent_postings(self) -> Postings:
        if self._recent is None:
            lengths = [len(terms) for terms, _ in self._tail]
            numbers = np.arange(self._tail_begin, self._tail_begin + len(self._tail), dtype=np.int32)
            self._recent = (
                _sorted(
                    np.concatenate([terms for terms, _ in self._tail]),
                    np.repeat(numbers, lengths),
                    np.concatenate([counts for _, counts in self._tail]),
                )
                if self._tail
                else Postings()
            )
        return self._recent

    def column(self, name: str) -> NDArray[np.int64]:
        """One column, by passage, of those named by `_COLUMNS`."""
        column = self._arrays.get(name)
        if column is None:
            column = self._arrays[name] = np.array(self._columns[name], dtype=np.int64)
        return column

    def beside(self, side: str) -> NDArray[np.int64]:
        """The neighbour of each passage, "previous" or "next", where the two belong to a dialogue; -1 for none.

        In a dialogue a few speakers take turns, and what one says is understood by what the other said. Messages
        of a single speaker, or of ever new ones (titles of documents), merely came one after the other; but the
        passages of one message always belong together.
        """
        name = f"beside {side}"
        found = self._arrays.get(name)
        if found is None:
            neighbours, messages = self.column(side), self.column("message")
            belongs = self._is_dialogue()[self.column("conversation")] | (messages[neighbours] == messages)
            found = self._arrays[name] = np.where((neighbours >= 0) & belongs, neighbours, -1)
        return found

    def _is_dialogue(self) -> NDArray[np.bool_]:
        """Whether two or more speakers take turns, by conversation."""
        conversations, speakers = self.column("conversation"), self.column("speaker")
        turns = np.bincount(conversations, minlength=1)
        pairs = np.unique(conversations * (len(self.speakers) + 1) + speakers)
        speaker_counts = np.bincount(pairs // (len(self.speakers) + 1), minlength=len(turns))
        found: NDArray[np.bool_] = (speaker_counts >= 2) & (turns >= TURNS_A_SPEAKER * speaker_counts)
        return found

    def postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """(passages, counts) of a term; of one that stands for several forms of a word, those of all, as one."""
        forms = terms_of_forms(term)
        return self._together(forms) if forms else self._postings(term)

    def _together(self, terms: Iterable[int]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """(passages, counts) of terms that count as one: each passage once, ascending."""
        some, counts = zip(*map(self._postings, terms), strict=True)
        passages, whose = np.unique(np.concatenate(some), return_inverse=True)
        added = np.bincount(whose, weights=np.concatenate(counts), minlength=len(passages))
        return passages, np.minimum(added, MOST_COUNTED).astype(np.uint8)

    def _postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        old, new = self._sorted.of(term), self._recent_postings().of(term)
        if not len(new[0]):
            return old
        return np.concatenate([old[0], new[0]]), np.concatenate([old[1], new[1]])

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return (
            PASSAGE_BYTES * len(self)
            + self._sorted.nbytes
            + TAIL_BYTES * len(self._tail)
            + POSTING_BYTES * self._tail_count
        )


_COLUMNS: Sequence[str] = (
    "message",
    "begin",
    "length",
    "time_ms",
    "speaker",
    "conversation",
    "word_count",
    "previous",
    "next",
    "withdrawn",
    "role",
    "accepted_ms",
)

ROLES = ("user", "assistant", "system", "")
"""The roles of messages, as the column `role` numbers them; empty where it is not known."""

MOST_COUNTED = 255
"""Occurrences of a term in a passage that are told apart."""

TURNS_A_SPEAKER = 2
"""Turns that speakers of a dialogue have, on average, at least."""

MOST_TITLED = 3
"""Passages of a speaker whose name is a title."""

TAIL_BYTES, POSTING_BYTES = 300, 5
"""What the arrays of a passage that is not merged yet cost by themselves, and each posting in them."""

PASSAGE_BYTES = 282
"""What a passage holds beside its postings: columns, the arrays made of them, those of the words signal."""

FEWEST_MERGED = 20_000
"""Postings of new passages that are sorted by themselves before they are merged with the others."""
