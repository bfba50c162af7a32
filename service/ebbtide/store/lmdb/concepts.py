"""The concepts of one agent in one transaction: groups of statements and entities that consolidation found.

The rule guarded here: **a concept is deleted in the transaction that deletes any of its members**, or a source or the
name of one. So no word of erased data stays in a concept. The next consolidation finds the groups again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ebbtide.records import Concept
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import Part, TableReader, TableWriter


class ConceptReader(Part):
    """The concepts of one agent."""

    def get(self, concept_id: int) -> Concept | None:
        """Return the concept of this id, or None."""
        return self._tables.load(layout.CONCEPTS, layout.u64(concept_id))

    def all(self, start: int = 0) -> Iterator[Concept]:
        """Yield concepts by id, from id `start`."""
        return self._tables.load_all(layout.CONCEPTS, layout.u64(start))


class ConceptWriter(ConceptReader):
    """The concepts of one agent, with changes."""

    _tables: TableWriter

    def __init__(self, tables: TableReader) -> None:
        super().__init__(tables)
        self._lost: set[int] = set()
        """The members that lost something of theirs in this transaction."""

    def put(self, concept: Concept) -> None:
        """Write a concept."""
        self._tables.save(layout.CONCEPTS, layout.u64(concept.id), concept)

    def delete(self, concept_id: int) -> None:
        """Delete a concept."""
        self._tables.delete(layout.CONCEPTS, layout.u64(concept_id))

    def clear(self) -> None:
        """Delete all concepts. Consolidation finds them again."""
        self._tables.clear(layout.CONCEPTS)

    def note_lost(self, members: Iterable[int]) -> None:
        """Note that these nodes were deleted, or lost a source or their name."""
        self._lost.update(members)

    def drop_lost(self, members: Iterable[int]) -> None:
        """Delete the concepts that contain one of these nodes, or one that was noted."""
        self._lost.update(members)
        if self._lost:
            for concept in list(self.all()):
                if not self._lost.isdisjoint(concept.members):
                    self.delete(concept.id)
            self._lost.clear()
