"""The names under which a question may mean those about whom statements are made.

A question is compared with all of them. They are normalised once for each change of the entities or the statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ebbtide.ids import NodeId
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger, Replay
from ebbtide.memory.subjects import RELATIVES, unqualified
from ebbtide.memory.values import normalised


class Names:
    """Names, normalised, each with the entity that it means, by their first two characters."""

    def __init__(self, names: Iterable[tuple[str, NodeId]]) -> None:
        self._by_start: dict[str, list[tuple[str, NodeId]]] = {}
        for name, entity in names:
            if name:
                self._by_start.setdefault(name[:2], []).append((name, entity))

    def within(self, text: str) -> Iterator[tuple[str, NodeId]]:
        """Yield the names that occur in a text, in any order."""
        for start in {*text, *map("".join, pairwise(text))}:
            for one in self._by_start.get(start, ()):
                if one[0] in text:
                    yield one


class Named(NamedTuple):
    """The names of those about whom statements are made."""

    entities: Names
    """The names of the entities about which statements are made, without the relation after them."""
    relatives: list[tuple[str, NodeId]]
    """Those of these names that are words for relatives."""
    relations: Names
    """The relations that statements say an entity has: "my flatmate" is who is stated to be one."""
    by_relative: dict[str, frozenset[NodeId]]
    """The entities that are each relative of the user; filled when a question names that relative."""


class SubjectNames:
    """The names of the last question, kept while no entity and no statement changes."""

    def __init__(self) -> None:
        self._last: tuple[tuple[int, int, int, int | None], Named] | None = None

    def of(self, epoch: int, network: Network, ledger: Ledger, replay: Replay) -> Named:
        """Return the names. `epoch` changes if network and ledger are other ones."""
        key = epoch, network.names_revision, ledger.revision, replay.before
        if self._last is None or self._last[0] != key:
            self._last = key, _named(network, ledger, replay)
        return self._last[1]


def _named(network: Network, ledger: Ledger, replay: Replay) -> Named:
    # Imported here, so that a daemon can listen before it has compiled the patterns of questions.
    from ebbtide.memory.topic_words import RELATION_TOPICS

    subjects = replay.all_merged_with(ledger.subjects())
    entities = (network.entities[one] for one in subjects if one in network.entities)
    named = [(normalised(unqualified(one.name)[0]), one.id) for one in entities]
    stated = ledger.brief_in(RELATION_TOPICS)
    return Named(
        Names(named),
        [(name, subject) for name, subject in named if name in RELATIVES],
        Names((normalised(one.object), one.subject) for one in stated),
        {},
    )
