"""Which statements a question asks for: by the words of their messages, by their topic, and by whom they are about.

The similarity of a statement is the score of its message in hybrid recall, as a share of the best one, times the
relevance of the best one: if no message is relevant, words say little. If the question names a topic, or another person
than the user, half of the similarity counts for these. A statement is on the topic only if it is about someone or
something that the question means. Nothing answers the question if no message is relevant enough and no statement is on
the topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from ebbtide.entity_names import entity_key
from ebbtide.fleet.recall.recollected import Recollected
from ebbtide.ids import NodeId
from ebbtide.memory.network import Network
from ebbtide.memory.slot_names import SLOTS, canonical
from ebbtide.memory.statements import Ledger, Replay, Version
from ebbtide.memory.subjects import USER, unqualified
from ebbtide.memory.topic_words import (
    RELATION_TOPICS,
    TASKS,
    Asked,
    are_same_relative,
    asked,
    names,
    topics_of_value,
)
from ebbtide.memory.versions import SlotReplay
from ebbtide.retrieval.analysis import words_of
from ebbtide.statements import Assertion
from ebbtide.store.lmdb.transaction import ReadTransaction

MAX_FOLLOWERS = 16
"""Most statements that followed one another, of which the last ones are true."""

TOPIC_SHARE = 0.5
"""Share of the similarity that the topic has which the question names."""

NAMED_SHARE = 0.5
"""Weight of a statement about a person or thing that the question names, other than the user."""

VALUE_SHARE = 0.8
"""Weight of a topic that only the value of a statement names, in other words than the question."""


@dataclass(slots=True)
class StatementMatches:
    """The statements that a question asks for, with their similarity, at most 1."""

    txn: ReadTransaction
    network: Network
    ledger: Ledger
    replay: Replay
    question: str
    min_relevance: float
    """Relevance that the best message must have if no statement is on the topic."""
    further_topics: Sequence[str] = ()
    """Topics that a plan adds to those of the question."""
    asked: Asked = field(init=False)
    _words: frozenset[str] = field(init=False)
    _slots: dict[tuple[NodeId, str], SlotReplay] = field(init=False, default_factory=dict)
    """The slots that were replayed."""

    def __post_init__(self) -> None:
        self.asked = asked(self.question)
        if self.further_topics:
            topics = {**self.asked.topics, **dict.fromkeys(map(canonical, self.further_topics), 1.0)}
            self.asked = replace(self.asked, topics=topics)
        self._words = frozenset(word.casefold() for word in words_of(self.question))

    def find(self, hits: Recollected) -> dict[NodeId, float]:
        """Return the similarity of each statement that may answer the question; empty if nothing answers it."""
        similar = self._by_words(hits)
        others = self._others()
        on_topic = self._on_topic(others)
        if not on_topic and self._relevance(hits) < self.min_relevance:
            return {}
        weights = dict.fromkeys(self.ledger.about(self._merged(others)), NAMED_SHARE) | on_topic
        if not weights and not self.asked.topics:
            return similar
        found = {statement: (1 - TOPIC_SHARE) * share for statement, share in similar.items()}
        for statement, weight in weights.items():
            found[statement] = found.get(statement, 0.0) + TOPIC_SHARE * weight
        return found

    @staticmethod
    def _relevance(hits: Recollected) -> float:
        return 1.0 if hits.relevance is None else hits.relevance

    def _by_words(self, hits: Recollected) -> dict[NodeId, float]:
        """Return the similarity of the statements of the ranked messages, and of those that followed them."""
        best, relevance = max(hits.scored.values(), default=0.0), self._relevance(hits)
        found: dict[NodeId, float] = {}
        citing = {message: self.txn.citings.of(message) for message in hits.scored} if best > 0 else {}
        cited = np.array([one for nodes in citing.values() for one in nodes], dtype=np.int64)
        every = set(cited[self.ledger.are_statements(cited)].tolist())
        for message, nodes in citing.items():
            score = hits.scored[message]
            statements = [one for one in nodes if one in every]
            for statement in statements:
                share = self._share(statement) if len(statements) > 1 else 1.0
                for one in (statement, *self._followers(statement)):
                    found[one] = max(found.get(one, 0.0), relevance * share * score / best)
        return found

    def _followers(self, statement: NodeId) -> Iterator[NodeId]:
        """Yield the statements that ended a statement, one after the other."""
        for _ in range(MAX_FOLLOWERS):
            version = self.version_of(statement)
            if version is None or not version.retired_by:
                return
            statement = version.retired_by
            yield statement

    def version_of(self, statement: NodeId) -> Version | None:
        """Return the last version that a statement supports. A slot is replayed once, however many there are."""
        found = self.ledger.slot_of_statement(statement)
        if found is None:
            return None
        key = self.replay.root(found[0]), found[1]
        if key not in self._slots:
            self._slots[key] = self.replay.slot(key)
        return self._slots[key].version_of(statement)

    def _share(self, statement: NodeId) -> float:
        """Return the share of the question's words that occur in a statement."""
        said = self.ledger.assertions_of(statement)[0]
        node = self.txn.nodes.get(statement)
        text = f"{said.slot} {said.object} {'' if node is None else node.content}"
        words = {word.casefold() for word in words_of(text)}
        return len(self._words & words) / len(self._words) if self._words else 1.0

    # --- topics and persons ------------------------------------------------------------------------

    def _on_topic(self, others: Set[NodeId]) -> dict[NodeId, float]:
        """Return the weight of the statements on the topics of the question, about those whom it names."""
        subjects = set(others)
        if self.asked.is_in_first_person or not (others or self.asked.relatives):
            subjects |= self._user()
        found: dict[NodeId, float] = {}
        topics = self.asked.topics
        stated = self.ledger.said_about(self._merged(subjects), self._may_match) if topics else ()
        for one in stated:
            if weight := self._weight(one, topics):
                found[one.statement] = max(weight, found.get(one.statement, 0.0))
        return found

    def _may_match(self, slot: str) -> bool:
        """Return whether statements of a slot may be on the topics of the question."""
        return slot in self.asked.topics or TASKS in self.asked.topics or slot not in SLOTS

    def _merged(self, subjects: Iterable[NodeId]) -> set[NodeId]:
        """Return some entities, with those that are one with them."""
        return set[NodeId]().union(*map(self.replay.merged_with, subjects))

    def _weight(self, one: Assertion, topics: Mapping[str, float]) -> float:
        weight = topics.get(one.slot, 0.0)
        if one.kind == "task" or one.modality == "planned":
            weight = max(weight, topics.get(TASKS, 0.0))
        if not weight and one.slot not in SLOTS and one.object:
            weight = max((topics.get(slot, 0.0) for slot in topics_of_value(one.object)), default=0.0)
            if weight and self._words.isdisjoint(word.casefold() for word in words_of(one.object)):
                weight *= VALUE_SHARE
        return weight

    def _user(self) -> set[NodeId]:
        user = self.network.entity_of_key.get(entity_key(USER))
        return set() if user is None else {user}

    def _others(self) -> set[NodeId]:
        """Return the persons and things other than the user that the question names, by name or as relatives."""
        user = self._user()
        found = set[NodeId]()
        for subject in self.ledger.subjects():
            entity = self.network.entities.get(subject)
            if entity is not None and subject not in user and names(unqualified(entity.name)[0], self.asked):
                found.add(subject)
        for relative in self.asked.relatives:
            found |= set(self._relatives(relative))
        return found

    def _relatives(self, relative: str) -> Iterator[NodeId]:
        """Yield who is a relative of the user, by the name of the entity, or as statements say."""
        key = self.network.entity_of_key.get(entity_key(f"{USER}'s {relative.replace('_', ' ')}"))
        if key is not None:
            yield key
        user = self._user()
        topics = {relative, *RELATION_TOPICS}
        subjects = self.ledger.subjects_in(topics)
        stated_of: dict[NodeId, list[Assertion]] = {}
        for one in self.ledger.said_about(self._merged(subjects), topics.__contains__):
            stated_of.setdefault(self.replay.root(one.subject), []).append(one)
        for subject in subjects:
            stated = stated_of[self.replay.root(subject)]
            if subject in user:
                yield from (one.object_entity for one in stated if one.slot == relative and one.object_entity)
            elif any(one.slot == relative or are_same_relative(one.object, relative) for one in stated):
                yield subject
