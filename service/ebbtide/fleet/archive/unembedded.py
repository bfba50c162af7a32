"""Messages without vectors, and the storage of vectors: the two jobs of embedding.

The rules guarded here: every vector has the stamp of its model. A new model, or a new dimension of the same model, gets
a new stamp, so that vectors of two models are never mixed. When vectors are written, the texts are compared with those
that the model got; if a text was removed meanwhile, its vectors are dropped.

All messages up to `up_to` have vectors. Later ones may have them and are skipped, so the mark can safely be set back,
for example when the passages of a message change. A message without text is embedded by what its memories say.
`runtime/embedding.py` calls the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.fleet.archive.archive import content_of
from ebbtide.fleet.archive.reading import living_nodes
from ebbtide.records import EmbeddedMessage, EmbeddingState, MessageRecord, PassageEntry
from ebbtide.retrieval.passages import cut, with_speaker
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

Vector = NDArray[np.float32]

TEXTS_PER_ROUND = 256
"""Texts per round: they share one commit, and a kill repeats at most this many. Slow embedders have shorter rounds."""

MAX_MESSAGES_PER_ROUND = 2000
"""Most messages examined in a round, including those that have vectors."""

NUMBER_BYTES = 2
"""Bytes per number of a stored vector."""


@dataclass(frozen=True, slots=True)
class MessageToEmbed:
    """A message with its passages and their texts, to detect changes before vectors are stored."""

    record: MessageRecord
    passages: list[PassageEntry] | None
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unembedded:
    """The messages of a round, and the embedding state after it."""

    state: EmbeddingState
    since: int
    """The mark before the round."""
    lacking: tuple[MessageToEmbed, ...] = ()

    @property
    def all_texts(self) -> list[str]:
        """The texts of all messages, in order."""
        return [text for one in self.lacking for text in one.texts]


@dataclass(frozen=True, slots=True)
class GivenVector:
    """A caller's vector of a message: a unit vector of a model."""

    numbers: Vector
    model: str
    dimension: int = 0
    """That of the model's vectors; 0 while it is unknown."""


def state_under(model: str, dimension: int, state: EmbeddingState) -> EmbeddingState:
    """Return the embedding state for a model and a dimension (0: unknown).

    Another model or another dimension starts from the beginning with a new stamp.
    """
    is_of_another_size = 0 not in (dimension, state.dimension) and dimension != state.dimension
    if state.model != model or is_of_another_size:
        return EmbeddingState(model, state.stamp + 1, 0, dimension)
    return state if state.dimension else msgspec.structs.replace(state, dimension=dimension)


def _state(txn: ReadTransaction) -> EmbeddingState:
    """Return the stored state. If its dimension is unknown, take that of the stored vectors."""
    state = txn.meta.embedding
    if state.dimension or not state.stamp:
        return state
    some = (
        one.vectors
        for _, one in islice(txn.vectors.all(), MAX_MESSAGES_PER_ROUND)
        if one.stamp == state.stamp
    )
    first = next((vector for vectors in some for vector in vectors if vector), b"")
    return msgspec.structs.replace(state, dimension=len(first) // NUMBER_BYTES)


def unembedded_count(txn: ReadTransaction, model: str, dimension: int) -> int:
    """Return how many messages may lack vectors of this model and dimension (0: any)."""
    behind = txn.meta.next_message_number - 1 - state_under(model, dimension, _state(txn)).up_to
    # Message numbers may be sparse.
    return min(behind, txn.counts().message_count)


def next_unembedded(
    txn: ReadTransaction, model: str, dimension: int, texts_per_round: int = TEXTS_PER_ROUND
) -> Unembedded | None:
    """Return the next messages to embed, possibly an empty round; None if all have vectors.

    `dimension` is that of the model, 0 if it is unknown.
    """
    state = state_under(model, dimension, _state(txn))
    last = txn.meta.next_message_number - 1
    if state.up_to >= last:
        return None
    lacking: list[MessageToEmbed] = []
    text_count, up_to = 0, last
    for seen, record in enumerate(txn.messages.all(state.up_to + 1)):
        if seen == MAX_MESSAGES_PER_ROUND or text_count >= texts_per_round:
            up_to = record.number - 1
            break
        known = txn.vectors.get(record.number)
        if known is None or known.stamp != state.stamp:
            kept = txn.passages.get(record.number)
            lacking.append(MessageToEmbed(record, kept, tuple(_spoken(txn, record, kept))))
            text_count += len(lacking[-1].texts)
    return Unembedded(msgspec.structs.replace(state, up_to=up_to), state.up_to, tuple(lacking))


def _spoken(txn: ReadTransaction, record: MessageRecord, kept: list[PassageEntry] | None) -> Iterator[str]:
    """Yield the passages of a message with the speaker in front: a turn without speaker means little to a model."""
    text = txn.messages.text(record)
    if text is None:
        for entry in kept or ():
            said = content_of(living_nodes(txn, entry.told_by), record.number)
            yield with_speaker(said, record.speaker) if said else ""
        return
    spans = cut(text) if kept is None else [(one.begin, one.begin + one.length) for one in kept]
    for begin, end in spans:
        yield with_speaker(text[begin:end], record.speaker)


def keep_vectors(
    txn: WriteTransaction, work: Unembedded, vectors: Sequence[Vector | None]
) -> dict[int, EmbeddedMessage]:
    """Store the vectors of all texts of `work`, in order. Return the stored vectors by message.

    Store nothing if the agent's model or its dimension has changed meanwhile.
    """
    present = _state(txn)
    if state_under(work.state.model, work.state.dimension, present).stamp != work.state.stamp:
        return {}
    sizes = {work.state.dimension, *(len(vector) for vector in vectors if vector is not None)} - {0}
    if len(sizes) > 1:
        return {}
    kept: dict[int, EmbeddedMessage] = {}
    up_to, place = work.state.up_to, 0
    for one in work.lacking:
        mine = vectors[place : place + len(one.texts)]
        place += len(one.texts)
        number = one.record.number
        now = txn.messages.get(number)
        if now is None:
            continue
        if now.text_key != one.record.text_key or txn.passages.get(number) != one.passages:
            up_to = min(up_to, number - 1)
            continue
        kept[number] = EmbeddedMessage(work.state.stamp, tuple(map(_packed, mine)))
        txn.vectors.put(number, kept[number])
    if present.stamp == work.state.stamp and present.up_to < work.since:
        # The mark was set back while the model ran.
        up_to = min(up_to, present.up_to)
    txn.meta.set(embedding=msgspec.structs.replace(work.state, up_to=up_to, dimension=max(sizes, default=0)))
    return kept


def keep_given_vector(txn: WriteTransaction, message: int, given: GivenVector) -> dict[int, EmbeddedMessage]:
    """Store the caller's vector of a message, by its number.

    Raise INVALID_VALUE if it does not have the dimension of the model's or the agent's vectors. While both are unknown,
    it decides the agent's; the model's own vectors replace it if theirs is another one.
    """
    size = len(given.numbers)
    check_dimension(size, given.dimension)
    state = state_under(given.model, given.dimension, _state(txn))
    check_dimension(size, state.dimension)
    kept = EmbeddedMessage(state.stamp, (_packed(given.numbers),))
    txn.vectors.put(message, kept)
    txn.meta.set(embedding=msgspec.structs.replace(state, dimension=size))
    return {message: kept}


def check_dimension(given: int, expected: int) -> None:
    """Raise INVALID_VALUE if a caller's vector does not have the dimension of the embedding model; 0: unknown."""
    if expected and given != expected:
        description = f"{given} items; allowed: {expected}, as the embedding model has"
        raise InvalidRequest(
            f"vector: {description}",
            reason="INVALID_VALUE",
            violations=[FieldViolation("vector", description)],
        )


def _packed(vector: Vector | None) -> bytes:
    return b"" if vector is None else vector.astype("<f2").tobytes()
