"""Recollection: a question answered over everything an agent ever heard (hybrid recall, the job).

cue → signals → one ranking → passages worded as memories → what fits is packed. One read transaction; nothing is
changed. A passage whose memories all live as they were made is told as a *living* memory; one that was shortened
or forgotten is told from the archive, marked *archived*; one whose batch no digest has reached, *pending*.

Deliberately not here: how signals are computed and fused (`retrieval/`), limits and forms (`verbs/recall.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.archive import Archive
from ebbtide.memory.association import associate
from ebbtide.memory.network import Network
from ebbtide.memory.wording import word_answer
from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.packing import Candidate, Packed, pack
from ebbtide.retrieval.question import Question, understand
from ebbtide.retrieval.ranking import Asked, Ranking, rank
from ebbtide.store.port import ReadTransaction
from ebbtide.vocabulary import BatchState, MessageRecord, Node, NodeId, holds_han, node_text_id

FEWEST_CANDIDATES = 20
"""Passages looked at for an answer, beside half as many again as are wanted: some may be near copies of others."""

FEWEST_FOR_A_BUDGET = 100
"""Passages looked at where a budget decides: small ones fill what large ones leave."""

LIVING, ARCHIVED, PENDING = "living", "archived", "pending"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question with everything that narrows its answer."""

    query: str
    max_results: int
    depth: int = 2
    start_nodes: Sequence[NodeId] = ()
    token_budget: int | None = None
    include_archive: bool = True
    speakers: Sequence[str] = ()
    conversations: Sequence[str] = ()
    time_range: tuple[int | None, int | None] = (None, None)
    without: Collection[str] = ()
    cites: bool = False
    """Whether each memory names its source in the text."""


@dataclass(frozen=True, slots=True)
class Cited:
    """Where a memory came from: a slice of a message, in UTF-8 bytes."""

    record: MessageRecord
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Recollection:
    """One memory of an answer."""

    passage: int
    message: int
    node_ids: tuple[NodeId, ...]
    content: str
    state: str
    source: Cited
    score: float = 0.0
    kind: str = "episode"

    def told(self, *, cites: bool, locale: str) -> str:
        """What the answer says of it: its content, with its source behind it where that is wanted."""
        if not cites:
            return self.content
        is_chinese = holds_han(self.content) if locale == "auto" else locale == "zh"
        source = self.source.record.told_place
        return f"{self.content}（来源：{source}）" if is_chinese else f"{self.content} (source: {source})"

    @property
    def text_id(self) -> str:
        """The id of its first living node, else that of its message."""
        return node_text_id(self.node_ids[0]) if self.node_ids else f"m{self.message}"


@dataclass(frozen=True, slots=True)
class Recollected:
    """An answer: memories in order; what was left out, with the reason; which signals gave what."""

    memories: tuple[Recollection, ...] = ()
    dropped: tuple[tuple[Recollection, str], ...] = ()
    ranking: Ranking | None = None
    question: Question | None = None


@dataclass(slots=True)
class Recollector:
    """Answers one question on one agent, inside one read transaction."""

    txn: ReadTransaction
    archive: Archive
    network: Network
    now_ms: int
    locale: str
    count_tokens: Callable[[str], int]
    _batches: dict[int, bool] = field(default_factory=dict)

    def answer(self, wanted: Wanted) -> Recollected:
        """The best memories for a question, best first."""
        shelf = self.archive.shelf
        if not len(shelf):
            return Recollected()
        question = self._understood(wanted.query)
        asked = Asked(
            terms=_terms(question, wanted.query),
            speakers=[shelf.speaker_numbers[name] for name in question.speakers],
            dates=[(span.begin_ms, span.end_ms) for span in question.dates],
            graph=self._graph(wanted),
            allowed=self._allowed(wanted),
            without=wanted.without,
        )
        most = wanted.max_results * 3 // 2 + FEWEST_CANDIDATES
        if wanted.token_budget is not None:
            most = max(most, FEWEST_FOR_A_BUDGET)
        ranking = rank(shelf, self.archive.words, asked, most)
        found = self._worded(ranking, wanted)
        packed = self._packed(found, wanted)
        by_key: dict[Hashable, Recollection] = {one.passage: one for one in found}
        return Recollected(
            tuple(by_key[kept.key] for kept in packed.kept),
            tuple((by_key[key], why) for key, why in packed.dropped),
            ranking,
            question,
        )

    def _understood(self, query: str) -> Question:
        shelf = self.archive.shelf
        known = shelf.speakers_saying(map(term_of, words_of(query)))
        question = understand(query, speakers=known, reference_ms=self._reference_ms())
        named = tuple(name for name in known if name.casefold() in question.speakers)
        return replace(question, speakers=named)

    def _reference_ms(self) -> int:
        """The time a question is asked at: that of the latest message, since "last May" is meant from there."""
        return int(self.archive.shelf.column("time_ms").max(initial=0)) or self.now_ms

    def _graph(self, wanted: Wanted) -> NDArray[np.float64]:
        """How strongly each passage is reached from the focus, by the best of its memories."""
        reached = associate(self.network, wanted.depth, wanted.start_nodes or None)
        return self.archive.by_passage(reached.node_ids, reached.worths)

    def _allowed(self, wanted: Wanted) -> NDArray[np.bool_] | None:
        shelf = self.archive.shelf
        allowed = np.ones(len(shelf), dtype=np.bool_)
        if wanted.speakers:
            numbers = [
                shelf.speaker_numbers[name] for name in wanted.speakers if name in shelf.speaker_numbers
            ]
            allowed &= np.isin(shelf.column("speaker"), numbers)
        if wanted.conversations:
            allowed &= np.isin(shelf.column("conversation"), shelf.conversation_numbers(wanted.conversations))
        begin, end = wanted.time_range
        if begin is not None:
            allowed &= shelf.column("time_ms") >= begin
        if end is not None:
            allowed &= shelf.column("time_ms") < end
        return allowed

    # --- passages as memories ----------------------------------------------------------------------

    def _worded(self, ranking: Ranking, wanted: Wanted) -> list[Recollection]:
        found = []
        for passage, score in zip(ranking.passages.tolist(), ranking.scores.tolist(), strict=True):
            one = self._recollection(passage, score, wanted.include_archive)
            if one is not None:
                found.append(one)
        return found

    def _recollection(self, passage: int, score: float, include_archive: bool) -> Recollection | None:
        shelf = self.archive.shelf
        record = self.txn.message(int(shelf.column("message")[passage]))
        text = None if record is None else self.txn.message_text(record)
        if record is None or text is None:
            return None
        begin = int(shelf.column("begin")[passage])
        stretch = text[begin : begin + int(shelf.column("length")[passage])]
        source = Cited(record, len(text[:begin].encode()), len(stretch.encode()))
        made = self.archive.memories_of(record.number)
        living = self._living(made, source)
        label = living[0].prefix if living else f"{record.speaker}: " if record.speaker else ""
        is_whole = len(living) > 0 and all(len(node.content) == node.original_length for node in living)
        if is_whole and self._covers(living, source):
            state, content = LIVING, label + stretch
        elif not include_archive:
            if not living:
                return None
            state, content = LIVING, label + " ".join(node.content.removeprefix(label) for node in living)
        else:
            state, content = (
                PENDING if not made and self._is_waiting(record.batch) else ARCHIVED,
                label + stretch,
            )
        ids = tuple(node.id for node in living)
        return Recollection(passage, record.number, ids, content, state, source, score)

    def _living(self, made: Sequence[NodeId], source: Cited) -> list[Node]:
        """The living memories that were made from a stretch, in its order."""
        nodes = [node for node in map(self.txn.node, made) if node is not None]
        end = source.offset + source.length
        return [
            node
            for node in nodes
            if any(
                one.message == source.record.number
                and one.offset < end
                and one.offset + one.length > source.offset
                for one in node.sources
            )
        ]

    def _covers(self, living: Sequence[Node], source: Cited) -> bool:
        """Whether the memories say all of the stretch, but for what stands between two of them."""
        said = sum(
            one.length for node in living for one in node.sources if one.message == source.record.number
        )
        return said >= MOSTLY * source.length

    def _is_waiting(self, number: int) -> bool:
        if number not in self._batches:
            batch = self.txn.batch(number)
            self._batches[number] = batch is not None and batch.state != BatchState.DIGESTED.value
        return self._batches[number]

    # --- packing -----------------------------------------------------------------------------------

    def _packed(self, found: Sequence[Recollection], wanted: Wanted) -> Packed:
        candidates = [
            Candidate(
                one.passage,
                one.told(cites=wanted.cites, locale=self.locale),
                one.score,
                self._terms_of(one),
            )
            for one in found
        ]
        return pack(
            candidates,
            max_results=wanted.max_results,
            token_budget=wanted.token_budget,
            count=self.count_tokens,
            word=lambda contents: word_answer(contents, (), self.locale),
        )

    def _terms_of(self, one: Recollection) -> frozenset[int]:
        """The terms of a passage as they are kept; analysed anew where they are not."""
        kept = self.txn.passages_of(one.message)
        if kept is None:
            return frozenset(map(term_of, words_of(one.content)))
        begin = int(self.archive.shelf.column("begin")[one.passage])
        terms = next((entry.terms for entry in kept if entry.begin == begin), b"")
        return frozenset(np.frombuffer(terms, dtype="<u4").tolist())


MOSTLY = 0.9
"""Living memories that say so much of a stretch say it: what they leave out is white space and stray marks."""


def _terms(question: Question, query: str) -> dict[int, float]:
    """The terms to look for, each with its weight; those of the whole query where nothing else is left."""
    words = Counter(words_of(question.text)) or Counter(words_of(query))
    for phrase in question.phrases:
        words.update(words_of(phrase))
    return {term_of(word): 1.0 for word in words}
