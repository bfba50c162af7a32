"""Namesakes: the entity that a name means, where several persons have that name (knowledge model, section 4).

The first entity of a name has the plain name. A person whose relation to the owner excludes that it is this one has
the relation after the name, such as `Anna (colleague)`, so a key has at most one entity. A plain name means the person
whom a statement named last. Kinds are not compared: a city and a person of one name are one entity.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ebbtide.changes import Change
from ebbtide.entity_names import entity_key, is_entity
from ebbtide.ids import NodeId
from ebbtide.memory.merge_proposals import Named, is_one_by_name
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.memory.subjects import PERSONS, qualified, unqualified
from ebbtide.statements import Assertion
from ebbtide.text_caches import text_cache


class Meant(NamedTuple):
    """The entity that a name means; 0 if there is none yet, and then the name that it must have."""

    entity: NodeId
    name: str


class Namesakes:
    """The entities of an agent by name, with those of a change in preparation."""

    def __init__(self, network: Network, ledger: Ledger, change: Change | None = None) -> None:
        self._keys = network.entity_of_key
        self._ledger = ledger
        self._change = Change() if change is None else change

    def meant(self, name: str, relation: str = "", owner: NodeId = 0) -> Meant:
        """Return whom a name means. `relation` is the slot in which a statement about `owner` names the person."""
        plain, given = unqualified(name)
        found = self._candidates(plain)
        if not found:
            return Meant(0, plain if relation else name)
        if len(found) == 1 and not relation and not given:
            return Meant(next(iter(found)), name)
        mentions = self._mentions(found)
        if relation or given:
            named = Named(0, plain, "person", relation or given)
            known = {
                one: found[one]
                | {said.slot for said in mentions[one] if not owner or self._is(said.subject, owner)}
                for one in found
            }
            agreeing = {one for one, said in known.items() if any(_agree(named, kin) for kin in said)}
            # "My colleague Anna" does not say that an Anna of whom nothing is known is the colleague.
            agreeing = agreeing or {one for one, said in known.items() if relation and not said}
            longer = qualified(plain, relation or given)
            if not agreeing and is_entity(longer, entity_key(longer)):
                return Meant(0, longer)
            found = {one: found[one] for one in agreeing} or found
        return Meant(max(found, key=lambda one: (self._last_entry(one, mentions[one]), -one)), name)

    def _candidates(self, name: str) -> dict[NodeId, set[str]]:
        """Return the entities of a name, with the relation that is a part of the name."""
        new = {one.key: one.id for one in self._change.entities.values()}
        found = {self._keys.get(key) or new.get(key, 0): {one} - {""} for key, one in _keys_of(name)}
        return {entity: relations for entity, relations in found.items() if entity}

    def _mentions(self, entities: Collection[NodeId]) -> dict[NodeId, list[Assertion]]:
        """Return the assertions that name each entity as a person. Withdrawn ones do not count."""
        replay, found = self._ledger.known(), {one: list[Assertion]() for one in entities}
        for said in (*self._ledger.in_slots(PERSONS, None), *self._change.assertions):
            if not said.object_entity or said.negated or said.slot not in PERSONS:
                continue
            version = replay.version_of(said.statement)
            if version is None or not version.withdrawn:
                for one in entities:
                    if self._is(said.object_entity, one):
                        found[one].append(said)
        return found

    def _is(self, first: NodeId, second: NodeId) -> bool:
        """Return whether two entities are one, by the rulings."""
        replay = self._ledger.known()
        return replay.root(first) == replay.root(second)

    def _last_entry(self, entity: NodeId, mentions: Sequence[Assertion]) -> int:
        """Return the last entry that names an entity, as a person or as the subject; 0 if none does."""
        about = self._ledger.by_slot([entity], None).values()
        new = [one for one in self._change.assertions if one.subject == entity]
        return max([one.entry for said in (*about, mentions, new) for one in said], default=0)


@text_cache(1024)
def _keys_of(name: str) -> tuple[tuple[str, str], ...]:
    """Return the keys that entities of a name may have, with the relations that these contain."""
    return ((entity_key(name), ""), *((entity_key(qualified(name, one)), one) for one in sorted(PERSONS)))


def _agree(named: Named, relation: str) -> bool:
    return is_one_by_name(Named(0, named.name, "person", relation), named)
