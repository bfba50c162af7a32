"""Relatives by name: who "my sister" is, from the words that name her (knowledge model, section 4).

"My sister" and "Clara" are two entities. They are merged once there are statements about "my sister", and the words of
the owner name exactly one sister: "my sister Clara", 我妹妹叫小红. The merge is a ruling with those words as sources.
So it can be undone, and is deleted with the words. Decided pairs are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ebbtide.changes import Change
from ebbtide.entity_names import entity_key
from ebbtide.ids import NodeId
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.memory.subjects import SINGLE_KIN, names_relative, relative_in, relative_name
from ebbtide.records import Source
from ebbtide.statements import MAX_RULING_SOURCES, Assertion, Ruling, is_extracted

_EXACT = ("", "elder_", "younger_", "maternal_")
"""The relatives for which a general word may be used: "my sister" may be an elder sister."""


class Relatives:
    """The relatives that the words of their owners name, with those of a change in preparation."""

    def __init__(self, network: Network, ledger: Ledger, change: Change | None = None) -> None:
        self._network = network
        self._replay = ledger.known()
        self._ledger = ledger
        self._change = Change() if change is None else change

    def meant(self, name: str) -> NodeId:
        """Return who a name such as "user's sister" means, if one person is named so; else 0."""
        owner, relation = relative_in(name)
        owner_entity = self._entity(owner) if relation else 0
        named = self._naming(owner_entity, relation) if owner_entity else []
        return named[0].object_entity if named else 0

    def merges(self, known_at_ms: int, quote_of: Callable[[Source], str]) -> Iterator[Ruling]:
        """Yield a merge for each relative whom new statements are about or name, without its entry number.

        Names that rules have found count, and those from a model if the quote has the words that name the relative.
        """
        decided = {
            frozenset((one.target, one.other))
            for one in self._ledger.all_rulings()
            if one.kind in ("merge", "distinct")
        }
        for owner, relation in dict.fromkeys(self._concerned()):
            relative = self._entity(relative_name(self._name(owner), relation))
            named = self._naming(owner, relation) if relative else []
            sources = [
                one.source
                for one in named
                if is_extracted(one.author)
                and (
                    not one.author.startswith("model:")
                    or names_relative(quote_of(one.source), relation, one.object)
                )
            ]
            if not sources:
                continue
            first = named[0]
            if (
                self._replay.root(relative) != self._replay.root(first.object_entity)
                and frozenset((relative, first.object_entity)) not in decided
            ):
                kept = tuple(dict.fromkeys(sources))[:MAX_RULING_SOURCES]
                yield Ruling(
                    1,
                    "merge",
                    relative,
                    known_at_ms,
                    other=first.object_entity,
                    author=first.author,
                    sources=kept,
                )

    def _concerned(self) -> Iterator[tuple[NodeId, str]]:
        """Yield the owners and relations of the relatives that new statements are about, or name."""
        for one in self._change.assertions:
            if one.slot in SINGLE_KIN and one.object_entity:
                yield one.subject, one.slot
            owner, relation = relative_in(self._name(one.subject))
            if relation and (entity := self._entity(owner)):
                yield entity, relation

    def _naming(self, owner: NodeId, relation: str) -> list[Assertion]:
        """Return what names the relative of an owner in words of its own; empty if it may be another person too."""
        may_be = frozenset(f"{exact}{relation}" for exact in _EXACT)
        said = self._ledger.said_about(self._replay.merged_with(owner), may_be.__contains__)
        said += [one for one in self._change.assertions if one.subject == owner and one.slot in may_be]
        naming = [one for one in said if one.object_entity and not one.negated and self._is_valid(one)]
        if len({self._replay.root(one.object_entity) for one in naming}) != 1:
            return []
        return [one for one in naming if one.slot == relation]

    def _is_valid(self, one: Assertion) -> bool:
        version = self._replay.version_of(one.statement)
        return one.modality == "asserted" and (version is None or not version.withdrawn)

    def _entity(self, name: str) -> NodeId:
        key = entity_key(name)
        new = (one.id for one in self._change.entities.values() if one.key == key)
        return self._network.entity_of_key.get(key) or next(new, 0)

    def _name(self, entity: NodeId) -> str:
        found = self._network.entities.get(entity) or self._change.entities.get(entity)
        return "" if found is None else found.name
