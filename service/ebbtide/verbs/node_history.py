"""get_node_history: the life of one memory or statement, also of one that is forgotten.

Birth and end come from the table of lives, changes from the event log, and the latest shortenings of a living memory
also from the memory itself, with their importances. The events are read in steps, and other jobs run between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pydantic import Field

from ebbtide.errors import EbbtideError, FieldViolation, InvalidRequest
from ebbtide.events import EventKind, PackedRun
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import NodeId, batch_text_id, node_text_id, parse_node_id
from ebbtide.records import Life, Node
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.inspect import NodeRequest, not_alive
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import Response

RECORDS_PER_STEP: Final = 500
"""Records of events, each of one commit, that one job reads: about 5 ms."""


class LifeBirth(Response):
    """The birth of a memory."""

    pass_number: int = Field(description="Completed passes at that time.")
    batch_id: str | None = Field(description="The batch that it was made from; null if unknown, or none.")
    at: int | None = Field(description="Time, ms since the epoch; null if unknown.")


class LifeChange(Response):
    """One shortening of a memory."""

    pass_number: int = Field(description="The pass that shortened it.")
    importance: float | None = Field(description="Its importance at that time; null if unknown.")
    length_before: int = Field(description="Characters before.")
    length: int = Field(description="Characters after.")
    model: str | None = Field(description="The language model that wrote the new text; null if unknown.")


class LifeEnd(Response):
    """The end of a memory."""

    pass_number: int = Field(description="The pass that forgot it.")


class LifeCorrection(Response):
    """One correction of a memory by the caller."""

    event: int = Field(description="Number of the event.")
    at: int = Field(description="Time, ms since the epoch.")


class LifeBrokenLink(Response):
    """A link from the memory that became too weak."""

    target: int = Field(description="Number of the node that the link led to.")
    pass_number: int = Field(description="The pass that broke it.")


class NodeHistory(Response):
    """The life of a memory or statement."""

    id: int = Field(description="Number of the node: 17 is n17.", examples=[17])
    state: str = Field(
        description="living, forgotten, or erased: deleted, and nothing else is known of it.",
        examples=["living"],
    )
    born: LifeBirth | None = Field(description="Its birth; null for an erased one.")
    changes: list[LifeChange] = Field(description="Its shortenings, in order.")
    forgotten: LifeEnd | None = Field(description="Its end; null while it lives, and for an erased one.")
    corrections: list[LifeCorrection] = Field(description="Its corrections, in order.")
    links_broken: list[LifeBrokenLink] = Field(description="Its links that became too weak, in order.")
    complete: bool = Field(
        description="Whether the events since its birth are kept. Otherwise changes may be missing."
    )


@dataclass(slots=True)
class _Events:
    """The events of one memory."""

    node_id: NodeId
    following: int = 0
    """The number of the next event to read."""
    is_at_end: bool = False
    made: tuple[int, int] | None = None
    """The batch and the time of its birth."""
    shortened: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The lengths before and after each pass that shortened it."""
    corrections: list[LifeCorrection] = field(default_factory=list)
    links_broken: list[LifeBrokenLink] = field(default_factory=list)
    is_erased: bool = False

    def read(self, txn: ReadTransaction) -> _Events:
        """Return these events and those of the next records."""
        found = _Events(
            self.node_id,
            self.following,
            False,
            self.made,
            dict(self.shortened),
            [*self.corrections],
            [*self.links_broken],
            self.is_erased,
        )
        for count, (first, record) in enumerate(txn.events.packed(self.following)):
            if count == RECORDS_PER_STEP:
                return found
            for run in record.runs:
                found._take(run, first, record.at_ms)
                first += run.count
            found.following = first
        found.is_at_end = True
        return found

    def _take(self, run: PackedRun, first: int, at_ms: int) -> None:
        if run.kind not in _OF_NODES:
            return
        nodes, *others = run.columns
        for place in [place for place, node in enumerate(nodes) if node == self.node_id]:
            numbers = [column[place] for column in others]
            if run.kind == EventKind.NODE_CREATED.value:
                self.made = (numbers[0], at_ms)
            elif run.kind == EventKind.NODE_COMPRESSED.value:
                before, after, pass_number = numbers
                self.shortened[pass_number] = (before, after)
            elif run.kind == EventKind.NODE_CORRECTED.value:
                self.corrections.append(LifeCorrection(event=first + place, at=at_ms))
            elif run.kind == EventKind.LINK_BROKEN.value:
                self.links_broken.append(LifeBrokenLink(target=numbers[0], pass_number=numbers[1]))
            else:
                self.is_erased = True


_OF_NODES: Final = {
    EventKind.NODE_CREATED.value,
    EventKind.NODE_COMPRESSED.value,
    EventKind.NODE_CORRECTED.value,
    EventKind.LINK_BROKEN.value,
    EventKind.MEMORY_ERASED.value,
}


async def get_node_history(service: ReadingService, request: NodeRequest) -> NodeHistory:
    """Return the life of a memory or statement, also of a forgotten one.

    INVALID_VALUE for an entity or a concept, NODE_FORGOTTEN or NODE_NOT_FOUND if nothing is known of the node.
    """
    node_id = parse_node_id(request.node_id)
    events = _Events(node_id)
    async with service.fleet.using(request.owner) as agent:
        store = agent.workspace.store
        while not events.is_at_end:
            events = await agent.run(partial(store.read, events.read))
        life, node = await agent.run(
            lambda: store.read(lambda txn: (txn.lives.get(node_id), txn.nodes.get(node_id)))
        )
        if life is None and not events.is_erased:
            raise await agent.run(lambda: no_life(agent.workspace, node_id))
    return _erased(node_id) if life is None else _history(life, node, events)


def no_life(
    workspace: Workspace, node_id: NodeId, field_name: str = "node_id", requested: str = "history"
) -> EbbtideError:
    """Return the error for a node that is no living memory or statement. INVALID_VALUE for an entity."""
    if node_id not in workspace.network.entities:
        return not_alive(workspace, node_id)
    text = node_text_id(node_id)
    return InvalidRequest(
        f"The node {text} is an entity, which has no {requested}; memories and statements have one.",
        reason="INVALID_VALUE",
        violations=[FieldViolation(field_name, f"{text} is an entity; allowed: a memory or a statement")],
    )


def _erased(node_id: NodeId) -> NodeHistory:
    return NodeHistory(
        id=node_id,
        state="erased",
        born=None,
        changes=[],
        forgotten=None,
        corrections=[],
        links_broken=[],
        complete=True,
    )


def _history(life: Life, node: Node | None, events: _Events) -> NodeHistory:
    batch, at = events.made or (0, None)
    if node is not None:
        batch, at = node.batch, node.created_at_ms
    return NodeHistory(
        id=events.node_id,
        state="forgotten" if life.forgotten_in else "living",
        born=LifeBirth(pass_number=life.after, batch_id=batch_text_id(batch) if batch else None, at=at),
        changes=_changes(node, events),
        forgotten=LifeEnd(pass_number=life.forgotten_in) if life.forgotten_in else None,
        corrections=events.corrections,
        links_broken=events.links_broken,
        complete=events.made is not None,
    )


def _changes(node: Node | None, events: _Events) -> list[LifeChange]:
    """Return the shortenings that the events or the memory itself know, in order."""
    rewrites = {one.pass_number: one for one in ([] if node is None else node.rewrites)}
    lengths = {number: (one.length_before, one.length_after) for number, one in rewrites.items()}
    lengths |= events.shortened
    changes = []
    for number in sorted(lengths):
        before, after = lengths[number]
        known = rewrites.get(number)
        changes.append(
            LifeChange(
                pass_number=number,
                importance=None if known is None else known.importance,
                length_before=before,
                length=after,
                model=None if known is None else known.model,
            )
        )
    return changes
