"""Texts, messages, and what is derived from texts, in one transaction.

* A text is stored once, as a chunk, with the number of its references. The last reference deletes it.
* A message whose text changes gets new passages and loses its vectors in the same transaction, so an index never
  contains what the archive has lost.

Deletions decide which texts change; they belong to the fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ebbtide.errors import Corrupted
from ebbtide.records import Attachment, EmbeddedMessage, FadedSpan, MessageRecord, Node, PassageEntry, Source
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import MetaWriter, Part, TableReader, TableWriter


def is_tombstone(record: MessageRecord) -> bool:
    """Return whether the message was erased: only its number and the time of its acceptance are left."""
    return not record.role


class TextReader(Part):
    """The texts of one agent by key, and the bytes of attachments: the chunks."""

    def get(self, key: bytes) -> str | None:
        """Return the text under a key, or None."""
        content = self._tables.load(layout.CHUNKS, key)
        return None if content is None else content.decode()

    def content(self, key: bytes) -> bytes:
        """Return the bytes of an attachment. Raise STORE_CORRUPTED if they are missing."""
        content = self._tables.load(layout.CHUNKS, key)
        if content is None:
            raise Corrupted("The content of an attachment is missing.", reason="STORE_CORRUPTED")
        return content


class TextWriter(TextReader):
    """The texts of one agent, with changes."""

    _tables: TableWriter

    def put(self, text: str) -> bytes:
        """Store a text, or count one more reference to it. Return its key. A single reference is not counted."""
        return self.put_content(text.encode())

    def put_content(self, content: bytes) -> bytes:
        """Store bytes, or count one more reference to them. Return their key."""
        key = layout.chunk_key(content)
        if self._tables.has(layout.CHUNKS, key):
            references = self._tables.load(layout.CHUNK_REFERENCES, key) or 1
            self._tables.save(layout.CHUNK_REFERENCES, key, references + 1)
        else:
            self._tables.save(layout.CHUNKS, key, content)
        return key

    def drop(self, key: bytes) -> None:
        """Count one reference less, and delete a text without references."""
        references = self._tables.load(layout.CHUNK_REFERENCES, key)
        if references is None:
            self._tables.delete(layout.CHUNKS, key)
        elif references > 2:
            self._tables.save(layout.CHUNK_REFERENCES, key, references - 1)
        else:
            self._tables.delete(layout.CHUNK_REFERENCES, key)


class PassageReader(Part):
    """The passages of messages."""

    def get(self, message: int) -> list[PassageEntry] | None:
        """Return the passages of a message, or None where they are missing."""
        return self._tables.load(layout.PASSAGES, layout.u64(message))

    def by_message(self) -> Iterator[tuple[MessageRecord, list[PassageEntry] | None]]:
        """Yield every message, by number, with its passages, or None where they are missing."""
        decode_message, decode_passages = layout.MESSAGES.value.decode, layout.PASSAGES.value.decode
        stored = self._tables.items(layout.PASSAGES)
        key, value = next(stored, (b"", b""))
        for number, record in self._tables.items(layout.MESSAGES):
            while key and key < number:
                key, value = next(stored, (b"", b""))
            yield decode_message(record), decode_passages(value) if key == number else None


class PassageWriter(PassageReader):
    """The passages of messages, with changes."""

    _tables: TableWriter

    def __init__(self, tables: TableWriter, meta: MetaWriter) -> None:
        super().__init__(tables)
        self._meta = meta

    def put(self, message: int, passages: list[PassageEntry]) -> None:
        """Replace the passages of a message and delete the vectors of the previous ones."""
        self._tables.save(layout.PASSAGES, layout.u64(message), passages)
        self._tables.delete(layout.VECTORS, layout.u64(message))
        state = self._meta.embedding
        if state.up_to >= message:
            self._meta.set(embedding=msgspec.structs.replace(state, up_to=message - 1))


class VectorReader(Part):
    """The vectors of messages."""

    def get(self, message: int) -> EmbeddedMessage | None:
        """Return the vectors of a message, or None."""
        return self._tables.load(layout.VECTORS, layout.u64(message))

    def all(self) -> Iterator[tuple[int, EmbeddedMessage]]:
        """Yield (message, vectors) of every model, by message number."""
        decode = layout.VECTORS.value.decode
        for key, value in self._tables.items(layout.VECTORS):
            yield layout.from_u64(key), decode(value)


class VectorWriter(VectorReader):
    """The vectors of messages, with changes."""

    _tables: TableWriter

    def put(self, message: int, embedded: EmbeddedMessage) -> None:
        """Store the vectors of a message."""
        self._tables.save(layout.VECTORS, layout.u64(message), embedded)


class MessageReader:
    """The messages of one agent."""

    def __init__(self, tables: TableReader, texts: TextReader) -> None:
        self._tables = tables
        self._texts = texts

    def get(self, number: int) -> MessageRecord | None:
        """Return the message of this number, or None."""
        return self._tables.load(layout.MESSAGES, layout.u64(number))

    def all(self, start: int = 0) -> Iterator[MessageRecord]:
        """Yield messages by number, from `start`."""
        return self._tables.load_all(layout.MESSAGES, layout.u64(start))

    def text(self, record: MessageRecord) -> str | None:
        """Return the text of a message, or None once it was withdrawn."""
        return None if record.is_withdrawn else self._texts.get(record.text_key)

    def quote(self, source: Source) -> str:
        """Return the words of a source, or nothing once they were withdrawn."""
        record = self.get(source.message)
        text = "" if record is None else self.text(record) or ""
        return text.encode()[source.offset : source.offset + source.length].decode(errors="replace")

    def metadata(self, record: MessageRecord) -> dict[str, object]:
        """Return the metadata of a message."""
        return self.metadata_under(record.metadata_key)

    def metadata_under(self, key: bytes) -> dict[str, object]:
        """Return the metadata under a key of a message; empty for an empty key."""
        text = self._texts.get(key) if key else None
        return msgspec.json.decode(text, type=dict[str, object]) if text else {}


class MessageWriter(MessageReader):
    """The messages of one agent, with changes."""

    _tables: TableWriter
    _texts: TextWriter

    def __init__(
        self, tables: TableWriter, texts: TextWriter, passages: PassageWriter, meta: MetaWriter
    ) -> None:
        super().__init__(tables, texts)
        self._passages = passages
        self._meta = meta

    def put(self, record: MessageRecord, text: str, passages: list[PassageEntry]) -> None:
        """Store a message, or replace the text and metadata of a stored one.

        An attachment is deleted with any of its captions, and with the last word of the message.
        """
        before = self.get(record.number)
        if before is not None and before.attachments:
            kept = tuple(self._described(before, text))
            self._drop(one for one in before.attachments if one not in kept)
            record = msgspec.structs.replace(record, attachments=kept)
        key = self._texts.put(text)
        assert key == record.text_key
        if before is not None:
            if not before.is_withdrawn:
                self._texts.drop(before.text_key)
            if before.metadata_key and before.metadata_key != record.metadata_key:
                self._texts.drop(before.metadata_key)
        self._passages.put(record.number, passages)
        self._save(record)
        self._meta.set(next_message_number=max(record.number + 1, self._meta.next_message_number))

    def accept(
        self,
        records: Sequence[MessageRecord],
        texts: Sequence[str],
        passages: Sequence[list[PassageEntry]],
        metadata: Mapping[bytes, str],
        contents: Mapping[bytes, bytes],
    ) -> None:
        """Store new messages with their texts, their passages if there are some, and by key their metadata and the
        contents of their attachments.
        """
        for record, entries in zip(records, passages, strict=False):
            self._tables.save(layout.PASSAGES, layout.u64(record.number), entries)
        for record, text in zip(records, texts, strict=True):
            key = self._texts.put(text)
            assert key == record.text_key
            if record.metadata_key:
                self._texts.put(metadata[record.metadata_key])
            for one in record.attachments:
                self._texts.put_content(contents[one.sha256])
            self._save(record)

    def note_faded(self, node: Node) -> None:
        """Note the parts of messages from which a memory was made that is forgotten, or says other words now."""
        for source in node.sources:
            record = self.get(source.message)
            if record is not None and not is_tombstone(record):
                span = FadedSpan(node.id, source.offset, source.length)
                self._save(msgspec.structs.replace(record, faded=(*record.faded, span)))

    def withdraw(self, record: MessageRecord, passages: list[PassageEntry]) -> None:
        """Delete the text and the attachments of a message. Recall finds its record by the given passages."""
        assert not record.is_withdrawn
        self._texts.drop(record.text_key)
        self._drop(record.attachments)
        self._save(msgspec.structs.replace(record, text_key=b"", personal=(), attachments=()))
        self._passages.put(record.number, passages)
        self._meta.set(withdrawn=True)

    def erase(self, record: MessageRecord) -> None:
        """Delete a message with all its fields. A tombstone keeps its number."""
        if not record.is_withdrawn:
            self._texts.drop(record.text_key)
        self._drop(record.attachments)
        if record.metadata_key:
            self._texts.drop(record.metadata_key)
        tombstone = MessageRecord(
            record.number, record.batch, record.index, "", "", "", None, record.accepted_at_ms, "", b""
        )
        self._save(tombstone)
        self._passages.put(record.number, [])

    def _described(self, record: MessageRecord, text: str) -> Iterator[Attachment]:
        """Yield the attachments of a message whose captions a new text still has."""
        before, now = (self.text(record) or "").encode(), text.encode()
        if not text.strip():
            return
        for one in record.attachments:
            places = [slice(part.offset, part.offset + part.length) for part in one.captions]
            if all(before[place] == now[place] for place in places):
                yield one

    def _drop(self, attachments: Iterable[Attachment]) -> None:
        for one in attachments:
            self._texts.drop(one.sha256)

    def _save(self, record: MessageRecord) -> None:
        self._tables.save(layout.MESSAGES, layout.u64(record.number), record)
