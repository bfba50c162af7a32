"""The names with which a question is compared follow the agent."""

from __future__ import annotations

from ebbtide.changes import Change
from ebbtide.fleet.recall.subject_names import Named, Names, SubjectNames
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.parameters import AgentParameters
from ebbtide.records import Entity, Source
from ebbtide.statements import Assertion


def said(entry: int, subject: int, slot: str, value: str) -> Assertion:
    """Return an assertion about an entity."""
    return Assertion(entry, 100 + entry, subject, slot, value, Source(entry, 0, 3), 10, 11)


def listed(named: Named) -> tuple[list[tuple[str, int]], list[tuple[str, int]], list[tuple[str, int]]]:
    """Return the names of the entities, the relatives and the relations, by entity."""
    text = "bob ann anna sister flatmate"
    entities, relations = (
        sorted(names.within(text), key=lambda one: one[1]) for names in (named.entities, named.relations)
    )
    return entities, named.relatives, relations


def test_names_within_a_text() -> None:
    """A name is found where it occurs, also one of a single character; an empty one never is."""
    names = Names([("bob", 1), ("李", 2), ("", 3), ("new york", 4), ("bo", 5), ("york", 6)])
    assert sorted(names.within("is bob in new york?")) == [
        ("bo", 5),
        ("bob", 1),
        ("new york", 4),
        ("york", 6),
    ]
    assert list(names.within("老李")) == [("李", 2)]
    assert list(names.within("b")) == list(names.within("")) == []


def test_names_are_read_again_after_a_change() -> None:
    """They are kept while entities and statements are, then they are those of the new ones; the past has its own."""
    network = Network(AgentParameters())
    network.put_entity(Entity(1, "Bob (flatmate)", "bob"))
    ledger, names = Ledger([said(1, 1, "residence", "Porto")]), SubjectNames()
    first = names.of(1, network, ledger, ledger.known())
    assert listed(first) == ([("bob", 1)], [], [])
    assert names.of(1, network, ledger, ledger.known()) is first
    network.put_entity(Entity(2, "Ann", "ann"))
    network.put_entity(Entity(3, "Sister", "sister"))
    ledger.apply([said(2, 2, "relation", "Flatmate"), said(3, 2, "relation", ""), said(4, 3, "age", "31")])
    second = names.of(1, network, ledger, ledger.known())
    entities = [("bob", 1), ("ann", 2), ("sister", 3)]
    assert listed(second) == (entities, [("sister", 3)], [("flatmate", 2)])
    # Recalls and passes change neither names nor statements.
    network.apply(Change(entities={2: Entity(2, "Ann", "ann", left_from=1)}))
    kept = names.of(1, network, ledger, ledger.known())
    assert listed(kept) == listed(second)
    network.apply(Change())
    assert names.of(1, network, ledger, ledger.known()) is kept
    network.apply(Change(entities={2: Entity(2, "Anna", "ann")}))
    assert listed(names.of(1, network, ledger, ledger.known()))[0] == [("bob", 1), ("anna", 2), ("sister", 3)]
    network.apply(Change(deleted_entities=[1]))
    assert listed(names.of(1, network, ledger, ledger.known()))[0] == [("anna", 2), ("sister", 3)]
    ledger.remove([2, 3])
    assert listed(names.of(1, network, ledger, ledger.known()))[2] == []
    other = Network(AgentParameters())
    assert listed(names.of(2, other, ledger, ledger.known()))[0] == []
