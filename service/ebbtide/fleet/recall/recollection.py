"""Hybrid recall: answers a query over all messages of an agent. Runs as one job.

cue → signals → one ranking → passages as memories → packing. One read transaction; nothing is changed. A passage whose
memories live unshortened is returned as *living*. One that was shortened or forgotten is returned from the archive as
*archived*. One whose batch is not digested yet is *pending*.

`retrieval/` computes and fuses the signals; `verbs/recall.py` checks limits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import Precondition
from ebbtide.fleet.archive.archive import Archive, content_of, terms_of
from ebbtide.fleet.archive.retention import is_digested
from ebbtide.fleet.archive.unembedded import check_dimension
from ebbtide.fleet.recall.query import Query, allowed_passages
from ebbtide.fleet.recall.recollected import (
    ARCHIVED,
    LIVING,
    PENDING,
    Cited,
    HeardMessage,
    Hit,
    Recollected,
)
from ebbtide.fleet.recall.relevant import are_relevant, best_relevance
from ebbtide.fleet.recall.validity import (
    NO_RECORD,
    OnRecord,
    Validity,
    Wanted,
    asked_time,
    messages_on_record,
    validity_of,
    wanted_by,
)
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.association import associate
from ebbtide.memory.network import Network
from ebbtide.memory.pagerank import closeness
from ebbtide.memory.statements import Ledger
from ebbtide.memory.topic_words import asks_for_everything
from ebbtide.memory.wording import joined
from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.records import EPISODE, AttachmentPlace, MessageRecord, Node
from ebbtide.retrieval.analysis import term_of, whole_words_of, words_of
from ebbtide.retrieval.fallback import why_needed
from ebbtide.retrieval.lexical import Scores, rarity, weights_of
from ebbtide.retrieval.packing import Candidate, Packed, first_fresh, pack
from ebbtide.retrieval.passages import PassageIndex, entry_of
from ebbtide.retrieval.query import ParsedQuery, parse_query
from ebbtide.retrieval.ranking import Ranking, rank
from ebbtide.retrieval.ranking_request import RankingRequest
from ebbtide.retrieval.restating import SMALL
from ebbtide.retrieval.sentences import key_sentences
from ebbtide.retrieval.times import Offset, utc
from ebbtide.retrieval.topics import topics_of
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.store.lmdb.transaction import ReadTransaction

MIN_CANDIDATES = 20
"""Passages ranked in addition to 1.5 times the requested number, because some may be near duplicates."""

MIN_CANDIDATES_FOR_BUDGET = 100
"""Fewest passages ranked under a token budget: small ones fill the gaps that large ones leave."""

MAX_CANDIDATES_FOR_BUDGET = 1000
"""Most passages ranked under a token budget, because packing time grows with their number."""

NEWNESS_DECAY_MS = 14 * 86_400_000
"""Time constant of newness: after two weeks an episode is worth 1/e of a new one."""

FOCUS_SHARE = 0.2
"""Share of walks that start from the focus rather than from the first results."""


CANDIDATE_BUDGETS = 3
"""Stop collecting candidates when they would fill the token budget this many times."""


@dataclass(slots=True)
class QueryRunner:
    """Answers one query on one agent within one read transaction."""

    txn: ReadTransaction
    archive: Archive
    network: Network
    now_ms: int
    locale: str
    ledger: Ledger
    count_tokens: Callable[[str], int]
    texts: TextWorkers = INLINE
    offset: Offset = utc
    _batches: dict[int, bool] = field(default_factory=dict)
    _texts: dict[int, tuple[MessageRecord, str | None] | None] = field(default_factory=dict)
    _messages: dict[int, HeardMessage | None] = field(default_factory=dict)
    _shown: set[int] = field(default_factory=set)
    """The passages of the hits so far."""
    _followers: set[int] = field(default_factory=set)
    """The passages shown because what they state is true instead of a hit."""
    _wanted: Wanted | None = None
    """The statements that the query asks for, once a hit has some."""
    _time_ms: int | None = None
    """The past time that the query asks for."""
    _terms: Mapping[int, float] = field(default_factory=dict)
    """The terms of the query, with their weights."""

    def answer(self, query: Query) -> Recollected:
        """The best memories for a question, best first."""
        index = self.archive.index
        question = self._understood(query.text)
        self._time_ms = asked_time(question.query, self.now_ms, self.offset)
        if not len(index):
            return Recollected(question=question, past_ms=self._time_ms)
        is_archive_optional = query.archive == "when_needed"
        if is_archive_optional:
            # Living memories first: they may suffice.
            query = replace(query, archive="never")
        request = self._request(query, question)
        self._terms = request.terms
        most = query.max_results * 3 // 2 + MIN_CANDIDATES
        if query.token_budget is not None:
            most = min(max(most, MIN_CANDIDATES_FOR_BUDGET), MAX_CANDIDATES_FOR_BUDGET)
        ranking = rank(index, self.archive.words, request, most)
        archive: str = query.archive
        if is_archive_optional:
            archive = why_needed(question, ranking.scores) or "not needed"
            if archive != "not needed":
                query = replace(query, archive="always")
                request = replace(
                    request, allowed=allowed_passages(query, self.archive, self.network, self.ledger)
                )
                ranking = rank(index, self.archive.words, request, most)
        result = Recollected(ranking=ranking, question=question, past_ms=self._time_ms, archive=archive)
        if query.ranks_only:
            best = best_relevance(request, index, ranking)
            scored = _scores_of_messages(ranking.passages, ranking.scores, index)
            near = (
                {}
                if request.semantic is None
                else _scores_of_messages(ranking.passages, request.semantic[ranking.passages], index)
            )
            return replace(result, scored=scored, similarities=near, relevance=best)
        is_relevant = are_relevant(query, request, index, ranking)
        if query.token_budget is None and not query.explains:
            hits = self._hits(ranking, query, is_relevant)
            return replace(result, memories=self._first(hits, query.max_results))
        memories, dropped = self._fitting(query, request, ranking, is_relevant)
        return replace(result, memories=memories, dropped=dropped)

    def _fitting(
        self, query: Query, request: RankingRequest, ranking: Ranking, is_relevant: NDArray[np.bool_]
    ) -> tuple[tuple[Hit, ...], tuple[tuple[Hit, str], ...]]:
        """Return the memories that fit into the response, and those that were dropped, with the reason."""
        found = list(self._hits(ranking, query))
        relevant = set(ranking.passages[is_relevant].tolist()) | self._followers
        irrelevant = tuple((one, "min_relevance") for one in found if one.passage not in relevant)
        found = [one for one in found if one.passage in relevant]
        packed = self._packed(found, query, self._idf(request.terms))
        by_key: dict[Hashable, Hit] = {one.passage: one for one in found}
        kept = tuple(
            _as_packed(by_key[one.key], one.text, one.key in packed.shortened) for one in packed.kept
        )
        return kept, (*((by_key[key], why) for key, why in packed.dropped), *irrelevant)

    def _request(self, query: Query, question: ParsedQuery) -> RankingRequest:
        """Return the input of the ranking."""
        index = self.archive.index
        semantic, window, why_off = self._meaning(query)
        record = self._on_record(question)
        return RankingRequest(
            terms=weighted_terms(question, query.text),
            parts=[
                terms for part in question.parts if (terms := weighted_terms(self._understood(part), part))
            ],
            whole_words=weighted_terms(question, query.text, whole_words_of),
            is_chinese=contains_han(query.text),
            speakers=[index.speaker_numbers[name] for name in question.speakers],
            dates=[(span.begin_ms, span.end_ms) for span in question.dates],
            semantic=semantic,
            window=window,
            embedding_model=query.embedding_model if semantic is not None or window is not None else "",
            why_off={"semantic": why_off, "window": why_off},
            graph=None if "graph" in query.without else self._graph(query),
            names=self._names,
            linked=partial(self._linked, query.start_nodes),
            asks_for=question.asks_for,
            recency=question.recency,
            topics=topics_of(query.text) if question.is_about_user and len(index) > SMALL else None,
            on_record=record.true,
            off_record=np.concatenate([record.untrue, record.withdrawn]),
            withdrawn=record.withdrawn,
            is_dated=self._time_ms is not None,
            addresses_assistant=question.addresses_assistant,
            alike=self.archive.vectors.likeness if self.archive.vectors is not None else None,
            texts=self._text_at,
            worths=self._worths,
            allowed=allowed_passages(query, self.archive, self.network, self.ledger),
            without=query.without,
        )

    def _understood(self, query: str) -> ParsedQuery:
        index = self.archive.index
        known = index.speakers_named_by(map(term_of, words_of(query)))
        read = partial(parse_query, speakers=known, reference_ms=self._reference_ms(), offset=self.offset)
        question = self.texts.call(len(query), read, query)
        named = tuple(name for name in known if name.casefold() in question.speakers)
        return replace(question, speakers=named)

    def _reference_ms(self) -> int:
        """Return the time that relative dates refer to: that of the latest message, but not later than now."""
        times_ms = self.archive.index.column("time_ms")
        return min(int(times_ms.max()), self.now_ms) if len(times_ms) else self.now_ms

    def _on_record(self, question: ParsedQuery) -> OnRecord:
        """Return the passages of statements on the topic of a query about the user.

        Those that are true answer it. A query that names a past time is answered by those that were true then.
        """
        is_expected = question.recency or self._time_ms is not None
        is_answered = asks_for_everything(question.query) or (question.is_about_user and is_expected)
        if not self.ledger.statement_count or not is_answered:
            return NO_RECORD
        time_ms = self.now_ms if self._time_ms is None else self._time_ms
        found = messages_on_record(self.ledger, self.network, question.query, time_ms)
        message = self.archive.index.column("message")
        return OnRecord(*(np.flatnonzero(np.isin(message, some)) for some in found))

    def _names(self, passage: int) -> Iterable[tuple[int, int]]:
        index = self.archive.index
        if not index.has_titles:
            return ()
        return index.passages_named_by(self._terms_at(passage), int(index.column("speaker")[passage]))

    def _meaning(self, query: Query) -> tuple[Scores | None, Scores | None, str]:
        """Return how near passages are to the query in meaning, alone and with their neighbours, or why it is unknown.

        Raise VECTORS_UNAVAILABLE if it is unknown and no other signal was requested, and INVALID_VALUE if the caller's
        vector has another dimension than those of the agent.
        """
        vectors = self.archive.vectors
        is_known = vectors is not None and vectors.model == query.embedding_model
        if query.needs_vectors and not is_known and len(self.archive.index):
            raise Precondition(
                "this agent has no vectors for the current embedding model",
                reason="VECTORS_UNAVAILABLE",
            )
        if query.is_vector_given and vectors is not None and is_known and query.vector is not None:
            check_dimension(len(query.vector), vectors.dimension)
        return self._nearness(query)

    def _nearness(self, query: Query) -> tuple[Scores | None, Scores | None, str]:
        vectors, index = self.archive.vectors, self.archive.index
        if query.vector is None:
            return None, None, query.no_vector
        if vectors is None or vectors.model != query.embedding_model:
            return None, None, "no vectors yet"
        if vectors.dimension != len(query.vector):
            return None, None, "vectors of another size"
        near = window = None
        if "semantic" not in query.without:
            near = vectors.scores(query.vector, len(index))
        if "window" not in query.without:
            neighbours = index.neighbours("previous"), index.neighbours("next")
            window = vectors.window_scores(query.vector, len(index), *neighbours)
        return near, window, "no vectors yet"

    def _graph(self, query: Query) -> NDArray[np.float64]:
        """How strongly each passage is reached from the focus, by the best of its memories."""

        def reached() -> NDArray[np.float64]:
            found = associate(self.network, query.depth, query.start_nodes or None)
            return self.archive.by_passage(found.node_ids, found.worths)

        return self.archive.unchanged((self.network.revision, query.depth, tuple(query.start_nodes)), reached)

    def _linked(
        self, start_nodes: Sequence[NodeId], first: NDArray[np.int64], scores: Scores
    ) -> NDArray[np.float64]:
        """Return how close each passage is to the first results and to the focus, over all paths of links."""
        messages = self.archive.index.column("message")[first].tolist()
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
        """Return the query-independent value of passages: the mean of newness and of the share of text that lives.

        The share is importance as the last pass saw it, because a memory keeps that share of its length.
        """
        ages_ms = self._reference_ms() - self.archive.index.column("time_ms")[passages]
        newness = np.exp(-np.maximum(ages_ms, 0) / NEWNESS_DECAY_MS)
        kept = self.archive.best_of_memories(passages, self.network.kept_shares)
        return (newness + kept) / 2

    # --- passages as memories ----------------------------------------------------------------------

    def _hits(
        self, ranking: Ranking, query: Query, among: NDArray[np.bool_] | slice = slice(None)
    ) -> Iterator[Hit]:
        """Yield the memories of ranked passages, for a token budget only some more than it can contain."""
        tokens = count = 0
        passages, scores = ranking.passages[among].tolist(), ranking.scores[among].tolist()
        for passage, score in zip(passages, scores, strict=True):
            one = self._recollection(passage, score, query.archive == "always")
            if one is None or passage in self._followers:
                continue
            for each in self._with_validity(one, query, ranking):
                yield each
                if query.token_budget is not None:
                    count += 1
                    tokens += self.count_tokens(each.content)
            is_enough = count >= MIN_CANDIDATES and query.token_budget is not None
            if is_enough and tokens > CANDIDATE_BUDGETS * (query.token_budget or 0):
                break

    def _with_validity(self, one: Hit, query: Query, ranking: Ranking) -> Iterator[Hit]:
        """Yield a hit with the times of what it states, after the statements that are true instead."""
        self._shown.add(one.passage)
        heard = self._heard(one.message) if self.ledger.statement_count else None
        if heard is None:
            yield one
            return
        nodes = [node for node in heard.nodes if any(True for _ in _within(node, one.source))]
        if self._wanted is None:
            self._wanted = wanted_by(self.ledger, self.network, query.text)
        found = self._validity_of(one, nodes, self._wanted)
        # To a question for a past time, what is true now is no better answer.
        for statement in found.successors if self._time_ms is None else ():
            passage = self._passage_of(statement)
            if passage is None or passage in self._shown or passage == one.passage:
                continue
            if not query.kinds and (follower := self._recollection(passage, one.score, True)) is not None:
                self._followers.add(passage)
                self._shown.add(passage)
                node = self.txn.nodes.get(statement)
                made = [] if node is None else [node]
                note = self._validity_of(follower, made, self._wanted).note
                yield replace(follower, content=follower.content + note)
        yield replace(one, content=one.content + found.note) if found.note else one

    def _validity_of(self, one: Hit, nodes: Sequence[Node], wanted: Wanted) -> Validity:
        is_chinese = contains_han(one.said) if self.locale == "auto" else self.locale == "zh"
        return validity_of(self.ledger, nodes, self.now_ms, self.offset, is_chinese=is_chinese, wanted=wanted)

    def _passage_of(self, statement: NodeId) -> int | None:
        """Return the passage of the first words of a statement."""
        node = self.txn.nodes.get(statement)
        if node is None or not node.sources:
            return None
        source, index = node.sources[0], self.archive.index
        found = np.flatnonzero(index.column("message") == source.message)
        return int(found[0]) if len(found) else None

    def _recollection(self, passage: int, score: float, with_archive: bool) -> Hit | None:
        index = self.archive.index
        heard = self._heard(int(index.column("message")[passage]))
        if heard is None:
            return None
        begin = int(index.column("begin")[passage])
        source = heard.stretch(begin, int(index.column("length")[passage]))
        stretch = source.quote
        if heard.text is not None and not stretch.strip():
            return None  # empty, or erased
        source = replace(source, metadata=self.archive.metadata_of_passages.of(passage))
        if heard.text is not None and heard.record.attachments:
            place = self._attachment_of(heard.record, heard.text.encode(), source)
            source = replace(source, attachment=place, text=heard.text)
        cited = [node for node in heard.nodes if any(True for _ in _within(node, source))]
        # Memories before statements, which may be older: without a text they are made before the digest.
        living = sorted(cited, key=lambda node: node.kind in STATEMENT_KINDS)
        label = living[0].label if living else f"{heard.record.speaker}: " if heard.record.speaker else ""
        if heard.text is None or not with_archive:
            said = content_of(living, heard.record.number)
            if not said:
                return None
            state, content = LIVING, label + said
        elif _is_covered_by(living, stretch, source):
            state, content = LIVING, label + stretch
        else:
            is_pending = not living and not is_digested(self.txn, heard.record, self._batches)
            state, content = PENDING if is_pending else ARCHIVED, label + stretch
        ids = tuple(node.id for node in living)
        kinds = {node.kind for node in living}
        kind = kinds.pop() if len(kinds) == 1 else EPISODE
        return Hit(passage, heard.record.number, ids, content, state, source, score, kind, label)

    def _attachment_of(self, record: MessageRecord, text: bytes, source: Cited) -> AttachmentPlace | None:
        """Return the attachment or region whose caption shares most with the query; None if the message's own words
        share more. Without any captions, the message describes its first attachment.
        """
        end, own_length = source.offset + source.length, record.own_length
        if own_length is None:
            return 0, None
        shares: dict[AttachmentPlace, float] = {}
        for index, attached in enumerate(record.attachments):
            for place, one in enumerate(attached.captions):
                if one.offset < end and source.offset < one.offset + one.length:
                    caption = text[one.offset : one.offset + one.length]
                    shares[index, place - 1 if place else None] = self._share(caption)
        best = max(shares, key=shares.__getitem__, default=None)
        own = self._share(text[source.offset : min(end, own_length)])
        return best if best is not None and shares[best] >= own else None

    def _share(self, text: bytes) -> float:
        """Return the weight of the query terms in a text."""
        terms = entry_of(text.decode(errors="ignore"), "", 0).terms.tolist()
        return sum(self._terms.get(term, 0.0) for term in terms)

    def _heard(self, message: int) -> HeardMessage | None:
        """Return a message with its text and its living memories. Cached for all its passages."""
        if message not in self._messages:
            said = self._said(message)
            if said is None:
                self._messages[message] = None
            else:
                made = map(self.txn.nodes.get, self.archive.memories_of(message))
                self._messages[message] = HeardMessage(*said, [node for node in made if node is not None])
        return self._messages[message]

    def _said(self, message: int) -> tuple[MessageRecord, str | None] | None:
        """Return a message and its text without its memories, which is all that ranking many candidates needs. Cached.

        The text is None if it was removed. Return None for a message that does not exist or lacks its text.
        """
        if message not in self._texts:
            record = self.txn.messages.get(message)
            text = None if record is None else self.txn.messages.text(record)
            is_there = record is not None and (text is not None or record.is_withdrawn)
            self._texts[message] = (record, text) if record is not None and is_there else None
        return self._texts[message]

    # --- packing -----------------------------------------------------------------------------------

    def _idf(self, terms: Mapping[int, float]) -> dict[int, float]:
        """Return the weight of each query term: rarer terms weigh more, as in the lexical signal."""
        index = self.archive.index
        return {
            term: weight * rarity(len(index.postings(term)[0]), len(index)) for term, weight in terms.items()
        }

    def _first(self, hits: Iterable[Hit], most: int) -> tuple[Hit, ...]:
        """Return the first memories without near duplicates. Later ones are not read."""
        read: dict[Hashable, Hit] = {}

        def candidates() -> Iterator[Candidate]:
            for one in hits:
                read[one.passage] = one
                yield self._candidate(one)

        return tuple(read[kept.key] for kept in first_fresh(candidates(), most))

    def _candidate(self, one: Hit) -> Candidate:
        return Candidate(one.passage, one.content, one.score, self._terms_at(one.passage))

    def _packed(self, found: Sequence[Hit], query: Query, weights: Mapping[int, float]) -> Packed:
        # Copies of one content appear once in the text, so the content identifies the entry.
        block = partial(
            Hit.block, cites=query.cites, dates=query.dates, locale=self.locale, offset=self.offset
        )
        blocks = {one.content: block(one) for one in reversed(found)}
        by_key = {one.passage: one for one in found}

        def shorten(candidate: Candidate, fits: Callable[[str], bool]) -> str:
            one = by_key[cast(int, candidate.key)]

            def is_short_enough(text: str) -> bool:
                blocks[text] = block(replace(one, content=text))
                return fits(text)

            text = one.content.removeprefix(one.label)
            return key_sentences(text, weights, is_short_enough, label=one.label)

        return pack(
            list(map(self._candidate, found)),
            max_results=query.max_results,
            token_budget=query.token_budget,
            count=self.count_tokens,
            word=lambda contents: joined(blocks[content] for content in contents),
            shorten=shorten if query.key_sentences else None,
        )

    def _text_at(self, passage: int) -> str:
        """Return the text of a passage; empty if it was removed."""
        index = self.archive.index
        begin = int(index.column("begin")[passage])
        said = self._said(int(index.column("message")[passage]))
        text = None if said is None else said[1]
        return "" if text is None else text[begin : begin + int(index.column("length")[passage])]

    def _terms_at(self, passage: int) -> frozenset[int]:
        """Return the stored terms of a passage; empty if there are none."""
        index = self.archive.index
        kept = self.txn.passages.get(int(index.column("message")[passage])) or []
        begin = int(index.column("begin")[passage])
        return next((frozenset(terms_of(one).tolist()) for one in kept if one.begin == begin), frozenset())


def _scores_of_messages(passages: NDArray[np.int64], scores: Scores, index: PassageIndex) -> dict[int, float]:
    """Return the best score of the passages of each message, in their order."""
    found: dict[int, float] = {}
    messages = index.column("message")[passages].tolist()
    for message, score in zip(messages, scores.tolist(), strict=True):
        found[message] = max(score, found.get(message, score))
    return found


def _as_packed(one: Hit, text: str, is_shortened: bool) -> Hit:
    return replace(one, content=text, is_shortened=True) if is_shortened else one


def _within(node: Node, source: Cited) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of the parts of a passage that a memory cites, in bytes from its start."""
    for one in node.sources:
        begin, end = max(0, one.offset - source.offset), one.offset + one.length - source.offset
        if one.message == source.record.number and begin < source.length and end > 0:
            yield begin, min(end, source.length)


def _is_covered_by(living: Sequence[Node], stretch: str, source: Cited) -> bool:
    """Whether living, unshortened memories contain every word of a passage."""
    if not living or any(len(node.content) != node.original_length for node in living):
        return False
    raw, place, left = stretch.encode(), 0, b""
    for begin, end in sorted(span for node in living for span in _within(node, source)):
        left += raw[place : max(place, begin)]
        place = max(place, end)
    left += raw[place:]
    return not any(character.isalnum() for character in left.decode(errors="replace"))


def weighted_terms(
    question: ParsedQuery, query: str, words_in: Callable[[str], Iterable[str]] = words_of
) -> dict[int, float]:
    """Return the query terms with their weights. If nothing else is left, use the whole query."""
    texts = [question.text if any(words_in(question.text)) else query, *question.phrases]
    return weights_of(texts, words_in)
