"""What of an agent has no vectors yet, and how vectors are kept: the two jobs of embedding.

The rules guarded here: every vector bears the stamp of the model that made it, and a new model gets a new stamp, as
does another size of vectors under the same name, so that vectors of two models never stand beside each other; what a
model was asked about is looked at again when its vectors are written, since the text may have been withdrawn
meanwhile, and then they are dropped.

All messages up to `up_to` have vectors; behind it some may, and are passed over. So nothing is lost when the
mark is set back, as it is when the passages of a message change. A message without its text is embedded by what
its memories say now, as it is found. Deliberately not here: who asks the model, and when (`embedding.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.archive.archive import said_by
from ebbtide.records import EmbeddedMessage, EmbeddingState, MessageRecord, PassageEntry
from ebbtide.retrieval.passages import cut, with_speaker
from ebbtide.store.port import ReadTransaction, WriteTransaction

Vector = NDArray[np.float32]

TEXTS_AT_ONCE = 256
"""Texts of a round: one commit for all of them, and as many as are asked again after a kill."""

MESSAGES_SEEN = 2000
"""Most messages looked at in a round: those that have their vectors already are passed over."""

NUMBER_BYTES = 2
"""Bytes of each number of a vector as it is kept."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A message with the texts of its passages, and these passages as they were: both may change meanwhile."""

    record: MessageRecord
    passages: list[PassageEntry] | None
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unembedded:
    """Messages that lack vectors, the texts of their passages, and how far the agent has them after these."""

    state: EmbeddingState
    since: int
    """How far it had them before."""
    lacking: tuple[Lacking, ...] = ()

    @property
    def all_texts(self) -> list[str]:
        """The texts of all messages, one after the other."""
        return [text for one in self.lacking for text in one.texts]


def state_under(model: str, dimension: int, state: EmbeddingState) -> EmbeddingState:
    """The state as it is for a model with vectors of a size, 0 where nobody knows that.

    Another model than before begins anew, with a stamp of its own, and so does another size.
    """
    is_of_another_size = 0 not in (dimension, state.dimension) and dimension != state.dimension
    if state.model != model or is_of_another_size:
        return EmbeddingState(model, state.stamp + 1, 0, dimension)
    return state if state.dimension else msgspec.structs.replace(state, dimension=dimension)


def _state(txn: ReadTransaction) -> EmbeddingState:
    """The state as it is kept; where that does not tell a size, as in older stores, with that of the vectors."""
    state = txn.embedding_state()
    if state.dimension or not state.stamp:
        return state
    some = (
        one.vectors for _, one in islice(txn.embedded_messages(), MESSAGES_SEEN) if one.stamp == state.stamp
    )
    first = next((vector for vectors in some for vector in vectors if vector), b"")
    return msgspec.structs.replace(state, dimension=len(first) // NUMBER_BYTES)


def unembedded_count(txn: ReadTransaction, model: str, dimension: int) -> int:
    """Messages that may lack vectors of a model and of a size (0: any): those behind the mark."""
    behind = txn.next_message_number() - 1 - state_under(model, dimension, _state(txn)).up_to
    # Numbers of messages may lie far apart.
    return min(behind, txn.counts().message_count)


def next_unembedded(txn: ReadTransaction, model: str, dimension: int) -> Unembedded | None:
    """The next messages to embed, which may turn out to be none; None when all have vectors of this model.

    `dimension` is the size of its vectors, 0 where nobody knows that.
    """
    state = state_under(model, dimension, _state(txn))
    last = txn.next_message_number() - 1
    if state.up_to >= last:
        return None
    lacking: list[Lacking] = []
    text_count, up_to = 0, last
    for seen, record in enumerate(txn.messages(state.up_to + 1)):
        if seen == MESSAGES_SEEN or text_count >= TEXTS_AT_ONCE:
            up_to = record.number - 1
            break
        known = txn.embedded(record.number)
        if known is None or known.stamp != state.stamp:
            kept = txn.passages_of(record.number)
            lacking.append(Lacking(record, kept, tuple(_spoken(txn, record, kept))))
            text_count += len(lacking[-1].texts)
    return Unembedded(msgspec.structs.replace(state, up_to=up_to), state.up_to, tuple(lacking))


def _spoken(txn: ReadTransaction, record: MessageRecord, kept: list[PassageEntry] | None) -> Iterator[str]:
    """The passages of a message, each with who said it before it: a bare turn means little to a model."""
    text = txn.message_text(record)
    if text is None:
        for entry in kept or ():
            said = said_by(node for node in map(txn.node, entry.told_by) if node is not None)
            yield with_speaker(said, record.speaker) if said else ""
        return
    spans = cut(text) if kept is None else [(one.begin, one.begin + one.length) for one in kept]
    for begin, end in spans:
        yield with_speaker(text[begin:end], record.speaker)


def keep_vectors(
    txn: WriteTransaction, work: Unembedded, vectors: Sequence[Vector | None]
) -> dict[int, EmbeddedMessage]:
    """Write the vectors of all texts of `work`, in order; what was kept, by message.

    Nothing is kept when the agent has gone over to another model meanwhile, or the model to another size.
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
        now = txn.message(number)
        if now is None:
            continue
        if now.text_key != one.record.text_key or txn.passages_of(number) != one.passages:
            up_to = min(up_to, number - 1)
            continue
        kept[number] = EmbeddedMessage(work.state.stamp, tuple(map(_packed, mine)))
        txn.put_embedded(number, kept[number])
    if present.stamp == work.state.stamp and present.up_to < work.since:
        # Set back while the model was asked.
        up_to = min(up_to, present.up_to)
    txn.set_embedding_state(msgspec.structs.replace(work.state, up_to=up_to, dimension=max(sizes, default=0)))
    return kept


def _packed(vector: Vector | None) -> bytes:
    return b"" if vector is None else vector.astype("<f2").tobytes()
