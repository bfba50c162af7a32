"""The passage index of hybrid recall. A passage is a message, or a part of a long one.

Memories are shortened and forgotten, passages are not: they represent the archive, and memories are found through their
source passages. `cut` splits a text into passages, `Entry` is the stored form of a passage, and `PassageIndex` holds
those of one agent as columns and postings.

The index is derived data: it can be rebuilt from the entries, and incremental additions give the same index as loading
all entries.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import Terms, analysed, term_of, words_of
from ebbtide.retrieval.forms import terms_of_forms
from ebbtide.retrieval.marks import UNKNOWN, marks_of

MAX_PASSAGE_CHARS = 1500
"""Characters of a message that forms one passage."""

SPLIT_CHARS = 1000
"""Characters of a passage of a longer message."""

_END_OF_SENTENCE = re.compile(r"[.!?。！？…;；]['\")”’」』]*\s*|\n+")


@dataclass(frozen=True, slots=True)
class Entry:
    """The stored form of a passage: its position in the message, in characters, its terms, and marks of its text."""

    begin: int
    length: int
    terms: Terms
    counts: NDArray[np.uint8]
    word_count: int
    marks: int = UNKNOWN


def cut(text: str) -> list[tuple[int, int]]:
    """Return the (begin, end) of the passages of a message. Long messages are split at sentence ends."""
    if len(text) <= MAX_PASSAGE_CHARS:
        return [(0, len(text))]
    spans, begin = [], 0
    while len(text) - begin > MAX_PASSAGE_CHARS:
        ends = [
            found.end()
            for found in _END_OF_SENTENCE.finditer(text, begin + SPLIT_CHARS // 2, begin + SPLIT_CHARS)
        ]
        end = ends[-1] if ends else begin + SPLIT_CHARS
        spans.append((begin, end))
        begin = end
    spans.append((begin, len(text)))
    return spans


def entries_of(text: str, speaker: str) -> list[Entry]:
    """Return the entries of a message. The speaker's name is searchable like the text."""
    return [entry_of(text[begin:end], speaker, begin) for begin, end in cut(text)]


def entry_of(stretch: str, speaker: str, begin: int) -> Entry:
    """Return the entry of a part of a message. A blank one has no terms."""
    analysis = analysed(with_speaker(stretch, speaker) if stretch.strip() else "")
    return Entry(begin, len(stretch), *analysis, marks_of(stretch))


def with_speaker(stretch: str, speaker: str) -> str:
    """Return a text with the speaker's name in front, if it is known."""
    return f"{speaker}: {stretch}" if speaker else stretch


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """An entry with its message, time, speaker and conversation."""

    message: int
    entry: Entry
    time_ms: int
    speaker: str
    conversation: str
    """Passages of the same conversation are neighbours. Empty if the conversation is unknown."""
    is_withdrawn: bool = False
    """Whether the text was deleted; the entry is then made of its memories."""
    role: str = "user"
    accepted_ms: int = 0
    """When the message was accepted."""
    is_alone: bool = False
    """Whether the conversation is only the batch of the message, because it has no id."""


@dataclass(slots=True)
class Postings:
    """The passages and counts of each term, sorted by term, as one array."""

    terms: Terms = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    passages: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    counts: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    def of(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return the passages and counts of a term."""
        key = np.uint32(term)
        begin = int(np.searchsorted(self.terms, key, side="left"))
        end = int(np.searchsorted(self.terms, key, side="right"))
        return self.passages[begin:end], self.counts[begin:end]

    def counts_of(self, terms: Sequence[int]) -> NDArray[np.int64]:
        """Return the number of passages of each term."""
        keys = np.array(terms, dtype=np.uint32)
        counts: NDArray[np.int64] = self.terms.searchsorted(keys, "right") - self.terms.searchsorted(keys)
        return counts

    def with_replaced(self, entries: Mapping[int, Entry]) -> Postings:
        """Return the postings with the terms of some passages replaced."""
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
        # Sorted by term, then by passage.
        places = np.searchsorted(_order(terms, passages), _order(new.terms, new.passages))
        return Postings(
            np.insert(terms, places, new.terms),
            np.insert(passages, places, new.passages),
            np.insert(counts, places, new.counts),
        )

    @property
    def nbytes(self) -> int:
        """Return the memory used."""
        return self.terms.nbytes + self.passages.nbytes + self.counts.nbytes


def _sorted(terms: Terms, passages: NDArray[np.int32], counts: NDArray[np.uint8]) -> Postings:
    order = np.argsort(terms, kind="stable")
    return Postings(terms[order], passages[order], counts[order])


def _order(terms: Terms, passages: NDArray[np.int32]) -> NDArray[np.uint64]:
    order: NDArray[np.uint64] = (terms.astype(np.uint64) << np.uint64(32)) | passages.astype(np.uint64)
    return order


class PassageIndex:
    """The passages of one agent, numbered from 0."""

    def __init__(self) -> None:
        self.speakers: list[str] = []
        self.speaker_numbers: dict[str, int] = {}
        self._speakers_by_term: dict[int, list[int]] = {}
        self._titles_by_term: dict[int, list[int]] = {}
        self._title_terms: list[frozenset[int]] = []
        self._said_by: list[list[int]] = []
        self._titled_count = 0
        """Speakers with so few passages that their names may be titles."""
        self._conversations: dict[str, int] = {}
        self._conversation_count = 0
        self._latest: dict[int, int] = {}
        self._was_alone = False
        """`is_alone` of the last passage."""
        self._columns = {name: array("q") for name in _COLUMNS}
        self._arrays: dict[str, NDArray[np.int64]] = {}
        self._sorted = Postings()
        self._tail: list[tuple[Terms, NDArray[np.uint8]]] = []
        self._tail_begin = 0
        self._tail_count = 0
        """Postings of the tail."""
        self._recent: Postings | None = None
        self._found: dict[int, tuple[NDArray[np.int32], NDArray[np.uint8]]] = {}
        """Postings that the last queries requested, by term."""

    def __len__(self) -> int:
        return len(self._columns["message"])

    def add(self, passages_to_add: Iterable[IndexedPassage]) -> None:
        """Add passages in order."""
        self._forget_derived()
        for one in passages_to_add:
            self._add(one)
        if self._tail_count > max(MIN_MERGED, len(self._sorted.terms) // 4):
            self._merge()

    def _forget_derived(self) -> None:
        self._arrays.clear()
        self._found.clear()
        self._recent = None

    def _add(self, one: IndexedPassage) -> None:
        number = len(self)
        conversation = self._conversation_of(one)
        speaker = self.speaker_numbers.setdefault(one.speaker, len(self.speaker_numbers))
        if speaker == len(self.speakers):
            self.speakers.append(one.speaker)
            self._add_speaker(speaker, one.speaker)
        said = self._said_by[speaker]
        if len(said) <= MAX_TITLED:
            said.append(number)
            self._titled_count += (len(said) == 1) - (len(said) > MAX_TITLED)
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
            "marks": one.entry.marks,
        }
        for name, value in values.items():
            self._columns[name].append(value)
        self._tail.append((one.entry.terms, one.entry.counts))
        self._tail_count += len(one.entry.terms)

    def _conversation_of(self, one: IndexedPassage) -> int:
        """Return the number of the conversation of a new passage.

        A client that stores each message alone, as a language model does with a tool, gives no conversation. A reply
        of the assistant then belongs to the conversation of the user's message directly before it.
        """
        columns, may_reply = self._columns, one.is_alone and self._was_alone and one.role == "assistant"
        self._was_alone = one.is_alone
        number = self._conversations.get(one.conversation)
        if number is None:
            is_reply = (
                may_reply
                and columns["role"][-1] == ROLES.index("user")
                and 0 <= one.time_ms - columns["time_ms"][-1] <= MAX_REPLY_MS
            )
            number = columns["conversation"][-1] if is_reply else self._conversation_count
            self._conversation_count += not is_reply
            self._conversations[one.conversation] = number
        return number

    def replace_entries(self, replacements: Mapping[int, Sequence[Entry]], *, is_withdrawn: bool) -> None:
        """Replace the entries of messages whose text has changed.

        `is_withdrawn` marks messages without text. Raise ValueError unless the number of passages is unchanged.
        """
        messages = self.column("message")
        merged: dict[int, Entry] = {}
        for message, entries in replacements.items():
            first, end = np.searchsorted(messages, [message, message + 1]).tolist()
            if end - first != len(entries):
                raise ValueError("the number of passages of a message must not change")
            for number, entry in enumerate(entries, first):
                values = {"begin": entry.begin, "length": entry.length, "word_count": entry.word_count}
                for name, value in {**values, "marks": entry.marks, "withdrawn": int(is_withdrawn)}.items():
                    self._columns[name][number] = value
                place = number - self._tail_begin
                if place < 0:
                    merged[number] = entry
                    continue
                self._tail_count += len(entry.terms) - len(self._tail[place][0])
                self._tail[place] = (entry.terms, entry.counts)
        self._forget_derived()
        if merged:
            self._sorted = self._sorted.with_replaced(merged)

    def speakers_named_by(self, terms: Iterable[int]) -> list[str]:
        """Return the speakers with one of these terms in their name, found by term, not by a scan."""
        numbers = {number for term in terms for number in self._speakers_by_term.get(term, ())}
        return [self.speakers[number] for number in sorted(numbers)]

    def conversation_numbers(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of the known conversations."""
        return [self._conversations[name] for name in names if name in self._conversations]

    def _add_speaker(self, speaker: int, name: str) -> None:
        for word in set(words_of(name)):
            self._speakers_by_term.setdefault(term_of(word), []).append(speaker)
        title = list(words_of(name.partition("(")[0]))
        self._title_terms.append(frozenset(map(term_of, title)))
        self._said_by.append([])
        if title:
            self._titles_by_term.setdefault(term_of(max(title, key=len)), []).append(speaker)

    @property
    def has_titles(self) -> bool:
        """Whether `passages_named_by` may find anything."""
        return self._titled_count > 0

    def passages_named_by(self, terms: Collection[int], speaker: int) -> Iterator[tuple[int, int]]:
        """Yield passages whose title the given terms contain, with the number of passages that mention the title.

        A title is the name of a speaker with hardly any passages: the title of a document, or a person heard once.
        Partners of a dialogue mention each other too often to be useful. Text in brackets after a title distinguishes
        it and need not be mentioned.
        """
        held = terms if isinstance(terms, Set) else frozenset(terms)
        for term in held & self._titles_by_term.keys():
            for titled in self._titles_by_term[term]:
                said = self._said_by[titled]
                if titled == speaker or len(said) > MAX_TITLED or not self._title_terms[titled] <= held:
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
        """Return one of `_COLUMNS`, by passage."""
        column = self._arrays.get(name)
        if column is None:
            column = self._arrays[name] = np.array(self._columns[name], dtype=np.int64)
        return column

    def marks(self, passages: NDArray[np.int64], text_of: Callable[[int], str] | None) -> NDArray[np.int64]:
        """Return the marks of the texts of passages; 0 for passage -1, and if texts are not available.

        Marks that were not stored are computed from the text and remembered.
        """
        if text_of is None or not len(self):
            return np.zeros(len(passages), dtype=np.int64)
        column = self.column("marks")
        for passage in passages[(column[passages] == UNKNOWN) & (passages >= 0)].tolist():
            column[passage] = self._columns["marks"][passage] = marks_of(text_of(passage))
        return np.where(passages >= 0, column[passages], 0)

    def neighbours(self, side: str) -> NDArray[np.int64]:
        """Return the "previous" or "next" passage of each passage in the same dialogue, or -1.

        In a dialogue, a user and an assistant or a few speakers take turns, and a message is understood through the one
        before it. Messages of one speaker, or of ever new ones (titles of documents), are not a dialogue. The passages
        of one message are always neighbours.
        """
        name = f"neighbours on the {side} side"
        found = self._arrays.get(name)
        if found is None:
            neighbours, messages = self.column(side), self.column("message")
            belongs = self._is_dialogue()[self.column("conversation")] | (messages[neighbours] == messages)
            found = self._arrays[name] = np.where((neighbours >= 0) & belongs, neighbours, -1)
        return found

    def _is_dialogue(self) -> NDArray[np.bool_]:
        """Return by conversation whether an assistant replies to a user, or two or more speakers take turns."""
        conversations, speakers = self.column("conversation"), self.column("speaker")
        turns = np.bincount(conversations, minlength=1)
        has_user, has_assistant = (
            np.bincount(conversations[self.column("role") == ROLES.index(role)], minlength=len(turns)) > 0
            for role in ("user", "assistant")
        )
        pairs = np.unique(conversations * (len(self.speakers) + 1) + speakers)
        speaker_counts = np.bincount(pairs // (len(self.speakers) + 1), minlength=len(turns))
        takes_turns = (speaker_counts >= 2) & (turns >= TURNS_A_SPEAKER * speaker_counts)
        found: NDArray[np.bool_] = takes_turns | (has_user & has_assistant)
        return found

    def postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return the passages and counts of a term, including all forms of its word."""
        found = self._found.get(term)
        if found is None:
            if len(self._found) >= MAX_FOUND:
                self._found.clear()
            forms = terms_of_forms(term)
            found = self._found[term] = self._merged_postings(forms) if forms else self._postings(term)
        return found

    def passage_counts(self, terms: Sequence[int]) -> list[int]:
        """Return the number of passages of each term, including all forms of its word."""
        counts = self._sorted.counts_of(terms) + self._recent_postings().counts_of(terms)
        return [
            len(self.postings(term)[0]) if terms_of_forms(term) else count
            for term, count in zip(terms, counts.tolist(), strict=True)
        ]

    def _merged_postings(self, terms: Iterable[int]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return the passages and counts of several terms that count as one, each passage once, ascending."""
        some, counts = zip(*map(self._postings, terms), strict=True)
        passages, whose = np.unique(np.concatenate(some), return_inverse=True)
        added = np.bincount(whose, weights=np.concatenate(counts), minlength=len(passages))
        return passages, np.minimum(added, MAX_COUNT).astype(np.uint8)

    def _postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        old, new = self._sorted.of(term), self._recent_postings().of(term)
        if not len(new[0]):
            return old
        return np.concatenate([old[0], new[0]]), np.concatenate([old[1], new[1]])

    @property
    def nbytes(self) -> int:
        """Return the approximate memory used."""
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
    "marks",
)

ROLES = ("user", "assistant", "system", "", "tool", "statement")
"""The roles of messages in the order of their numbers in the column `role`; empty if unknown. The words of a statement
have a number of their own here, though their role is `tool`."""

MAX_FOUND = 32
"""Terms whose postings are cached: the signals of a query request each of its terms several times."""

MAX_COUNT = 255
"""Maximum count of a term in a passage."""

TURNS_A_SPEAKER = 2
"""Minimum average number of turns per speaker of a dialogue."""

MAX_REPLY_MS = 600_000
"""Longest time between a message and a reply that was stored alone."""

MAX_TITLED = 3
"""Maximum passages of a speaker whose name counts as a title."""

TAIL_BYTES, POSTING_BYTES = 300, 5
"""Memory of a passage that is not merged yet, and of each of its postings."""

PASSAGE_BYTES = 298
"""Memory of a passage besides its postings: columns, arrays made of them, and those of the words signal."""

MIN_MERGED = 20_000
"""Postings of new passages that are collected before they are merged."""
