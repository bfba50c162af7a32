"""What was said, in one transaction: messages, their texts, and what is derived from a text.

A text is kept once, as a chunk, however many refer to it: each reference is counted as it is made and let go, and
the last one takes the text along. A message that says something else, or nothing any more, gets passages to fit and
loses its vectors in the same transaction, so that an index never tells what the archive no longer holds.

Why a text goes is not decided here: retention, deletion and correction are the fleet's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import zstandard

from ebbtide.records import EmbeddedMessage, EmbeddingState, MessageRecord, PassageEntry
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import TableReading, TableWriting


def is_tombstone(record: MessageRecord) -> bool:
    """Whether the message was erased: its number and when it was accepted are told, nothing else, not even a role."""
    return not record.role


class TextReading(TableReading):
    """What was said to one agent."""

    # --- messages ----------------------------------------------------------------------------------

    def message(self, number: int) -> MessageRecord | None:
        """The message of this number."""
        value = self.get(layout.MESSAGES, layout.u64(number))
        return None if value is None else layout.decode(value, type=MessageRecord)

    def messages(self, start: int = 0) -> Iterator[MessageRecord]:
        """Messages from number `start` on, by number."""
        decoder = msgspec.msgpack.Decoder(MessageRecord)
        for _, value in self.items(layout.MESSAGES, layout.u64(start)):
            yield decoder.decode(value)

    def message_text(self, record: MessageRecord) -> str | None:
        """The text of a message; None when it is no longer kept."""
        return None if record.is_withdrawn else self.chunk(record.text_key)

    def chunk(self, key: bytes) -> str | None:
        """The text under a chunk's key."""
        value = self.get(layout.CHUNKS, key)
        return None if value is None else zstandard.ZstdDecompressor().decompress(value).decode()

    def next_message_number(self) -> int:
        """The number the next message will get."""
        return self._number(b"next_message_number", 1)

    def holds_withdrawn(self) -> bool:
        """Whether the text of any message was ever withdrawn."""
        return self.get(layout.META, b"withdrawn") is not None

    def texts_from(self) -> int:
        """Every message before this one has lost its text."""
        return self._number(b"texts_from", 1)

    # --- passages and vectors ----------------------------------------------------------------------

    def passages_of(self, message: int) -> list[PassageEntry] | None:
        """The passages of a message; None where it was stored without."""
        value = self.get(layout.PASSAGES, layout.u64(message))
        return None if value is None else layout.decode(value, type=list[PassageEntry])

    def passages(self) -> Iterator[tuple[MessageRecord, list[PassageEntry] | None]]:
        """Every message, by number, with its passages; None where it was stored without."""
        records, entries = msgspec.msgpack.Decoder(MessageRecord), msgspec.msgpack.Decoder(list[PassageEntry])
        kept = self.items(layout.PASSAGES)
        key, value = next(kept, (b"", b""))
        for number, record in self.items(layout.MESSAGES):
            while key and key < number:
                key, value = next(kept, (b"", b""))
            yield records.decode(record), entries.decode(value) if key == number else None

    def embedding_state(self) -> EmbeddingState:
        """Which model the agent's vectors are from, and how far they go."""
        value = self.get(layout.META, b"embedding")
        return EmbeddingState() if value is None else layout.decode(value, type=EmbeddingState)

    def embedded(self, message: int) -> EmbeddedMessage | None:
        """The vectors of a message; None where it has none yet."""
        value = self.get(layout.VECTORS, layout.u64(message))
        return None if value is None else layout.decode(value, type=EmbeddedMessage)

    def embedded_messages(self) -> Iterator[tuple[int, EmbeddedMessage]]:
        """(number, vectors) of the messages that have some, of whatever model, by number."""
        decoder = msgspec.msgpack.Decoder(EmbeddedMessage)
        for key, value in self.items(layout.VECTORS):
            yield layout.from_u64(key), decoder.decode(value)


class TextWriting(TextReading, TableWriting):
    """What is said to one agent, and what is taken back."""

    # --- messages ----------------------------------------------------------------------------------

    def put_message(self, record: MessageRecord, text: str, passages: list[PassageEntry]) -> None:
        """Keep a message, or let it say something else from now on: the text it had is let go."""
        before = self.message(record.number)
        key = self.put_chunk(text)
        assert key == record.text_key
        if before is not None:
            if not before.is_withdrawn:
                self.drop_chunk(before.text_key)
            if before.metadata_key and before.metadata_key != record.metadata_key:
                self.drop_chunk(before.metadata_key)
        self.put_passages(record.number, passages)
        self.put(layout.MESSAGES, layout.u64(record.number), layout.encode(record))
        self._set_number(b"next_message_number", max(record.number + 1, self.next_message_number()))

    def _keep_messages(
        self,
        records: Sequence[MessageRecord],
        texts: Sequence[str],
        passages: Sequence[list[PassageEntry]],
        metadata: Mapping[bytes, str],
    ) -> None:
        """Keep new messages, each with its text, its passages if there are some, and its metadata."""
        for record, entries in zip(records, passages, strict=False):
            self.put(layout.PASSAGES, layout.u64(record.number), layout.encode(entries))
        for record, text in zip(records, texts, strict=True):
            key = self.put_chunk(text)
            assert key == record.text_key
            if record.metadata_key:
                self.put_chunk(metadata[record.metadata_key])
            self.put(layout.MESSAGES, layout.u64(record.number), layout.encode(record))

    def withdraw(self, record: MessageRecord, passages: list[PassageEntry]) -> None:
        """Take the text of a message out of the archive for good; the record stays, found by these passages."""
        assert not record.is_withdrawn
        self.drop_chunk(record.text_key)
        gone = msgspec.structs.replace(record, text_key=b"", personal=())
        self.put(layout.MESSAGES, layout.u64(record.number), layout.encode(gone))
        self.put_passages(record.number, passages)
        self.put(layout.META, b"withdrawn", b"1")

    def erase_message(self, record: MessageRecord) -> None:
        """Take a message with all that is told of it out of the archive; a tombstone holds its number."""
        if not record.is_withdrawn:
            self.drop_chunk(record.text_key)
        if record.metadata_key:
            self.drop_chunk(record.metadata_key)
        tombstone = MessageRecord(
            record.number, record.batch, record.index, "", "", "", None, record.accepted_at_ms, "", b"", b""
        )
        self.put(layout.MESSAGES, layout.u64(record.number), layout.encode(tombstone))
        self.put_passages(record.number, [])

    def set_texts_from(self, message: int) -> None:
        """Note that every message before this one has lost its text."""
        self._set_number(b"texts_from", message)

    def put_chunk(self, text: str) -> bytes:
        """Keep a text, or count one more reference to it; its key."""
        key = layout.text_key(text)
        references = self.get(layout.CHUNK_REFERENCES, key)
        if references is None:
            self.put(layout.CHUNKS, key, zstandard.ZstdCompressor().compress(text.encode()))
        count = 1 if references is None else layout.from_u32(references) + 1
        self.put(layout.CHUNK_REFERENCES, key, layout.u32(count))
        return key

    def drop_chunk(self, key: bytes) -> None:
        """Count one reference to a text less; without any it is gone."""
        references = self.get(layout.CHUNK_REFERENCES, key)
        assert references is not None, "a chunk in use is counted"
        count = layout.from_u32(references) - 1
        if count:
            self.put(layout.CHUNK_REFERENCES, key, layout.u32(count))
        else:
            self.delete(layout.CHUNK_REFERENCES, key)
            self.delete(layout.CHUNKS, key)

    # --- passages and vectors ----------------------------------------------------------------------

    def put_passages(self, message: int, passages: list[PassageEntry]) -> None:
        """Write the passages of a message anew; the vectors of those before go, and are to be made again."""
        self.put(layout.PASSAGES, layout.u64(message), layout.encode(passages))
        self.delete(layout.VECTORS, layout.u64(message))
        state = self.embedding_state()
        if state.up_to >= message:
            self.set_embedding_state(msgspec.structs.replace(state, up_to=message - 1))

    def put_embedded(self, message: int, embedded: EmbeddedMessage) -> None:
        """Keep the vectors of a message."""
        self.put(layout.VECTORS, layout.u64(message), layout.encode(embedded))

    def set_embedding_state(self, state: EmbeddingState) -> None:
        """Keep which model vectors are from, and how far they go."""
        self.put(layout.META, b"embedding", layout.encode(state))
