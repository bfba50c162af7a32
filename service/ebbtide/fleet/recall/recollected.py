"""The results of a query: values of hybrid recall.

`recollection.py` creates them, and the verbs format them. This module reads no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ebbtide.han import contains_han
from ebbtide.ids import NodeId, message_text_id, node_text_id
from ebbtide.memory.wording import word_memory, word_record
from ebbtide.records import EPISODE, AttachmentPlace, MessageRecord, Node, StoredRecord, local_date

if TYPE_CHECKING:
    from ebbtide.retrieval.query import ParsedQuery
    from ebbtide.retrieval.ranking import Ranking
    from ebbtide.retrieval.times import Offset

LIVING, ARCHIVED, PENDING = "living", "archived", "pending"


@dataclass(frozen=True, slots=True)
class Cited:
    """The source of a memory: a slice of a message in UTF-8 bytes, with its text."""

    record: MessageRecord
    offset: int
    length: int
    quote: str = ""
    """Empty if the text was removed."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    attachment: AttachmentPlace | None = None
    """The attachment whose caption answers the query."""
    text: str = ""
    """The whole text of the message, if an attachment is cited."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory of a result."""

    passage: int
    message: int
    node_ids: tuple[NodeId, ...]
    content: str
    state: str
    source: Cited
    score: float = 0.0
    kind: str = EPISODE
    label: str = ""
    """The speaker's label at the start of the content; no part of the memory."""
    is_shortened: bool = False
    """Whether the content was shortened to its key sentences."""

    def block(self, *, cites: bool, dates: bool, locale: str, offset: Offset) -> str:
        """Return its block of the text, with its date and its source if requested."""
        record, text = self.source.record, self.content
        if cites:
            is_chinese = contains_han(text) if locale == "auto" else locale == "zh"
            source = record.place_label(offset)
            if self.source.attachment is not None:
                number = self.source.attachment[0] + 1
                source += f"，附件 {number}" if is_chinese else f", attachment {number}"
            text += f"（来源：{source}）" if is_chinese else f" (source: {source})"
        return word_memory(text, locale, date=local_date(record.time_ms, offset) if dates else "")

    @property
    def said(self) -> str:
        """The content without the label."""
        return self.content.removeprefix(self.label)

    @property
    def text_id(self) -> str:
        """The id of its first living node, or else that of its message."""
        return node_text_id(self.node_ids[0]) if self.node_ids else message_text_id(self.message)


@dataclass(frozen=True, slots=True)
class RecordHit:
    """One record of a result, with the passage of its texts that fits the query best."""

    record: StoredRecord
    content: str
    score: float
    is_shortened: bool = False
    """Whether the content was shortened to its key sentences."""

    @property
    def label(self) -> str:
        """The name before the content in the text: its key."""
        return f"{self.record.key}: "

    def block(self, *, cites: bool, dates: bool, locale: str, offset: Offset) -> str:
        """Return its block of the text, with the date of its last put and its place if requested."""
        record, text = self.record, self.content
        if cites:
            place = "/".join((*record.namespace, record.key))
            is_chinese = contains_han(text) if locale == "auto" else locale == "zh"
            text += f"（来源：记录 {place}）" if is_chinese else f" (source: record {place})"
        date = local_date(record.updated_at_ms, offset) if dates else ""
        return word_record(text, locale, self.label, date)


@dataclass(frozen=True, slots=True)
class Recollected:
    """The result of a query: memories in order, dropped ones with the reason, and the ranking."""

    memories: tuple[Hit, ...] = ()
    records: tuple[RecordHit, ...] = ()
    """The best first. Empty unless the query asks for records."""
    order: tuple[Hit | RecordHit, ...] = ()
    """The memories and records in the order of the text, if the query asks for records."""
    dropped: tuple[tuple[Hit, str], ...] = ()
    """With the reason. Empty unless the query asks for explanations or has a token budget."""
    ranking: Ranking | None = None
    question: ParsedQuery | None = None
    past_ms: int | None = None
    """The last moment of the past time for which the query asks."""
    archive: str = ""
    """Whether the archive was searched, and why."""
    scored: Mapping[int, float] = field(default_factory=dict)
    """The score of each message, best first, for a query that only ranks."""
    similarities: Mapping[int, float] = field(default_factory=dict)
    """The similarity in meaning of each ranked message, for such a query; empty without vectors."""
    relevance: float | None = None
    """The estimated relevance of the most relevant passage, for such a query; None if it cannot be estimated."""
    unembedded_count: int = 0
    """Messages that the query could find only by their words, since they have no vectors yet."""


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """A message, its text unless that was removed, and its living memories."""

    record: MessageRecord
    text: str | None
    nodes: list[Node]

    def stretch(self, begin: int, length: int) -> Cited:
        """Return one of its passages as a source. Without a text, positions are already in bytes."""
        if self.text is None:
            return Cited(self.record, begin, length)
        quote = self.text[begin : begin + length]
        before = begin if self.text.isascii() else len(self.text[:begin].encode())
        return Cited(self.record, before, len(quote.encode()), quote)
