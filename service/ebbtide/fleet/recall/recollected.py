"""What a query returns: values of hybrid recall.

`recollection.py` makes them, the verbs format them. Nothing here reads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ebbtide.han import contains_han
from ebbtide.ids import NodeId, message_text_id, node_text_id
from ebbtide.records import MessageRecord, Node
from ebbtide.retrieval.question import Question
from ebbtide.retrieval.ranking import Ranking

LIVING, ARCHIVED, PENDING = "living", "archived", "pending"


@dataclass(frozen=True, slots=True)
class Cited:
    """Where a memory came from: a slice of a message, in UTF-8 bytes, and what stands there."""

    record: MessageRecord
    offset: int
    length: int
    quote: str = ""
    """Empty where the text is gone."""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory of an answer."""

    passage: int
    message: int
    node_ids: tuple[NodeId, ...]
    content: str
    state: str
    source: Cited
    score: float = 0.0
    kind: str = "episode"
    label: str = ""
    """Who speaks, as the content begins."""
    is_shortened: bool = False
    """Whether only its key sentences are told."""

    def told(self, *, cites: bool, locale: str) -> str:
        """What the answer says of it: its content, with its source behind it where that is wanted."""
        if not cites:
            return self.content
        is_chinese = contains_han(self.content) if locale == "auto" else locale == "zh"
        source = self.source.record.told_place
        return f"{self.content}（来源：{source}）" if is_chinese else f"{self.content} (source: {source})"

    @property
    def text_id(self) -> str:
        """The id of its first living node, else that of its message."""
        return node_text_id(self.node_ids[0]) if self.node_ids else message_text_id(self.message)


@dataclass(frozen=True, slots=True)
class Recollected:
    """An answer: memories in order; what was left out, with the reason; which signals gave what."""

    memories: tuple[Hit, ...] = ()
    dropped: tuple[tuple[Hit, str], ...] = ()
    ranking: Ranking | None = None
    question: Question | None = None
    archive: str = ""
    """Whether the archive took part, and why."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A message, its text unless that is gone, and the memories made from it that live."""

    record: MessageRecord
    text: str | None
    nodes: list[Node]

    def stretch(self, begin: int, length: int) -> Cited:
        """One of its passages as a source; where the text is gone places are in bytes as they stand."""
        if self.text is None:
            return Cited(self.record, begin, length)
        quote = self.text[begin : begin + length]
        before = begin if self.text.isascii() else len(self.text[:begin].encode())
        return Cited(self.record, before, len(quote.encode()), quote)
