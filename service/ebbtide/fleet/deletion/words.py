"""Words of messages: the spans that memories cite, and texts with some of them overwritten.

The rule guarded here: **text stays if a living memory cites it.** Overwritten words become spaces of equal UTF-8
length, so that other citations stay valid, and the passages of the message are analysed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from ebbtide.fleet.archive.archive import passage_of, passages_of
from ebbtide.fleet.archive.reading import living_nodes, message_with_text, text_of
from ebbtide.ids import NodeId
from ebbtide.memory.declaration import MAX_PHRASE_CHARS
from ebbtide.records import FadedSpan, Node, PassageEntry, Source
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.store.layout import text_key
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

Span = tuple[int, int]
"""(begin, end) of a part of a message, in UTF-8 bytes."""


def span_of(source: Source | FadedSpan) -> Span:
    """Return the bytes of its message that a source names."""
    return source.offset, source.offset + source.length


def overlaps(source: Source | FadedSpan, spans: Iterable[Span]) -> bool:
    """Return whether a source shares a byte with one of these spans."""
    first, end = span_of(source)
    return any(begin < end and first < stop for begin, stop in spans)


def outside(spans: Iterable[Span], others: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of spans that none of the others covers. Both must be sorted."""
    for begin, end in spans:
        place = begin
        for other_begin, other_end in others:
            if other_begin >= end:
                break
            if other_begin > place:
                yield place, other_begin
            place = max(place, other_end)
        if place < end:
            yield place, end


def kept_in(txn: ReadTransaction, message: int, without: Collection[NodeId] = ()) -> list[Span]:
    """Return the sorted spans of a message that living memories cite, apart from some."""
    ids = (one for one in txn.citings.of(message) if one not in without)
    nodes = living_nodes(txn, ids)
    return sorted(span_of(source) for node in nodes for source in node.sources if source.message == message)


def citing(txn: ReadTransaction, message: int, span: Span) -> set[NodeId]:
    """Return the living memories that cite a byte of a part of a message."""
    nodes = living_nodes(txn, txn.citings.of(message))
    return {
        node.id
        for node in nodes
        if any(source.message == message and overlaps(source, [span]) for source in node.sources)
    }


def requoted(txn: ReadTransaction, node: Node, is_erased: Callable[[Source], bool]) -> Node | None:
    """Return a statement without its erased sources, with the words of the oldest one left; None if none is left."""
    if node.kind not in STATEMENT_KINDS:
        return None
    left = tuple(source for source in node.sources if not is_erased(source))
    quotes = (cut(text_of(txn, source.message), span_of(source)) for source in left)
    content = next((quote for quote in quotes if quote.strip()), "")
    if not content:
        return None
    return msgspec.structs.replace(
        node,
        content=content,
        phrase=content[:MAX_PHRASE_CHARS],
        original_length=len(content),
        sources=left,
    )


def cut(text: str, span: Span) -> str:
    """Return a part of a text."""
    return text.encode()[span[0] : span[1]].decode(errors="replace")


def without(text: str, spans: Iterable[Span]) -> str:
    """Return a text with spaces in place of some byte spans."""
    raw = bytearray(text.encode())
    for begin, end in spans:
        raw[begin:end] = b" " * (end - begin)
    return raw.decode()


def word_bytes(text: str) -> int:
    """Return the number of bytes of a text that are not white space."""
    return sum(len(word.encode()) for word in text.split())


def overwrite(txn: WriteTransaction, message: int, spans: Sequence[Span]) -> list[PassageEntry] | None:
    """Overwrite byte spans of a message with spaces. Return its new passages; None if its text was deleted."""
    found = message_with_text(txn, message)
    if found is None:
        return None
    record, old = found
    text = without(old, spans)
    raw = text.encode()
    kept = txn.passages.get(message) or passages_of(old, record.speaker)
    passages = list(_moved(kept, old, raw, record.speaker))
    # A message without words loses its metadata too.
    metadata_key = record.metadata_key if text.strip() else b""
    personal = tuple(one for one in record.personal if raw[one.offset : one.offset + one.length].strip())
    now = msgspec.structs.replace(
        record, text_key=text_key(text), metadata_key=metadata_key, personal=personal
    )
    txn.messages.put(now, text, passages)
    return passages


def _moved(kept: Iterable[PassageEntry], old: str, raw: bytes, speaker: str) -> Iterator[PassageEntry]:
    """Yield the passages of a message at the same bytes as before; their character counts may differ."""
    place = begin = 0
    for entry in kept:
        stretch = old[entry.begin : entry.begin + entry.length]
        end = place + len(stretch.encode())
        now = raw[place:end].decode()
        if now == stretch:
            yield msgspec.structs.replace(entry, begin=begin)
        else:
            yield passage_of(now, speaker, begin)
        place, begin = end, begin + len(now)
