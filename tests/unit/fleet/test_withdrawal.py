"""Deleting memories: store, network and archive agree at every moment, and nothing of what was said stays."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from ebbtide.errors import Exhausted
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.compression.visits import ShorteningTask
from ebbtide.fleet.deletion import correction, withdrawal
from ebbtide.fleet.deletion.correction import Correction
from ebbtide.fleet.deletion.withdrawal import Deleted, Deletion, Said, outside
from ebbtide.fleet.recall.query import Query
from ebbtide.retrieval import passages
from ebbtide.retrieval.analysis import term_of
from ebbtide.store import layout
from tests.property.homes import Home, shortened, snapshot
from tests.unit.fleet.test_archive import seen

WORDS = ["boat", "tea", "harbour", "milk", "青岛", "外婆", "bread", "anchor", "sail"]


@pytest.fixture
def home() -> Iterator[Home]:
    """An agent that was asked something already: its archive is loaded."""
    made = Home({"decay_rate": 0.5, "focus_limit": 2, "delete_threshold": 1, "link_initial_strength": 0.5})
    made.workspace.recollect(Query("anything", 10), 10, len)
    yield made
    assert made.faults() == []
    made.close()


def delete(home: Home, *wanted: int | Said) -> Deletion:
    archive = home.store.read(home.workspace.archive)
    return home.workspace.amend(lambda txn: withdrawal.delete(txn, wanted, archive))


def correct(home: Home, node_id: int, content: str) -> None:
    wanted = Correction(node_id, content, "phrase", ("key",))
    home.workspace.amend(lambda txn: correction.correct(txn, wanted))


def faded(home: Home) -> tuple[ShorteningTask, ...]:
    """Texts that a pass under way waits for."""
    for number in range(8):
        home.remember([(f"number {number}: {' and '.join(WORDS)}", [])], {})
        step = home.step()
        while not step.is_idle:
            if step.tasks:
                return step.tasks
            step = home.step()
    raise AssertionError("no memory faded")


def assert_it_agrees(home: Home) -> None:
    """What is held in memory is what is made anew from the disk."""
    followed = home.workspace.open_archive.loaded
    assert followed is not None
    held = snapshot(home.workspace.network)
    shelf = seen(followed)
    assert home.faults() == []
    anew = seen(home.store.read(Archive.load))
    living = set(home.nodes())
    # Those that are gone are passed over; a shelf made anew never heard of them.
    assert [[n for n in made if n in living] for made in shelf.pop("made")] == anew.pop("made")
    assert shelf == anew
    home.reopen()
    assert snapshot(home.workspace.network) == held
    home.workspace.recollect(Query("anything", 10), 10, len)


@pytest.mark.parametrize("seed", range(12))
def test_store_network_and_archive_agree_after_deletions_and_corrections(
    home: Home, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Between batches and passes, of nodes in focus and linked from everywhere, before and after merges."""
    monkeypatch.setattr(passages, "FEWEST_MERGED", 8)
    dice = Random(seed)
    for _ in range(6):
        segments = [
            (" ".join(dice.sample(WORDS, 4)) + " " * 3 * (i % 2), []) for i in range(dice.randint(1, 6))
        ]
        home.remember(segments, {})
        if dice.random() < 0.6:
            home.compress(lambda text, most: text[:most])
        living = sorted(home.nodes())
        for node_id in dice.sample(living, min(len(living), dice.randint(0, 3))):
            linked = sum(
                node_id in (link.source, link.target) for link in home.store.read(lambda t: list(t.links()))
            )
            [outcome] = delete(home, node_id).outcomes
            assert isinstance(outcome, Deleted)
            assert outcome.links_removed == linked
            links = home.store.read(lambda txn: list(txn.links()))
            assert all(node_id not in (link.source, link.target) for link in links)
        for node_id in dice.sample(sorted(home.nodes()), min(len(home.nodes()), dice.randint(0, 2))):
            correct(home, node_id, " ".join(dice.sample(WORDS, 3)))
        messages = home.store.read(lambda txn: [record.number for record in txn.messages()])
        delete(
            home, *(Said(number) for number in dice.sample(messages, min(len(messages), dice.randint(0, 2))))
        )
        assert_it_agrees(home)


def test_several_go_in_one_commit_and_each_is_told_of(home: Home) -> None:
    """One outcome each, in order; who is named twice is there once; a link between two of them counts once."""
    home.remember([(f"{word} in the harbour", []) for word in WORDS[:4]], {})
    links = len(home.store.read(lambda txn: list(txn.links())))
    done = delete(home, 2, 9, 1, 2)
    gone = [outcome for outcome in done.outcomes if isinstance(outcome, Deleted)]
    assert [one.node_id for one in gone] == [2, 1] and done.outcomes == [gone[0], None, gone[1], None]
    left = len(home.store.read(lambda txn: list(txn.links())))
    assert sum(one.links_removed for one in gone) == links - left
    assert_it_agrees(home)


def test_a_deletion_ends_when_its_time_is_up_and_has_done_something(home: Home) -> None:
    """One memory goes in any case, so that whoever asks again comes to an end."""
    home.remember([(f"{word} in the harbour", []) for word in WORDS[:4]], {})
    done = home.workspace.amend(lambda txn: withdrawal.delete(txn, [1, 2, 3], is_time_up=lambda: True))
    [outcome] = done.outcomes
    assert isinstance(outcome, Deleted) and outcome.node_id == 1
    assert sorted(home.nodes()) == [2, 3, 4]


def test_a_refused_deletion_changes_nothing(home: Home) -> None:
    """When the disk does not take it, memory, links and words are as before, in memory too."""
    home.remember([("the boat is late", []), ("tea is ready", [])], {})
    before = snapshot(home.workspace.network)
    home.store.is_full = True
    with pytest.raises(Exhausted):
        delete(home, 1)
    home.store.is_full = False
    assert snapshot(home.workspace.network) == before
    assert_it_agrees(home)
    assert len(home.workspace.recollect(Query("boat", 10), 10, len)[0].memories) == 1


def test_no_posting_of_a_deleted_word_stays(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in what was merged nor in what is new; the words of neighbours stay where they are."""
    for fewest in (0, 10**6):
        monkeypatch.setattr(passages, "FEWEST_MERGED", fewest)
        home.remember([("the anchor is rusty", []), ("the sail is white", [])], {})
    shelf = home.workspace.open_archive.loaded.shelf  # type: ignore[union-attr]
    before = shelf.postings(term_of("sail"))[0].tolist()
    delete(home, 1, 3)
    assert len(shelf.postings(term_of("anchor"))[0]) == 0
    assert shelf.postings(term_of("sail"))[0].tolist() == before


def test_a_text_being_shortened_does_not_bring_a_deleted_memory_back(home: Home) -> None:
    """The model answers after the memory is gone: the pass goes on, and the memory stays gone."""
    [task, *_] = faded(home)
    delete(home, task.shortening.node_id)
    home.step([shortened(task, lambda text, most: text[:most])])
    assert task.shortening.node_id not in home.nodes()
    assert_it_agrees(home)


def test_a_text_being_shortened_does_not_undo_a_correction(home: Home) -> None:
    """What a model makes of the old words is not taken, though the correction left the content as it was."""
    [task, *_] = faded(home)
    node_id = task.shortening.node_id
    correct(home, node_id, task.content)
    home.step([shortened(task, lambda text, most: "old words")])
    assert home.nodes()[node_id].content != "old words"
    assert_it_agrees(home)


def test_a_refused_deletion_of_a_message_changes_nothing(home: Home) -> None:
    """When the disk does not take it, what nobody cites is found as before; afterwards it goes."""
    home.remember([("the boat is late", []), ("tea is ready", [])], {})
    delete(home, 1)
    text = home.store.read(lambda txn: txn.message_text(txn.message(1)))
    home.store.is_full = True
    with pytest.raises(Exhausted):
        delete(home, Said(1))
    home.store.is_full = False
    assert home.store.read(lambda txn: txn.message_text(txn.message(1))) == text
    assert_it_agrees(home)
    [outcome] = delete(home, Said(1)).outcomes
    assert isinstance(outcome, Deleted) and outcome.links_removed == 0
    assert text.split() == ["…", "|", "tea", "is", "ready", "|"] and outcome.bytes_withdrawn == 5
    assert home.store.read(lambda txn: txn.message_text(txn.message(1))).strip() == "tea is ready"
    assert_it_agrees(home)


@pytest.mark.parametrize(
    ("spans", "others", "left"),
    [
        ([(0, 9)], [], [(0, 9)]),
        ([(0, 9)], [(0, 9)], []),
        ([(0, 9)], [(2, 4), (3, 5)], [(0, 2), (5, 9)]),
        ([(2, 4), (6, 8)], [(0, 3), (7, 20)], [(3, 4), (6, 7)]),
        ([(2, 4)], [(4, 6), (8, 9)], [(2, 4)]),
    ],
)
def test_what_others_cite_stays(
    spans: list[tuple[int, int]], others: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    """Of a span that others share only their part is spared."""
    assert list(outside(spans, others)) == left


def test_a_record_written_before_messages_had_metadata_is_read(home: Home) -> None:
    """It tells its batch's while that is kept, and is deleted and counted like any other."""
    home.remember([("the anchor is rusty", [])], {})

    def age(txn: Any) -> None:
        old = msgspec.structs.astuple(txn.message(1))[:10]
        txn.put(layout.MESSAGES, layout.u64(1), layout.encode(old))
        [batch] = txn.batches()
        txn.put(
            layout.BATCHES, layout.u64(1), layout.encode(msgspec.structs.replace(batch, metadata='{"a":1}'))
        )

    home.store.write(age)
    home.reopen()
    found, _ = home.workspace.recollect(Query("anchor", 10, metadata={"a": 1}), 10, len)
    assert [one.source.metadata for one in found.memories] == [{"a": 1}]
    delete(home, 1)
    assert home.workspace.recollect(Query("rusty", 10), 10, len)[0].memories == ()
