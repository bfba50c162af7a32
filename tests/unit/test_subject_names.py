"""The names with which a question is compared follow the agent."""

from __future__ import annotations

from ebbtide.changes import Change
from ebbtide.fleet.recall.subject_names import Named, SubjectNames
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.parameters import AgentParameters
from ebbtide.records import Entity, Source
from ebbtide.statements import Assertion


def said(entry: int, subject: int, slot: str, value: str) -> Assertion:
    """Return an assertion about an entity."""
    return Assertion(entry, 100 + entry, subject, slot, value, Source(entry, 0, 3), 10, 11)


def test_names_are_read_again_after_a_change() -> None:
    """They are kept while entities and statements are, then they are those of the new ones; the past has its own."""
    network = Network(AgentParameters())
    network.put_entity(Entity(1, "Bob (flatmate)", "bob"))
    ledger, names = Ledger([said(1, 1, "residence", "Porto")]), SubjectNames()
    first = names.of(1, network, ledger, ledger.known())
    assert first == Named([("bob", 1)], [], [])
    assert names.of(1, network, ledger, ledger.known()) is first
    network.put_entity(Entity(2, "Ann", "ann"))
    network.put_entity(Entity(3, "Sister", "sister"))
    ledger.apply([said(2, 2, "relation", "Flatmate"), said(3, 2, "relation", ""), said(4, 3, "age", "31")])
    entities = [("bob", 1), ("ann", 2), ("sister", 3)]
    second = Named(entities, [("sister", 3)], [("flatmate", 2)])
    assert names.of(1, network, ledger, ledger.known()) == second
    # Recalls and passes change neither names nor statements.
    network.apply(Change(entities={2: Entity(2, "Ann", "ann", left_from=1)}))
    kept = names.of(1, network, ledger, ledger.known())
    network.apply(Change())
    assert names.of(1, network, ledger, ledger.known()) is kept == second
    network.apply(Change(entities={2: Entity(2, "Anna", "ann")}))
    assert names.of(1, network, ledger, ledger.known()).entities == [("bob", 1), ("anna", 2), ("sister", 3)]
    network.apply(Change(deleted_entities=[1]))
    assert names.of(1, network, ledger, ledger.known()).entities == [("anna", 2), ("sister", 3)]
    ledger.remove([2, 3])
    assert names.of(1, network, ledger, ledger.known()).relations == []
    other = Network(AgentParameters())
    assert names.of(2, other, ledger, ledger.known()).entities == []
