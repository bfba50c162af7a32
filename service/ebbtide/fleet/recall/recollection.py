"""Recollection: a question answered over everything an agent ever heard (hybrid recall, the job).

cue → signals → one ranking → passages worded as memories → what fits is packed. One read transaction; nothing is
changed. A passage whose memories all live as they were made is told as a *living* memory; one that was shortened
or forgotten is told from the archive, marked *archived*; one whose batch no digest has reached, *pending*.

Deliberately not here: how signals are computed and fused (`retrieval/`), limits and forms (`verbs/recall.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import FieldViolation, InvalidRequest, Precondition
from ebbtide.fleet.archive.archive import Archive, terms_of
from ebbtide.fleet.archive.retention import is_digested
from ebbtide.fleet.recall.query import Query, allowed_passages
from ebbtide.fleet.recall.recollected import (
    ARCHIVED,
    LIVING,
    PENDING,
    Cited,
    Heard,
    Hit,
    Recollected,
)
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.association import associate
from ebbtide.memory.network import Network
from ebbtide.memory.pagerank import closeness
from ebbtide.memory.wording import word_answer
from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.records import MessageRecord, Node
from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.fallback import why_needed
from ebbtide.retrieval.forms import first_form
from ebbtide.retrieval.lexical import Scores, rarity
from ebbtide.retrieval.packing import Candidate, Packed, pack
from ebbtide.retrieval.question import Question, understand
from ebbtide.retrieval.ranking import Ranking, rank
from ebbtide.retrieval.ranking_request import RankingRequest
from ebbtide.retrieval.sentences import key_sentences
from ebbtide.store.port import ReadTransaction

FEWEST_CANDIDATES = 20
"""Passages looked at for an answer, beside half as many again as are wanted: some may be near copies of others."""

FEWEST_FOR_A_BUDGET = 100
"""Passages looked at where a budget decides: small ones fill what large ones leave."""

MOST_FOR_A_BUDGET = 1000
"""And no more: choosing among them takes as long as they are many times those chosen."""

FADING_MS = 14 * 86_400_000
"""An episode is worth 1/e of what a new one is after two weeks."""

FOCUS_SHARE = 0.2
"""How often links are followed from the focus, for each time they are followed from what was found first."""

SINGLE_WEIGHT = 0.3
"""Of a word of one Chinese character beside longer ones."""

BUDGETS_LOOKED_AT = 3
"""Candidates that would fill the budget so often are enough to choose from."""


@dataclass(slots=True)
class Recollector:
    """Answers one question on one agent, inside one read transaction."""

    txn: ReadTransaction
    archive: Archive
    network: Network
    now_ms: int
    locale: str
    count_tokens: Callable[[str], int]
    texts: TextWorkers = INLINE
    _batches: dict[int, bool] = field(default_factory=dict)
    _texts: dict[int, tuple[MessageRecord, str | None] | None] = field(default_factory=dict)
    _messages: dict[int, Heard | None] = field(default_factory=dict)

    def answer(self, query: Query) -> Recollected:
        """The best memories for a question, best first."""
        shelf = self.archive.shelf
        question = self._understood(query.text)
        if not len(shelf):
            return Recollected(question=question)
        is_archive_optional = query.archive == "when_needed"
        if is_archive_optional:
            # Living memories first: they may suffice.
            query = replace(query, archive="never")
        semantic, window, why_off = self._meaning(query)
        asked = RankingRequest(
            terms=weighted_terms(question, query.text),
            parts=[
                terms for part in question.parts if (terms := weighted_terms(self._understood(part), part))
            ],
            speakers=[shelf.speaker_numbers[name] for name in question.speakers],
            dates=[(span.begin_ms, span.end_ms) for span in question.dates],
            semantic=semantic,
            window=window,
            why_off={"semantic": why_off, "window": why_off},
            graph=None if "graph" in query.without else self._graph(query),
            names=self._names,
            linked=partial(self._linked, query.start_nodes),
            asks_for=question.asks_for,
            texts=self._text_at,
            worths=self._worths,
            allowed=allowed_passages(query, self.archive, self.network),
            without=query.without,
        )
        most = query.max_results * 3 // 2 + FEWEST_CANDIDATES
        if query.token_budget is not None:
            most = min(max(most, FEWEST_FOR_A_BUDGET), MOST_FOR_A_BUDGET)
        ranking = rank(shelf, self.archive.words, asked, most)
        archive: str = query.archive
        if is_archive_optional:
            archive = why_needed(question, ranking.scores) or "not needed"
            if archive != "not needed":
                query = replace(query, archive="always")
                asked = replace(asked, allowed=allowed_passages(query, self.archive, self.network))
                ranking = rank(shelf, self.archive.words, asked, most)
        found = self._worded(ranking, query)
        packed = self._packed(found, query, self._idf(asked.terms))
        by_key: dict[Hashable, Hit] = {one.passage: one for one in found}
        return Recollected(
            tuple(
                _told_as(by_key[kept.key], kept.text, kept.key in packed.shortened) for kept in packed.kept
            ),
            tuple((by_key[key], why) for key, why in packed.dropped),
            ranking,
            question,
            archive,
        )

    def _understood(self, query: str) -> Question:
        shelf = self.archive.shelf
        known = shelf.speakers_saying(map(term_of, words_of(query)))
        read = partial(understand, speakers=known, reference_ms=self._reference_ms())
        question = self.texts.call(len(query), read, query)
        named = tuple(name for name in known if name.casefold() in question.speakers)
        return replace(question, speakers=named)

    def _reference_ms(self) -> int:
        """The time a question is asked at: that of the latest message, since "last May" is meant from there.

        A message from the future does not move it beyond now.
        """
        times_ms = self.archive.shelf.column("time_ms")
        return min(int(times_ms.max()), self.now_ms) if len(times_ms) else self.now_ms

    def _names(self, passage: int) -> Iterable[tuple[int, int]]:
        shelf = self.archive.shelf
        return shelf.named_by(self._terms_at(passage), int(shelf.column("speaker")[passage]))

    def _meaning(self, query: Query) -> tuple[Scores | None, Scores | None, str]:
        """How near passages are to the query in meaning, alone and with their neighbours; else why nobody knows.

        VECTORS_UNAVAILABLE where nobody knows, and nothing else was asked by; INVALID_VALUE for a vector of no use.
        """
        vectors = self.archive.vectors
        if query.needs_vectors and len(self.archive.shelf):
            if vectors is None or vectors.model != query.embedding_model:
                raise Precondition(
                    "there are no vectors of the embedding model in force to hold this one against",
                    reason="VECTORS_UNAVAILABLE",
                )
            if query.vector is not None and len(query.vector) != vectors.dimension:
                raise InvalidRequest(
                    f"vector: it has {len(query.vector)} numbers; allowed: {vectors.dimension}",
                    reason="INVALID_VALUE",
                    violations=[FieldViolation("vector", f"allowed: {vectors.dimension} numbers")],
                )
        return self._nearness(query)

    def _nearness(self, query: Query) -> tuple[Scores | None, Scores | None, str]:
        vectors, shelf = self.archive.vectors, self.archive.shelf
        if query.vector is None:
            return None, None, query.no_vector
        if vectors is None or vectors.model != query.embedding_model:
            return None, None, "no vectors yet"
        if vectors.dimension != len(query.vector):
            return None, None, "vectors of another size"
        near = window = None
        if "semantic" not in query.without:
            near = vectors.scores(query.vector, len(shelf))
        if "window" not in query.without:
            beside = shelf.beside("previous"), shelf.beside("next")
            window = vectors.window_scores(query.vector, len(shelf), *beside)
        return near, window, "no vectors yet"

    def _graph(self, query: Query) -> NDArray[np.float64]:
        """How strongly each passage is reached from the focus, by the best of its memories."""
        reached = associate(self.network, query.depth, query.start_nodes or None)
        return self.archive.by_passage(reached.node_ids, reached.worths)

    def _linked(
        self, start_nodes: Sequence[NodeId], first: NDArray[np.int64], scores: Scores
    ) -> NDArray[np.float64]:
        """How close each passage is to the first ones, and to the focus, by all ways over links together."""
        messages = self.archive.shelf.column("message")[first].tolist()
        memories = [self.archive.memories_of(message) for message in messages]
        shares = [
            np.full(len(made), score / len(made))
            for made, score in zip(memories, scores.tolist(), strict=True)
            if made
        ]
        begun = np.concatenate([*shares, np.zeros(0)])
        focus = list(start_nodes or self.network.focus)
        lent = FOCUS_SHARE * float(begun.sum()) / max(len(focus), 1)
        start = np.array([node for made in (*memories, focus) for node in made], dtype=np.int64)
        near = closeness(self.network, start, np.append(begun, [lent] * len(focus)))
        return self.archive.by_passage(near.node_ids, near.worths)

    def _worths(self, passages: NDArray[np.int64]) -> NDArray[np.float64]:
        """What passages are worth whatever is asked: half how new they are, half how much lives of what they said.

        The second is importance as the last pass saw it: a memory keeps that share of its length.
        """
        ages_ms = self._reference_ms() - self.archive.shelf.column("time_ms")[passages]
        newness = np.exp(-np.maximum(ages_ms, 0) / FADING_MS)
        kept = self.archive.best_of_memories(passages, self.network.kept_shares)
        return (newness + kept) / 2

    # --- passages as memories ----------------------------------------------------------------------

    def _worded(self, ranking: Ranking, query: Query) -> list[Hit]:
        found: list[Hit] = []
        tokens = 0
        for passage, score in zip(ranking.passages.tolist(), ranking.scores.tolist(), strict=True):
            one = self._recollection(passage, score, query.archive == "always")
            if one is None:
                continue
            found.append(one)
            if query.token_budget is not None:
                tokens += self.count_tokens(one.content)
                if tokens > BUDGETS_LOOKED_AT * query.token_budget and len(found) >= FEWEST_CANDIDATES:
                    break
        return found

    def _recollection(self, passage: int, score: float, with_archive: bool) -> Hit | None:
        shelf = self.archive.shelf
        heard = self._heard(int(shelf.column("message")[passage]))
        if heard is None:
            return None
        begin = int(shelf.column("begin")[passage])
        source = heard.stretch(begin, int(shelf.column("length")[passage]))
        stretch = source.quote
        if heard.text is not None and not stretch.strip():
            return None  # nothing was said, or all of it was withdrawn
        source = replace(source, metadata=self.archive.facts.of(passage))
        living = [node for node in heard.nodes if any(True for _ in _within(node, source))]
        label = living[0].prefix if living else f"{heard.record.speaker}: " if heard.record.speaker else ""
        if heard.text is None or not with_archive:
            if not living:
                return None
            state, content = LIVING, label + " ".join(node.content.removeprefix(label) for node in living)
        elif _is_told_by(living, stretch, source):
            state, content = LIVING, label + stretch
        else:
            is_pending = not living and not is_digested(self.txn, heard.record, self._batches)
            state, content = PENDING if is_pending else ARCHIVED, label + stretch
        ids = tuple(node.id for node in living)
        return Hit(passage, heard.record.number, ids, content, state, source, score, label=label)

    def _heard(self, message: int) -> Heard | None:
        """A message with its text and the memories of it that live; read once for all its passages."""
        if message not in self._messages:
            said = self._said(message)
            if said is None:
                self._messages[message] = None
            else:
                made = map(self.txn.node, self.archive.memories_of(message))
                self._messages[message] = Heard(*said, [node for node in made if node is not None])
        return self._messages[message]

    def _said(self, message: int) -> tuple[MessageRecord, str | None] | None:
        """A message and its text, without its memories: all that the order of many candidates needs; read once.

        The text is None where it was withdrawn; None for a message that is not there, or lacks a text it should have.
        """
        if message not in self._texts:
            record = self.txn.message(message)
            text = None if record is None else self.txn.message_text(record)
            is_there = record is not None and (text is not None or record.is_withdrawn)
            self._texts[message] = (record, text) if record is not None and is_there else None
        return self._texts[message]

    # --- packing -----------------------------------------------------------------------------------

    def _idf(self, terms: Mapping[int, float]) -> dict[int, float]:
        """What each term of the question tells: rare ones more, as in the words signal."""
        shelf = self.archive.shelf
        return {
            term: weight * rarity(len(shelf.postings(term)[0]), len(shelf)) for term, weight in terms.items()
        }

    def _packed(self, found: Sequence[Hit], query: Query, weights: Mapping[int, float]) -> Packed:
        # Copies of one content are told once, so a content stands for what is told of it.
        told = {one.content: one.told(cites=query.cites, locale=self.locale) for one in reversed(found)}
        by_key = {one.passage: one for one in found}

        def shorten(candidate: Candidate, fits: Callable[[str], bool]) -> str:
            one = by_key[cast(int, candidate.key)]

            def is_short_enough(text: str) -> bool:
                told[text] = replace(one, content=text).told(cites=query.cites, locale=self.locale)
                return fits(text)

            text = one.content.removeprefix(one.label)
            return key_sentences(text, weights, is_short_enough, label=one.label)

        return pack(
            [Candidate(one.passage, one.content, one.score, self._terms_at(one.passage)) for one in found],
            max_results=query.max_results,
            token_budget=query.token_budget,
            count=self.count_tokens,
            word=lambda contents: word_answer((told[content] for content in contents), (), self.locale),
            shorten=shorten if query.key_sentences else None,
        )

    def _text_at(self, passage: int) -> str:
        """What was said in a passage; nothing where it is gone."""
        shelf = self.archive.shelf
        begin = int(shelf.column("begin")[passage])
        said = self._said(int(shelf.column("message")[passage]))
        text = None if said is None else said[1]
        return "" if text is None else text[begin : begin + int(shelf.column("length")[passage])]

    def _terms_at(self, passage: int) -> frozenset[int]:
        """The terms of a passage as they are kept; none where they are not."""
        shelf = self.archive.shelf
        kept = self.txn.passages_of(int(shelf.column("message")[passage])) or []
        begin = int(shelf.column("begin")[passage])
        return next((frozenset(terms_of(one).tolist()) for one in kept if one.begin == begin), frozenset())


def _told_as(one: Hit, text: str, is_shortened: bool) -> Hit:
    return replace(one, content=text, is_shortened=True) if is_shortened else one


def _within(node: Node, source: Cited) -> Iterator[tuple[int, int]]:
    """(begin, end) of what a memory says of a stretch, in bytes from its beginning."""
    for one in node.sources:
        begin, end = max(0, one.offset - source.offset), one.offset + one.length - source.offset
        if one.message == source.record.number and begin < source.length and end > 0:
            yield begin, min(end, source.length)


def _is_told_by(living: Sequence[Node], stretch: str, source: Cited) -> bool:
    """Whether memories that live, none of them shortened, say every word of a stretch."""
    if not living or any(len(node.content) != node.original_length for node in living):
        return False
    raw, place, left = stretch.encode(), 0, b""
    for begin, end in sorted(span for node in living for span in _within(node, source)):
        left += raw[place : max(place, begin)]
        place = max(place, end)
    left += raw[place:]
    return not any(character.isalnum() for character in left.decode(errors="replace"))


def weighted_terms(question: Question, query: str) -> dict[int, float]:
    """The terms to look for, each with its weight; those of the whole query where nothing else is left."""
    texts = [question.text if any(words_of(question.text)) else query, *question.phrases]
    words = dict.fromkeys(first_form(word) for text in texts for word in words_of(text))
    # A single Chinese character says little beside pairs and words, and everything where it stands alone.
    singles = {word for word in words if len(word) == 1 and contains_han(word)}
    low = SINGLE_WEIGHT if len(singles) < len(words) else 1.0
    return {term_of(word): low if word in singles else 1.0 for word in words}
