"""Which statements a question asks for: by the words of their messages, by their topic, and by whom they are about.

Candidates are the statements of the messages that hybrid recall finds, those that followed them, those on the topics
of the question, and those about a person or thing that it names. `statement_evidence.py` weighs the evidence for each.
The similarity falls with the distance from the best one, times the probability that the memory answers the question at
all. If that is too low, nothing is found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from ebbtide.entity_names import entity_key
from ebbtide.fleet.recall.recollected import Recollected
from ebbtide.fleet.recall.statement_evidence import (
    OTHER,
    SPREAD,
    WITH_TOPICS,
    WITHOUT_TOPICS,
    AnswerEvidence,
    Evidence,
    Weights,
    log_odds,
    probability,
    related,
    score,
    topic_of,
    with_related,
)
from ebbtide.fleet.recall.subject_names import Named
from ebbtide.ids import NodeId
from ebbtide.memory.assertion_table import Alike, Brief
from ebbtide.memory.columns import Array
from ebbtide.memory.network import Network
from ebbtide.memory.slot_names import SLOTS, canonical, slot_of
from ebbtide.memory.statements import Ledger, Replay, Version
from ebbtide.memory.subjects import RELATIVES, USER
from ebbtide.memory.topic_words import (
    RELATION_TOPICS,
    TASKS,
    Asked,
    animals_in,
    are_same_relative,
    asked,
    asks_for_everything,
    mentions,
    names,
    names_normalised,
    topics_of_value,
)
from ebbtide.memory.values import normalised
from ebbtide.memory.versions import SlotReplay
from ebbtide.retrieval.analysis import words_of
from ebbtide.statements import Assertion
from ebbtide.store.lmdb.transaction import ReadTransaction

MAX_FOLLOWERS = 16
"""Most statements that followed one another, of which the last ones are true."""

LEAST_TOPIC = 0.1
"""Least share of a topic in a question by its vector for which the statements on it are read."""

VALUE_SHARE = 0.8
"""Weight of a topic that only the value of a statement names, in other words than the question."""

PASSING_SHARE = 0.5
"""Similarity of a statement on a topic that is not lasting, to a question for everything about the user."""


@dataclass(slots=True)
class StatementMatches:
    """The statements that a question asks for, with their similarity, at most 1."""

    txn: ReadTransaction
    network: Network
    ledger: Ledger
    replay: Replay
    named: Named
    question: str
    topics: Mapping[str, float]
    """The share of each topic by the vector of the question; empty without one."""
    min_relevance: float
    """Probability that a statement answers the question, below which nothing is found."""
    further_topics: Sequence[str] = ()
    """Topics that a plan adds to those of the question."""
    asked: Asked = field(init=False)
    _words: frozenset[str] = field(init=False)
    _slots: dict[tuple[NodeId, str], SlotReplay] = field(init=False, default_factory=dict)
    """The slots that were replayed, by entity, merged or not."""
    _versions: dict[NodeId, Version | None] = field(init=False, default_factory=dict)
    """The version of each statement that was read."""
    _user: set[NodeId] = field(init=False)
    """The user, with the entities that are merged with it."""
    _others: frozenset[NodeId] = field(init=False)
    """The persons and things other than the user that the question names, by name or by relation."""
    _own: set[NodeId] | None = field(init=False, default=None)
    """The entities that statements on the topics that the question asks of the user name; None until they are read."""
    _own_topics: frozenset[str] = field(init=False, default=frozenset())
    """Topics of which only statements about the user and those answer the question; empty if it may be about others."""

    def __post_init__(self) -> None:
        self.asked = asked(self.question)
        if self.further_topics:
            topics = {**self.asked.topics, **dict.fromkeys(map(canonical, self.further_topics), 1.0)}
            self.asked = replace(self.asked, topics=topics)
        if self.topics:
            # The vector knows nothing of a topic such as habits, so its words count.
            by_words = {slot: weight for slot, weight in self.asked.topics.items() if slot not in self.topics}
            self.topics = {**with_related(self.topics), **by_words}
        self._words = frozenset(word.casefold() for word in words_of(self.question))
        self._user = self.replay.all_merged_with(self.user())
        self._others = frozenset(self._named_others())
        if self.asked.own_topics and not self._others:
            self._own_topics = self.asked.own_topics | related(self.asked.own_topics)

    @property
    def weights(self) -> Weights:
        """The weights of the evidence: those for vectors that know topics, or the others."""
        return WITH_TOPICS if self.topics else WITHOUT_TOPICS

    def find(self, hits: Recollected) -> dict[NodeId, float]:
        """Return the similarity of each statement that may answer the question; empty if nothing answers it."""
        if asks_for_everything(self.question):
            return dict(self._about_user())
        statements, answer = self.evidence(hits)
        weights = self.weights
        probable = probability(score(answer, weights.of_answer))
        if not statements or probable < self.min_relevance:
            return {}
        # Many statements have the same evidence.
        scores = {each: score(each, weights.of_statement) for each in set(statements.values())}
        best = max(scores.values())
        similar = {each: probable * math.exp((one - best) / SPREAD) for each, one in scores.items()}
        return {one: similar[each] for one, each in statements.items()}

    def _about_user(self) -> Iterator[tuple[NodeId, float]]:
        """Yield every statement about the user, those on lasting topics as more similar."""
        for statement in self.ledger.about(self._user):
            version = self.version_of(statement)
            if version is not None:
                yield statement, 1.0 if slot_of(version.first.slot).is_lasting else PASSING_SHARE

    def is_of_another(self, said: Assertion) -> bool:
        """Return whether a statement is about another person or pet than the question, on the same topic.

        The other person is one other than the user, of whom the question asks. The other pet is of another kind.
        """
        return self._is_other_pet(said) or (said.slot in self._own_topics and not self._is_own(said))

    def _is_own(self, said: Assertion) -> bool:
        """Return whether a statement is about the user, or about what statements on the user's own topics name."""
        if said.subject in self._user or said.object_entity in self._user:
            return True
        if self._own is None:
            self._own = self.ledger.object_entities(self._user, self.asked.own_topics.__contains__)
        return said.subject in self._own

    def _is_other_pet(self, said: Assertion) -> bool:
        """Return whether a statement names only kinds of pets that the question does not ask for: a cat is no dog."""
        if said.slot != "pet" or not self.asked.animals or names(said.object, self.asked):
            return False
        kinds = animals_in(said.object)
        if not kinds:
            node = self.txn.nodes.get(said.statement)
            kinds = animals_in("" if node is None else node.content)
        return bool(kinds) and kinds.isdisjoint(self.asked.animals)

    def evidence(self, hits: Recollected) -> tuple[dict[NodeId, Evidence], AnswerEvidence]:
        """Return the evidence for each statement that may answer the question, and for an answer."""
        words, meaning = self._by_words(hits)
        others = self._others
        named_topics = self._on_topic(others)
        about = set(self.ledger.about(self.replay.all_merged_with(others)))
        names_someone = bool(others or self.asked.relatives)
        user, topics = self.user(), self.topics
        is_about_others = self.asked.is_about_others and not self._names_user()
        may_be_of_another = bool(self._own_topics or self.asked.animals)
        found: dict[NodeId, Evidence] = {}
        # Many statements have the same evidence.
        known: dict[Evidence, Evidence] = {}
        of_others = 0.0
        candidates = {**words, **named_topics, **dict.fromkeys(sorted(about))}
        self._read_versions(candidates)
        for statement in candidates:
            version = self._versions[statement]
            if version is None:
                continue
            said = version.assertions[0]
            is_about = statement in about or said.object_entity in others
            if is_about_others and not is_about and not self._mentions(said):
                continue
            if may_be_of_another and self.is_of_another(said):
                of_others = max(of_others, words.get(statement, 0.0))
                continue
            is_stranger = not is_about if names_someone else said.subject not in user
            has_topic = bool(topics) and not is_stranger
            one = Evidence(
                words.get(statement, 0.0),
                meaning.get(statement, 0.0),
                named_topics.get(statement, 0.0),
                topics.get(topic_of(said, topics), 0.0) if has_topic else 0.0,
                float(is_about),
                float(is_stranger),
            )
            found[statement] = known.setdefault(one, one)
        named_topic = max((one.named_topic for one in known), default=0.0)
        # A most relevant message that is about another person or pet says nothing about an answer.
        is_relevant = named_topic or max((one.words for one in known), default=0.0) >= of_others
        answer = AnswerEvidence(
            log_odds(self._relevance(hits) if is_relevant else 0.0),
            self.topics.get(OTHER, 0.0),
            max((one.meaning for one in known), default=0.0),
            named_topic,
            max((one.topic for one in known), default=0.0),
            float(bool(self.asked.relatives) and not others),
        )
        return found, answer

    @staticmethod
    def _relevance(hits: Recollected) -> float:
        return 1.0 if hits.relevance is None else hits.relevance

    def _by_words(self, hits: Recollected) -> tuple[dict[NodeId, float], dict[NodeId, float]]:
        """Return the share of the best score, and the similarity in meaning, of the statements of ranked messages.

        The statements that followed them have the same.
        """
        best = max(hits.scored.values(), default=0.0)
        words, meaning = dict[NodeId, float](), dict[NodeId, float]()
        # Most messages state nothing.
        stating = self.ledger.stating(hits.scored) if best > 0 else []
        citing = {message: self.txn.citings.of(message) for message in stating}
        cited = np.array([one for nodes in citing.values() for one in nodes], dtype=np.int64)
        every = set(cited[self.ledger.are_statements(cited)].tolist())
        self._read_versions(sorted(every))
        for message, nodes in citing.items():
            near, score_ = hits.similarities.get(message, 0.0), hits.scored[message]
            statements = [one for one in nodes if one in every]
            for statement in statements:
                share = self._share(statement) if len(statements) > 1 else 1.0
                for one in (statement, *self._followers(statement)):
                    words[one] = max(words.get(one, 0.0), share * score_ / best)
                    meaning[one] = max(meaning.get(one, 0.0), near)
        return words, meaning

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
        if statement not in self._versions:
            self._read_versions([statement])
        return self._versions[statement]

    def _read_versions(self, statements: Iterable[NodeId]) -> None:
        missing = [one for one in statements if one not in self._versions]
        for statement, found in zip(missing, self.ledger.slots_of_statements(missing), strict=True):
            version = None
            if found is not None:
                slot = self._slots.get(found)
                if slot is None:
                    slot = self._slots[found] = self.replay.slot((self.replay.root(found[0]), found[1]))
                version = slot.version_of(statement)
            self._versions[statement] = version

    def _share(self, statement: NodeId) -> float:
        """Return the share of the question's words that occur in a statement."""
        said = self.ledger.assertions_of(statement)[0]
        node = self.txn.nodes.get(statement)
        text = f"{said.slot} {said.object} {'' if node is None else node.content}"
        words = {word.casefold() for word in words_of(text)}
        return len(self._words & words) / len(self._words) if self._words else 1.0

    def _mentions(self, said: Assertion) -> bool:
        """Return whether a statement mentions a person whom the question names."""
        node, subject = self.txn.nodes.get(said.statement), self.network.entities.get(said.subject)
        parts = (
            "" if subject is None else subject.name,
            said.slot.replace("_", " "),
            said.object,
            "" if node is None else node.content,
        )
        return mentions("，".join(parts), self.asked)

    def _names_user(self) -> bool:
        """Return whether a name in the question is the user's."""
        if not self.asked.named:
            return False
        stated = [one.object for one in self.ledger.brief_about(self._user, "name".__eq__)]
        stated += [self.network.entities[one].name for one in self._user if one in self.network.entities]
        words = {word for name in stated for word in normalised(name).split()}
        return not words.isdisjoint(self.asked.named)

    # --- topics and persons ------------------------------------------------------------------------

    def _on_topic(self, others: Set[NodeId]) -> dict[NodeId, float]:
        """Return the weight of the statements on the topics of the question, about those whom it names."""
        subjects = set(others)
        if self.asked.is_in_first_person or not (others or self.asked.relatives):
            subjects |= self.user()
        if not (self.asked.topics or self.topics):
            return {}
        weighed: list[tuple[Array, Array, Array]] = []
        by_value: list[Alike] = []
        for one in self.ledger.alike_about(self.replay.all_merged_with(subjects), self._may_match):
            weight = self._weight(one)
            is_asked = bool(weight) or self.topics.get(one.slot, 0.0) >= LEAST_TOPIC
            if is_asked:
                weighed.append((one.rows, one.statements, np.full(len(one.rows), weight)))
            if not weight and one.slot not in SLOTS:
                by_value.append(one)
        if by_value and self.asked.topics:
            weighed.append(self._weighed_by_value(by_value))
        if not weighed:
            return {}
        rows, statements, weights = map(np.concatenate, zip(*weighed, strict=True))
        order = np.argsort(rows, kind="stable")
        pairs = list(zip(statements[order].tolist(), weights[order].tolist(), strict=True))
        found: dict[NodeId, float] = dict(pairs)
        if len(found) < len(pairs):
            for statement, weight in pairs:
                found[statement] = max(weight, found[statement])
        return found

    def _weighed_by_value(self, some: Sequence[Alike]) -> tuple[Array, Array, Array]:
        """Return rows and statements on topics that no slot knows, weighed by the topics that their values name."""
        rows, statements = (
            np.concatenate(each) for each in ([one.rows for one in some], [one.statements for one in some])
        )
        # Most values name no topic.
        is_named = self.ledger.naming(rows, self.asked.topics.keys(), topics_of_value)
        rows, statements = rows[is_named], statements[is_named]
        weights = np.array(
            [self._weight_of_value(one) for one in self.ledger.objects_in(rows)], dtype=np.float64
        )
        return rows, statements, weights

    def _may_match(self, slot: str) -> bool:
        """Return whether statements of a slot may be on the topics of the question."""
        if slot in self.asked.topics or self.topics.get(slot, 0.0) >= LEAST_TOPIC:
            return True
        return bool(self.asked.topics) and (TASKS in self.asked.topics or slot not in SLOTS)

    def _weight(self, one: Alike) -> float:
        """Return the weight of statements by their slot, kind and modality."""
        weight = self.asked.topics.get(one.slot, 0.0)
        if one.kind == "task" or one.modality == "planned":
            weight = max(weight, self.asked.topics.get(TASKS, 0.0))
        return weight

    def _weight_of_value(self, value: str) -> float:
        """Return the weight of a statement on a topic that no slot knows, by the topics that its value names."""
        topics = self.asked.topics
        weight = max(topics.get(slot, 0.0) for slot in topics_of_value(value))
        if weight and self._words.isdisjoint(word.casefold() for word in words_of(value)):
            weight *= VALUE_SHARE
        return weight

    def user(self) -> set[NodeId]:
        """Return the entity of the user, if there is one."""
        user = self.network.entity_of_key.get(entity_key(USER))
        return set() if user is None else {user}

    def _named_others(self) -> set[NodeId]:
        user, text = self.user(), self.asked.text
        # Most names are neither in the question nor words for relatives.
        near = chain(self.named.entities.within(text), self.named.relatives)
        found = {subject for name, subject in near if self._is_named(name)}
        found.update(
            subject
            for name, subject in self.named.relations.within(text)
            if names_normalised(name, self.asked)
        )
        found -= user
        for relative in self.asked.relatives | self.asked.persons:
            if relative not in self.named.by_relative:
                self.named.by_relative[relative] = frozenset(self._relatives(relative))
            found |= self.named.by_relative[relative]
        return found

    def _is_named(self, name: str) -> bool:
        """Return whether the question means an entity of this name, by the name or as a relative."""
        return names_normalised(name, self.asked) or any(
            are_same_relative(name, one) for one in self.asked.relatives
        )

    def _relatives(self, relative: str) -> Iterator[NodeId]:
        """Yield who is a relative of the user, by the name of the entity, or as statements say."""
        key = self.network.entity_of_key.get(entity_key(f"{USER}'s {relative.replace('_', ' ')}"))
        if key is not None:
            yield key
        user = self.user()
        words = (word for word, one in RELATIVES.items() if one == relative)
        names_of_it = {relative, relative.replace("_", " "), *words}
        subjects = set[NodeId]()
        stated_of: dict[NodeId, list[Brief]] = {}
        for one in self.ledger.brief_in({*names_of_it, *RELATION_TOPICS}):
            subjects.add(one.subject)
            stated_of.setdefault(self.replay.root(one.subject), []).append(one)
        for subject in sorted(subjects):
            stated = stated_of[self.replay.root(subject)]
            if subject in user:
                yield from (
                    one.object_entity for one in stated if one.slot in names_of_it and one.object_entity
                )
            elif any(one.slot in names_of_it or are_same_relative(one.object, relative) for one in stated):
                yield subject
