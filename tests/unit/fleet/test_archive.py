"""The archive is updated after every commit, can be rebuilt from the store, and loses nothing when a commit fails."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from ebbtide.changes import Change
from ebbtide.errors import Exhausted
from ebbtide.fleet.archive import archive as module
from ebbtide.fleet.archive.archive import Archive, passages_of
from ebbtide.fleet.ingest.admission import IncomingBatch
from ebbtide.fleet.recall.query import Query
from ebbtide.records import Batch, MessageRecord
from ebbtide.retrieval import marks
from ebbtide.retrieval.analysis import term_of
from ebbtide.retrieval.passages import _COLUMNS, PassageIndex
from ebbtide.retrieval.times import utc
from ebbtide.store import layout
from tests.property.homes import Home


@pytest.fixture
def home() -> Iterator[Home]:
    """An agent whose archive is loaded."""
    made = Home({})
    asked(made, "anything")
    yield made
    made.close()


def accept(home: Home, *texts: str, speaker: str = "Ann") -> None:
    records = [
        MessageRecord(0, 0, index, "user", speaker, "", None, 5, "s1", layout.text_key(text))
        for index, text in enumerate(texts)
    ]
    passages = [passages_of(text, speaker) for text in texts]
    home.workspace.inbox.accept([IncomingBatch(Batch(0, 5, 0, len(texts)), records, texts, b"", passages)])


def asked(home: Home, query: str, **fields: Any) -> list[str]:
    found, _ = home.workspace.recollect(Query(query, 10, **fields), 10, len)
    return [one.content for one in found.memories]


def seen(archive: Archive) -> dict[str, Any]:
    """Return the contents of a passage index as plain values."""
    columns: dict[str, Any] = {name: archive.index.column(name).tolist() for name in _COLUMNS}
    for word in ("boat", "tea", "ann"):
        columns[word] = [part.tolist() for part in archive.index.postings(term_of(word))]
    columns["made"] = [archive.memories_of(number) for number in range(1, 10)]
    return columns


def test_the_archive_follows_what_is_accepted_and_digested(home: Home) -> None:
    """After every commit the archive equals one loaded from the store."""
    accept(home, "The boat is late.", "Tea is ready.")
    home.remember([("a boat", ["boat"]), ("tea", ["tea"])], {})
    accept(home, "Another boat.")
    followed = home.workspace.open_archive.loaded
    assert followed is not None
    assert len(followed.index) > 3
    assert seen(followed) == seen(home.store.read(Archive.load))
    home.reopen()
    assert len(asked(home, "boats")) == 3
    assert seen(home.workspace.open_archive.loaded) == seen(followed)  # type: ignore[arg-type]


def test_a_refused_batch_is_not_found(home: Home) -> None:
    """A batch that was not committed is not in the archive, and the next batch gets the right position."""
    home.store.is_full = True
    with pytest.raises(Exhausted):
        accept(home, "The boat is late.")
    home.store.is_full = False
    assert asked(home, "boat") == []
    accept(home, "Tea is ready.")
    assert asked(home, "boat tea") == ["Ann: Tea is ready."]
    assert seen(home.workspace.open_archive.loaded) == seen(home.store.read(Archive.load))  # type: ignore[arg-type]


def test_an_archive_that_cannot_follow_is_reloaded(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed update costs a reload, not an answer; the batch is accepted nevertheless."""

    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(module.Archive, "add_messages", fail)
    accept(home, "The boat is late.")
    monkeypatch.undo()
    assert asked(home, "boat") == ["Ann: The boat is late."]


def test_messages_stored_without_passages_are_found(home: Home) -> None:
    """Messages that were stored without passages are found like any others."""
    accept(home, "The boat is late.", "Tea is ready.")
    accept(home, "Another boat.")
    before = seen(home.workspace.open_archive.loaded)  # type: ignore[arg-type]
    home.store.write(lambda txn: txn.tables.delete(layout.PASSAGES, layout.u64(2)))
    home.reopen()
    assert asked(home, "tea") == ["Ann: Tea is ready."]
    assert seen(home.workspace.open_archive.loaded) == before  # type: ignore[arg-type]


def test_stored_marks_of_other_rules_are_recomputed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise: after a change of the rules for marks, a query uses those of the new rules."""
    accept(home, "Where is the boat?")
    monkeypatch.setattr(marks, "RULES", 3)
    home.workspace.open_archive.discard()

    def columns() -> list[int]:
        index = home.workspace.store.read(home.workspace.archive).index
        return [*index.column("marks").tolist()]

    assert columns() == [marks.UNKNOWN]
    assert asked(home, "boat") == ["Ann: Where is the boat?"]
    assert columns() == [marks.marks_of("Where is the boat?")]


def test_a_shortened_memory_is_returned_as_it_is_without_the_archive(home: Home) -> None:
    """With the archive the original text is returned; without it, the current content."""
    said = "The boat in the old harbour is late again, and nobody knows why it is so."
    home.remember([(said, [])], {})
    [node] = home.nodes().values()
    shorter = "The boat is late."
    home.workspace.commit(Change(nodes=[msgspec.structs.replace(node, content=shorter)]))
    assert asked(home, "boat") == ["…" + said + " | "]
    assert asked(home, "boat", archive="never") == [shorter]


def test_values_of_passages_follow_later_writes(home: Home) -> None:
    """Values by passage equal those of an archive loaded from the store, also between acceptance and digest."""
    archive = home.workspace.open_archive.loaded
    assert archive is not None
    for place in range(4):
        if place % 2:
            accept(home, f"A pending boat {place}.")
        else:
            home.remember([(f"boat {place}", ["boat"]), (f"tea {place}", ["tea"])], {})
        ids = np.array(sorted(home.workspace.network.node_ids()), dtype=np.int64)
        fresh = home.workspace.store.read(Archive.load)
        expected = fresh.by_passage(ids, ids / 7).tolist()
        assert archive.by_passage(ids, ids / 7).tolist() == expected
        assert len(expected) == len(archive.index) and any(expected)


def test_passages_get_the_values_of_their_memories(home: Home) -> None:
    """For some passages or for all, a passage gets the highest value among the memories of its message."""
    for place in range(6):
        home.remember([(f"boat {place}", ["boat"]), (f"tea {place}", ["tea"])], {})
    archive = home.workspace.open_archive.loaded
    assert archive is not None
    network = home.workspace.network
    dice = Random(3)
    worths = {node: dice.random() for node in network.node_ids() if node % 3}
    expected = []
    for passage in range(len(archive.index)):
        made = archive.memories_of(int(archive.index.column("message")[passage]))
        expected.append(max((worths.get(node, 0.0) for node in made), default=0.0))
    assert any(expected)
    given = archive.by_passage(np.array(list(worths)), np.array(list(worths.values())))
    assert given.tolist() == expected
    some = np.array([5, 0, len(expected) - 1])
    best = archive.best_of_memories(
        some, lambda nodes: np.array([worths.get(n, 0.0) for n in nodes.tolist()])
    )
    assert best.tolist() == [expected[place] for place in some.tolist()]


def test_kept_shares_are_lengths_by_first_lengths(home: Home) -> None:
    """A memory that was never shortened keeps 1; a forgotten or unknown one keeps 0."""
    home.remember([("a boat", ["boat"])], {})
    network = home.workspace.network
    (node,) = network.node_ids()
    assert network.kept_shares(np.array([node, node + 7])).tolist() == [1.0, 0.0]
    network.apply(Change(forgotten=[node], focus=()))
    assert network.kept_shares(np.array([node])).tolist() == [0.0]


@pytest.mark.parametrize(
    ("timestamp_ms", "told"),
    [
        (-62_135_596_800_000, "0001-01-01 00:00, s1, m7"),
        (1_685_664_000_000, "2023-06-02 00:00, s1, m7"),
        (None, "s1, m7"),
    ],
)
def test_a_citation_has_a_four_digit_year(timestamp_ms: int | None, told: str) -> None:
    """The year has four digits; without a time the source consists of conversation and id."""
    record = MessageRecord(1, 1, 0, "user", "Ann", "m7", timestamp_ms, 5, "s1", b"key")
    assert record.place_label(utc) == told


def test_a_query_sees_the_focus_of_its_time(home: Home) -> None:
    """Promise: nearness to the focus is computed again after a change of the focus, the links or the memories."""
    home.remember([("a boat", ["boat"]), ("tea", ["tea"])], {})

    def near() -> list[float]:
        found, _ = home.workspace.recollect(Query("boat tea", 10), 10, len)
        assert found.ranking is not None
        in_order = np.argsort(found.ranking.passages)
        return found.ranking.signals["graph"][in_order].tolist()

    first, second = (one.id for one in home.store.read(lambda txn: list(txn.nodes.all()))[:2])
    for focus in ((first,), (second,), (first,)):
        home.workspace.commit(Change(focus=focus))
        again = near()
        assert again == near()
        home.workspace.open_archive.discard()
        assert again == near()
    home.remember([("a ship", ["ship"])], {})
    again = near()
    home.workspace.open_archive.discard()
    assert again == near()


def test_what_is_unchanged_is_computed_once() -> None:
    """Promise: a result is computed again for another key and after an addition of memories or messages."""
    archive, computed = Archive(PassageIndex()), []

    def compute() -> np.ndarray:
        computed.append(len(computed))
        return np.zeros(0)

    for key in (1, 1, 2, 2, 1):
        archive.unchanged(key, compute)
    assert len(computed) == 3
    archive.add_messages([], [])
    archive.unchanged(1, compute)
    assert len(computed) == 4


def test_explanations_change_no_result(home: Home) -> None:
    """Promise: a query that explains returns the same memories, and lists the dropped ones as well."""
    accept(home, *(f"The boat number {number} is late." for number in range(30)), "The boat is late.")
    accept(home, "The boat is late.")
    plain, _ = home.workspace.recollect(Query("boat", 5), 10, len)
    explained, _ = home.workspace.recollect(Query("boat", 5, explains=True), 10, len)
    assert [one.passage for one in plain.memories] == [one.passage for one in explained.memories]
    assert len(plain.memories) == 5 and plain.dropped == ()
    assert {why for _, why in explained.dropped} >= {"max_results"}
