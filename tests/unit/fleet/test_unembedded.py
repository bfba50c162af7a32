"""Messages without vectors and the storage of vectors, on a real store with models that are only names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ebbtide.fleet.archive.archive import Archive, passages_of
from ebbtide.fleet.archive.unembedded import (
    MAX_MESSAGES_PER_ROUND,
    TEXTS_PER_ROUND,
    Unembedded,
    Vector,
    keep_vectors,
    next_unembedded,
    unembedded_count,
)
from ebbtide.records import Batch, EmbeddedMessage, EmbeddingState, Identity, MessageRecord
from ebbtide.retrieval.passages import MAX_PASSAGE_CHARS
from ebbtide.store import layout
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore

A, B = "builtin:a", "ollama:b"
MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """An empty store, checked at the end."""
    path = tmp_path / "store"
    path.mkdir()
    opened = LmdbStore.create(
        path, Identity("ann", 0, 1, layout.FORMAT_VERSION), map_bytes=MIB, max_map_bytes=256 * MIB
    )
    yield opened
    assert check_store(opened) == []
    opened.close()


def said(store: LmdbStore, *texts: str) -> None:
    """Accept a batch of messages by Ann."""

    def write(txn: object) -> None:
        first, number = txn.meta.next_message_number, txn.meta.next_batch_number  # type: ignore[attr-defined]
        records = [
            MessageRecord(first + i, number, i, "user", "Ann", "", 5, 5, "", layout.text_key(text))
            for i, text in enumerate(texts)
        ]
        passages = [passages_of(text, "Ann") for text in texts]
        batch = Batch(number, 5, first, len(texts))
        txn.accept(batch, records, list(texts), None, passages)  # type: ignore[attr-defined]

    store.write(write)


def vector(place: int) -> Vector:
    """Return a unit vector along one of four axes."""
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
    """Return the vectors of an archive loaded now, by passage."""
    archive = store.read(Archive.load)
    if archive.vectors is None:
        return {}
    found = {place: archive.vectors.of(place) for place in range(len(archive.index))}
    return {place: one.tolist() for place, one in found.items() if one is not None}


def test_everything_is_asked_for_once(store: LmdbStore) -> None:
    """Texts come with their speaker, long messages by passage; afterwards nothing is left to embed."""
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
    """A text that the model rejects is not retried and has no vector."""
    said(store, "one", "你好")
    keep(store, work_of(store, A), [vector(2), None])
    assert left(store, A) == 0
    assert vectors_held(store) == {0: vector(2).tolist()}


def test_rounds_are_bounded(store: LmdbStore) -> None:
    """A round has a bounded number of texts, and the next one continues after it."""
    said(store, *(f"message {place}" for place in range(TEXTS_PER_ROUND + 10)))
    first = work_of(store, A)
    assert len(first.lacking) == TEXTS_PER_ROUND
    keep(store, first)
    assert numbers(work_of(store, A)) == list(range(TEXTS_PER_ROUND + 1, TEXTS_PER_ROUND + 11))


def test_another_model_begins_anew(store: LmdbStore) -> None:
    """Another model gets everything; its vectors are never mixed with those of the previous one."""
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
    """A new dimension of the same model counts as another model; late results of the old dimension are dropped."""
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
    """If the dimension was unknown, all vectors of a round must have the same one."""
    said(store, "one", "two")
    axis = np.array([0, 1, 0], dtype=np.float32)
    assert keep(store, work_of(store, A), [vector(0), axis]) == set()
    assert left(store, A) == 2


def test_a_store_that_does_not_tell_a_size_has_that_of_its_vectors(store: LmdbStore) -> None:
    """Vectors stored without a dimension are recomputed only if the dimension changes; recall works meanwhile."""
    said(store, "one", "two", "three")
    keep(store, work_of(store, A), [None, vector(0), vector(1)])
    state = store.read(lambda txn: txn.meta.embedding)
    assert state.dimension == 4

    def as_before(txn: object) -> None:
        txn.tables.put(layout.META, b"embedding", layout.encode((A, state.stamp, 3)))  # type: ignore[attr-defined]
        three = EmbeddedMessage(state.stamp, (np.ones(1, dtype="<f2").tobytes(),))
        txn.vectors.put(3, three)  # type: ignore[attr-defined]

    store.write(as_before)
    assert store.read(lambda txn: txn.meta.embedding) == EmbeddingState(A, state.stamp, 3, 0)
    assert vectors_held(store) == {1: vector(0).tolist()}
    assert left(store, A, 4) == 0 and left(store, A, 1) == 3


def test_vectors_that_come_after_the_model_changed_are_dropped(store: LmdbStore) -> None:
    """A result of the old model is not stored under the new one."""
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
    """A text that was replaced while the model ran is embedded again; its neighbours keep their vectors."""
    said(store, "one", "secret", "three")
    work = work_of(store, A)

    def withdraw(txn: object) -> None:
        record = txn.messages.get(2)  # type: ignore[attr-defined]
        key = txn.texts.put("      ")  # type: ignore[attr-defined]
        changed = msgspec.structs.replace(record, text_key=key)
        txn.tables.put(layout.MESSAGES, layout.u64(2), layout.encode(changed))  # type: ignore[attr-defined]
        txn.texts.drop(record.text_key)  # type: ignore[attr-defined]

    store.write(withdraw)
    assert keep(store, work) == {1, 3}
    again = work_of(store, A)
    assert numbers(again) == [2] and again.lacking[0].texts == ("Ann:       ",)
    keep(store, again, [None])
    assert left(store, A) == 0 and set(vectors_held(store)) == {0, 2}


def test_a_mark_set_back_is_not_moved_on_by_an_answer_under_way(store: LmdbStore) -> None:
    """If the mark is set back while later messages are embedded, earlier ones are embedded next."""
    said(store, "one", "two")
    keep(store, work_of(store, A))
    said(store, "three")
    under_way = work_of(store, A)

    def forget_first(txn: object) -> None:
        txn.tables.delete(layout.VECTORS, layout.u64(1))  # type: ignore[attr-defined]
        state = txn.meta.embedding  # type: ignore[attr-defined]
        txn.meta.set(embedding=EmbeddingState(state.model, state.stamp, 0))  # type: ignore[attr-defined]

    store.write(forget_first)
    keep(store, under_way)
    assert numbers(work_of(store, A)) == [1]


def test_what_has_vectors_already_is_passed_over(store: LmdbStore) -> None:
    """After the mark is set back, only messages without vectors are embedded, in bounded rounds."""
    count = MAX_MESSAGES_PER_ROUND + 5
    said(store, *(f"message {place}" for place in range(count)))
    while (work := store.read(lambda txn: next_unembedded(txn, A, 0))) is not None:
        keep(store, work)
    state = store.read(lambda txn: txn.meta.embedding)
    store.write(lambda txn: txn.meta.set(embedding=EmbeddingState(A, state.stamp, 0)))
    assert numbers(work_of(store, A)) == []
    keep(store, work_of(store, A))
    assert left(store, A) == 5


def test_an_archive_that_follows_is_one_that_is_loaded(store: LmdbStore) -> None:
    """An archive that was updated after each commit equals one loaded afterwards."""
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
