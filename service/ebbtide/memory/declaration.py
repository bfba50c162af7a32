"""Declaration: what a statement becomes that a caller, a tool or extraction makes (knowledge model, sections 1 to 3).

A statement is a node, linked both ways with its subject and, if that is an entity, with its object. A statement that
an earlier one already makes becomes evidence of that one: its message is a further source, and no node is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ebbtide.changes import Change
from ebbtide.entity_names import entity_key, is_entity, is_name
from ebbtide.ids import NodeId
from ebbtide.memory.namesakes import Meant, Namesakes
from ebbtide.memory.network import Network
from ebbtide.memory.slot_names import slot_of
from ebbtide.memory.statements import MAX_EVIDENCE, Ledger
from ebbtide.memory.subjects import PERSONS
from ebbtide.records import Entity, Link, Node, Source
from ebbtide.statements import (
    Assertion,
    Granularity,
    LedgerState,
    Modality,
    Ruling,
    Scope,
    StatementKind,
)

ABOUT = "about"
"""The name of the links between a statement and the entity that is its object."""

MAX_PHRASE_CHARS = 60

ENTITY_RANGES = frozenset({"person", "organisation", "place"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A statement to store. `subject` is a name from `subject_name`, `slot` is canonical."""

    subject: str
    slot: str
    content: str
    about: NodeId = 0
    """The entity of an earlier statement that this one is about too; 0 to find it by the subject."""
    kind: StatementKind = "fact"
    object: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    negated: bool = False
    modality: Modality = "asserted"
    reports_change: bool = False
    replaces: NodeId = 0
    since_ms: int | None = None
    until_ms: int | None = None
    granularity: Granularity = ""
    time_words: str = ""
    importance: float = 0.5
    confidence: float = 0.8
    trust: float = 1.0
    author: str = "user"
    valence: float | None = None
    arousal: float | None = None
    scope: Scope = "private"
    keywords: tuple[str, ...] = ()


def corrected(wrong: Assertion, subject: str, content: str, value: str) -> Declaration:
    """Return the statement that corrects the value of another one, with everything else as in that."""
    return Declaration(
        subject=subject,
        about=wrong.subject,
        slot=wrong.slot,
        content=content,
        kind=wrong.kind,
        object=value,
        attributes=wrong.attributes,
        negated=wrong.negated,
        modality=wrong.modality,
        reports_change=wrong.reports_change,
        since_ms=wrong.since_ms,
        until_ms=wrong.until_ms,
        granularity=wrong.granularity,
        time_words=wrong.time_words,
        importance=wrong.importance,
        confidence=1.0,
        trust=1.0,
        author="user",
        valence=wrong.valence,
        arousal=wrong.arousal,
        scope=wrong.scope,
    )


@dataclass(frozen=True, slots=True)
class Saying:
    """Where and when a statement was made: its slice of a message, and the times of the message and of the commit."""

    source: Source
    batch: int
    told_at_ms: int
    known_at_ms: int


@dataclass(frozen=True, slots=True)
class Declared:
    """The change for a statement, and the node that has it."""

    change: Change
    statement: NodeId
    is_new: bool
    """Whether a node was created; else the statement is evidence of an existing one."""


def declare(
    network: Network,
    ledger: Ledger,
    state: LedgerState,
    saying: Saying,
    one: Declaration,
    existing: Node | None,
    change: Change | None = None,
) -> Declared:
    """Return the change for a statement. `existing` is the node of which it is evidence, from `evidence_of`.

    `change` contains earlier statements of the same commit, and is extended.
    """
    change = Change() if change is None else change
    node_id = change.next_node_id or network.next_node_id
    next_id = node_id + (existing is None)
    entities = change.entities

    namesakes = Namesakes(network, ledger, change)

    def entity_of(meant: Meant) -> NodeId:
        nonlocal next_id
        entity = meant.entity
        if not entity:
            entity, next_id = next_id, next_id + 1
            entities[entity] = Entity(entity, meant.name, entity_key(meant.name), node_id)
        return entity

    subject = _known_subject(network, one) or entity_of(namesakes.meant(one.subject))
    target = 0
    if _names_entity(network, one):
        target = entity_of(namesakes.meant(one.object, one.slot if one.slot in PERSONS else "", subject))
    statement = node_id if existing is None else existing.id
    assertion = _assertion(one, saying, state.next_entry, statement, subject, target)
    change.assertions.append(assertion)
    change.ledger = _after(state, 1)
    if existing is not None:
        changed = {node.id: index for index, node in enumerate(change.nodes)}
        index = changed.get(existing.id)
        existing = existing if index is None else change.nodes.pop(index)
        if len(existing.sources) < MAX_EVIDENCE and saying.source not in existing.sources:
            existing = msgspec.structs.replace(existing, sources=(*existing.sources, saying.source))
            index = len(change.nodes)
        if index is not None:
            change.nodes.append(existing)
        return Declared(change, statement, False)
    change.nodes.append(
        Node(
            id=node_id,
            content=one.content,
            phrase=one.content[:MAX_PHRASE_CHARS],
            keywords=one.keywords,
            created_at_ms=saying.told_at_ms,
            original_length=len(one.content),
            kind=one.kind,
            sources=(saying.source,),
            batch=saying.batch,
        )
    )
    strength = one.importance
    for end, relation in ((subject, one.slot), (target, ABOUT)):
        if end and (end != subject or relation == one.slot):
            scans = network.scan_count(end) if end in network else 0
            change.links += [
                Link(node_id, end, relation, strength, 0),
                Link(end, node_id, relation, strength, scans),
            ]
    change.next_node_id = next_id
    return Declared(change, statement, True)


def evidence_of(
    network: Network,
    ledger: Ledger,
    saying: Saying,
    one: Declaration,
    entry: int,
    change: Change | None = None,
) -> NodeId:
    """Return the living statement of which a new one is evidence; 0 if there is none.

    `change` contains earlier statements of the same commit.
    """
    subject = _known_subject(network, one) or Namesakes(network, ledger, change).meant(one.subject).entity
    if subject not in network.entities:
        return 0
    candidate = _assertion(one, saying, entry, network.next_node_id, subject, 0)
    for statement in ledger.evidence(candidate):
        if statement in network:
            return statement
    return 0


def ruled(state: LedgerState, ruling: Ruling) -> Change:
    """Return the change for a ruling, with the next entry number."""
    placed = msgspec.structs.replace(ruling, entry=state.next_entry)
    return Change(rulings=[placed], ledger=_after(state, 1))


def _after(state: LedgerState, count: int) -> LedgerState:
    return msgspec.structs.replace(state, next_entry=state.next_entry + count)


def _known_subject(network: Network, one: Declaration) -> NodeId:
    return one.about if one.about in network.entities else 0


def _names_entity(network: Network, one: Declaration) -> bool:
    """Return whether the object is an entity: by the kind, by the slot, or since an entity has this name."""
    key = entity_key(one.object)
    if not key or not is_entity(one.object, key):
        return False
    if key in network.entity_of_key:
        return True
    return (one.kind == "relation" or slot_of(one.slot).range in ENTITY_RANGES) and is_name(one.object, key)


def _assertion(
    one: Declaration, saying: Saying, entry: int, statement: NodeId, subject: NodeId, target: NodeId
) -> Assertion:
    return Assertion(
        entry=entry,
        statement=statement,
        subject=subject,
        slot=one.slot,
        object=one.object,
        source=saying.source,
        told_at_ms=saying.told_at_ms,
        known_at_ms=saying.known_at_ms,
        kind=one.kind,
        object_entity=target,
        negated=one.negated,
        modality=one.modality,
        reports_change=one.reports_change,
        replaces=one.replaces,
        since_ms=one.since_ms,
        until_ms=one.until_ms,
        granularity=one.granularity,
        time_words=one.time_words,
        confidence=one.confidence,
        trust=one.trust,
        importance=one.importance,
        author=one.author,
        attributes=dict(one.attributes),
        valence=one.valence,
        arousal=one.arousal,
        scope=one.scope,
    )
