"""What lacks vectors, and how vectors are kept: on a real store, with models that are only names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ebbtide.fleet.archive.archive import Archive, passages_of
from ebbtide.fleet.archive.unembedded import (
    MESSAGES_SEEN,
    TEXTS_AT_ONCE,
    Unembedded,
    Vector,
    keep_vectors,
    next_unembedded,
    unembedded_count,
)
from ebbtide.records import Batch, EmbeddedMessage, EmbeddingState, MessageRecord
from ebbtide.retrieval.passages import MAX_PASSAGE_CHARS
from ebbtide.store import layout
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.port import Identity

A, B = "builtin:a", "ollama:b"
MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """An empty store, checked in the end."""
    path = tmp_path / "store"
    path.mkdir()
    opened = LmdbStore.create(path, Identity("ann", 0, 1, 1), map_bytes=MIB, max_map_bytes=256 * MIB)
    yield opened
    assert check_store(opened) == []
    opened.close()


def said(store: LmdbStore, *texts: str) -> None:
    """A batch of messages by Ann is accepted."""

    def write(txn: object) -> None:
        first, number = txn.next_message_number(), txn.next_batch_number()  # type: ignore[attr-defined]
        records = [
            MessageRecord(first + i, number, i, "user", "Ann", "", 5, 5, "", layout.text_key(text))
            for i, text in enumerate(texts)
        ]
        passages = [passages_of(text, "Ann") for text in texts]
        batch = Batch(number, 5, first, len(texts))
        txn.accept(batch, records, list(texts), None, passages)  # type: ignore[attr-defined]

    store.write(write)


def vector(place: int) -> Vector:
    """A vector of length 1 along one of four axes."""
    found = np.zeros(4, dtype=np.float32)
    found[place % 4] = 1
    return found


def work_of(store: LmdbStore, model: str, dimension: int = 0) -> Unembedded:
    found = store.read(lambda txn: next_unembedded(txn, model, dimension))
    assert found is not None
    return found


def keep(store: LmdbStore, work: Unembedded, vectors: Sequence[Vector | None] | None = None) -> set[int]:
    given = [vector(place) for place in range(len(work.all_texts))] if vectors is None else vectors
    return set(store.write(lambda txn: keep_vectors(txn, work, given)))


def numbers(work: Unembedded) -> list[int]:
    return [one.record.number for one in work.lacking]


def left(store: LmdbStore, model: str, dimension: int = 0) -> int:
    return store.read(lambda txn: unembedded_count(txn, model, dimension))


def vectors_held(store: LmdbStore) -> dict[int, list[float]]:
    """By passage, what an archive loaded now holds."""
    archive = store.read(Archive.load)
    if archive.vectors is None:
        return {}
    found = {place: archive.vectors.of(place) for place in range(len(archive.shelf))}
    return {place: one.tolist() for place, one in found.items() if one is not None}


def test_everything_is_asked_for_once(store: LmdbStore) -> None:
    """What was said comes with its speaker, a long message by its passages; afterwards nothing is left."""
    said(store, "Short.", "A sentence that is long. " * (MAX_PASSAGE_CHARS // 20))
    work = work_of(store, A)
    assert numbers(work) == [1, 2] and work.lacking[0].texts == ("Ann: Short.",)
    assert len(work.lacking[1].texts) > 1 and all(text.startswith("Ann: ") for text in work.lacking[1].texts)
    assert "".join(text.removeprefix("Ann: ") for text in work.lacking[1].texts).startswith("A sentence")
    assert left(store, A) == 2
    assert keep(store, work) == {1, 2}
    assert left(store, A) == 0 and store.read(lambda txn: next_unembedded(txn, A, 0)) is None
    assert vectors_held(store) == {place: vector(place).tolist() for place in range(len(work.all_texts))}


def test_a_text_without_a_vector_is_done_too(store: LmdbStore) -> None:
    """What a model has nothing to say about is not asked for again, and has no vector."""
    said(store, "one", "你好")
    keep(store, work_of(store, A), [vector(2), None])
    assert left(store, A) == 0
    assert vectors_held(store) == {0: vector(2).tolist()}


def test_rounds_are_bounded(store: LmdbStore) -> None:
    """A round asks for a bounded number of texts, and the next one goes on behind it."""
    said(store, *(f"message {place}" for place in range(TEXTS_AT_ONCE + 10)))
    first = work_of(store, A)
    assert len(first.lacking) == TEXTS_AT_ONCE
    keep(store, first)
    assert numbers(work_of(store, A)) == list(range(TEXTS_AT_ONCE + 1, TEXTS_AT_ONCE + 11))


def test_another_model_begins_anew(store: LmdbStore) -> None:
    """Another model is asked for everything; its vectors never stand beside those of the one before."""
    said(store, "one", "two")
    keep(store, work_of(store, A), [vector(0), vector(1)])
    again = work_of(store, B)
    assert numbers(again) == [1, 2]
    half = msgspec.structs.replace(again.state, up_to=1)
    partly = Unembedded(half, again.since, again.lacking[:1])
    keep(store, partly, [vector(3)])
    assert vectors_held(store) == {0: vector(3).tolist()}
    assert left(store, B) == 1 and left(store, A) == 2


def test_another_size_begins_anew(store: LmdbStore) -> None:
    """Vectors of another size under the same name are another model's; what came in the old size is dropped."""
    said(store, "one", "two")
    keep(store, work_of(store, A), [vector(0), None])
    assert left(store, A) == left(store, A, 4) == 0 and left(store, A, 3) == 2
    again = work_of(store, A, 3)
    assert numbers(again) == [1, 2] and keep(store, again, [vector(1), vector(2)]) == set()
    assert vectors_held(store) == {0: vector(0).tolist()} and left(store, A, 3) == 2
    axis = np.array([0, 1, 0], dtype=np.float32)
    assert keep(store, again, [axis, None]) == {1, 2}
    assert vectors_held(store) == {0: axis.tolist()}
    assert left(store, A) == left(store, A, 3) == 0 and left(store, A, 4) == 2


def test_vectors_of_two_sizes_are_not_kept_together(store: LmdbStore) -> None:
    """Where nobody knew a size beforehand, all vectors of a round must have the same one."""
    said(store, "one", "two")
    axis = np.array([0, 1, 0], dtype=np.float32)
    assert keep(store, work_of(store, A), [vector(0), axis]) == set()
    assert left(store, A) == 2


def test_a_store_that_does_not_tell_a_size_has_that_of_its_vectors(store: LmdbStore) -> None:
    """What an older version wrote is embedded anew when the size has changed, and not before; questions go on."""
    said(store, "one", "two", "three")
    keep(store, work_of(store, A), [None, vector(0), vector(1)])
    state = store.read(lambda txn: txn.embedding_state())
    assert state.dimension == 4

    def as_before(txn: object) -> None:
        txn.put(layout.META, b"embedding", layout.encode((A, state.stamp, 3)))  # type: ignore[attr-defined]
        three = EmbeddedMessage(state.stamp, (np.ones(1, dtype="<f2").tobytes(),))
        txn.put_embedded(3, three)  # type: ignore[attr-defined]

    store.write(as_before)
    assert store.read(lambda txn: txn.embedding_state()) == EmbeddingState(A, state.stamp, 3, 0)
    assert vectors_held(store) == {1: vector(0).tolist()}
    assert left(store, A, 4) == 0 and left(store, A, 1) == 3


def test_vectors_that_come_after_the_model_changed_are_dropped(store: LmdbStore) -> None:
    """An answer of the old model is not written under the new one."""
    said(store, "one")
    late = work_of(store, A)
    keep(store, late)
    stale = work_of(store, B)
    keep(store, work_of(store, B), [vector(1)])
    keep(store, work_of(store, A), [vector(2)])
    assert keep(store, stale, [vector(3)]) == set()
    assert keep(store, late, [vector(3)]) == set()
    assert vectors_held(store) == {0: vector(2).tolist()}


def test_a_text_withdrawn_meanwhile_gets_no_vector(store: LmdbStore) -> None:
    """What was replaced while the model was asked is asked for again; its neighbours keep theirs."""
    said(store, "one", "secret", "three")
    work = work_of(store, A)

    def withdraw(txn: object) -> None:
        record = txn.message(2)  # type: ignore[attr-defined]
        key = txn.put_chunk("      ")  # type: ignore[attr-defined]
        changed = msgspec.structs.replace(record, text_key=key)
        txn.put(layout.MESSAGES, layout.u64(2), layout.encode(changed))  # type: ignore[attr-defined]
        txn.drop_chunk(record.text_key)  # type: ignore[attr-defined]

    store.write(withdraw)
    assert keep(store, work) == {1, 3}
    again = work_of(store, A)
    assert numbers(again) == [2] and again.lacking[0].texts == ("Ann:       ",)
    keep(store, again, [None])
    assert left(store, A) == 0 and set(vectors_held(store)) == {0, 2}


def test_a_mark_set_back_is_not_moved_on_by_an_answer_under_way(store: LmdbStore) -> None:
    """Who sets the mark back while a model is asked about later messages has the earlier ones asked for."""
    said(store, "one", "two")
    keep(store, work_of(store, A))
    said(store, "three")
    under_way = work_of(store, A)

    def forget_first(txn: object) -> None:
        txn.delete(layout.VECTORS, layout.u64(1))  # type: ignore[attr-defined]
        state = txn.embedding_state()  # type: ignore[attr-defined]
        txn.set_embedding_state(EmbeddingState(state.model, state.stamp, 0))  # type: ignore[attr-defined]

    store.write(forget_first)
    keep(store, under_way)
    assert numbers(work_of(store, A)) == [1]


def test_what_has_vectors_already_is_passed_over(store: LmdbStore) -> None:
    """Behind a mark that was set back only what lacks vectors is asked for, a bounded look at a time."""
    count = MESSAGES_SEEN + 5
    said(store, *(f"message {place}" for place in range(count)))
    while (work := store.read(lambda txn: next_unembedded(txn, A, 0))) is not None:
        keep(store, work)
    state = store.read(lambda txn: txn.embedding_state())
    store.write(lambda txn: txn.set_embedding_state(EmbeddingState(A, state.stamp, 0)))
    assert numbers(work_of(store, A)) == []
    keep(store, work_of(store, A))
    assert left(store, A) == 5


def test_an_archive_that_follows_is_one_that_is_loaded(store: LmdbStore) -> None:
    """The vectors of an archive that was told of each commit are those of one loaded afterwards."""
    said(store, "one", "two", "three")
    archive = store.read(Archive.load)
    for model in (A, B):
        work = work_of(store, model)
        kept = store.write(lambda txn, work=work: keep_vectors(txn, work, [vector(1), None, vector(2)]))
        archive.follow(work.state, kept.items())
    assert archive.vectors is not None
    followed = {place: archive.vectors.of(place) for place in range(3)}
    told = {place: one.tolist() for place, one in followed.items() if one is not None}
    assert told == vectors_held(store) and archive.embedding.model == B
