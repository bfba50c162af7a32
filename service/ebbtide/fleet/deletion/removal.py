"""Removals: the items that a selector found, and the result of each step of the executor.

A selector lists items and knows nothing of how they are removed; `executor.py` removes them, with everything that
derives from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from ebbtide.changes import Change
from ebbtide.fleet.archive.retention import PassageUpdates
from ebbtide.fleet.deletion.words import Span
from ebbtide.ids import NodeId
from ebbtide.records import Link, MessageRecord, Node, PassageEntry, PersonalSpan
from ebbtide.store.chain import AuditRecord


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory or statement, with the words that only it cites."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Uncited:
    """All words of a digested message that no living memory cites."""

    message: int


@dataclass(frozen=True, slots=True)
class Words:
    """Words of a message with the memories made from them; without spans, the message."""

    message: int
    spans: tuple[Span, ...] | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a message. Its memories stay."""

    message: int


@dataclass(frozen=True, slots=True)
class Record:
    """A record, unless it was written again meanwhile."""

    namespace: tuple[str, ...]
    key: str
    version: int


@dataclass(frozen=True, slots=True)
class Traces:
    """Remains of deleted words: loose ends of forgotten memories, names of links, and entities."""

    forgotten: tuple[NodeId, ...] = ()
    links: tuple[Link, ...] = ()
    """Links that stay without their names."""
    entities: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class Correction:
    """The old content of a memory, and the new one. None leaves a field as it is."""

    node_id: NodeId
    content: str | None = None
    phrase: str = ""
    keywords: tuple[str, ...] | None = None
    metadata: str | None = None
    """JSON; an empty string removes it."""
    personal: tuple[PersonalSpan, ...] = ()
    """Personal data in the content."""


Item = Memory | Uncited | Words | Text | Record | Traces | Correction


@dataclass(slots=True)
class Deleted:
    """The counts of what was removed with a memory, or from a message."""

    links_removed: int
    bytes_withdrawn: int = 0
    cited_by: set[NodeId] = field(default_factory=set)
    """Living memories that cite some of its words, which therefore stay."""


@dataclass(frozen=True, slots=True)
class Undigested:
    """The message was left alone because its batch is not digested."""

    batch: int


Outcome = Deleted | Undigested | None
"""The outcome of one item; None if there was nothing to remove, or for items that are not counted one by one."""


class Tally(msgspec.Struct):
    """Counts of removed items, under their names in the audit log."""

    nodes: int = 0
    links: int = 0
    messages: int = 0
    batches: int = 0
    bytes: int = 0
    relations: int = 0
    """Links that lost their name."""
    records: int = 0

    def add(self, other: Tally) -> None:
        """Add the counts of another step."""
        for name, count in msgspec.structs.asdict(other).items():
            setattr(self, name, getattr(self, name) + count)


@dataclass(frozen=True, slots=True)
class OwnSource:
    """The message that a corrected memory became."""

    record: MessageRecord
    passages: list[PassageEntry]
    metadata: str


@dataclass(slots=True)
class Removed:
    """The items that one step removed, and the updates for the data in memory."""

    change: Change = field(default_factory=Change)
    outcomes: list[Outcome] = field(default_factory=list)
    """One for each item of the step."""
    tally: Tally = field(default_factory=Tally)
    rewritten: PassageUpdates = field(default_factory=dict)
    """New passages of messages that lost words."""
    without_text: PassageUpdates = field(default_factory=dict)
    """New passages of messages that lost their text or became tombstones."""
    passage_updates: PassageUpdates | None = None
    """New passages of messages without text whose memories changed; None discards the archive."""
    erased_messages: set[int] = field(default_factory=set)
    """Messages that lost text, for the event log."""
    text_proofs: dict[int, bytes] = field(default_factory=dict)
    """Proofs of complete messages, computed before their first part is overwritten."""
    record: AuditRecord | None = None
    node: Node | None = None
    """The corrected memory."""
    own: OwnSource | None = None
    moved: list[Node] = field(default_factory=list)
    """Statements whose words moved with the corrected memory."""


@dataclass(slots=True)
class Removal:
    """The items of a selector, and how far the executor is. A step that fails is repeated."""

    items: Sequence[Item]
    action: str = ""
    """The action in the audit log; empty for none."""
    details: Callable[[Tally, Sequence[Item], Sequence[Outcome]], dict[str, object]] = lambda *_: {}
    """Returns the details of a step for the audit log."""
    is_permanent: bool = False
    """Whether messages without words become tombstones, and the file must be rewritten."""
    done_count: int = 0
    text_proofs: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether no item is left."""
        return self.done_count >= len(self.items)

    def committed(self, removed: Removed) -> None:
        """Advance after a committed step."""
        self.done_count += len(removed.outcomes)
        self.text_proofs |= removed.text_proofs
