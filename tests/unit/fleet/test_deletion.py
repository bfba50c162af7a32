"""Deleting memories: store, network and archive always agree, and no deleted text stays."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from ebbtide.errors import Exhausted
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.compression.passes import ShorteningTask
from ebbtide.fleet.deletion.removal import Correction, Deleted, Memory, Removal, Removed, Uncited
from ebbtide.fleet.deletion.words import outside
from ebbtide.fleet.recall.query import Query
from ebbtide.retrieval import passages
from ebbtide.retrieval.analysis import term_of
from tests.property.homes import Home, shortened, snapshot
from tests.unit.fleet.test_archive import seen

WORDS = ["boat", "tea", "harbour", "milk", "青岛", "外婆", "bread", "anchor", "sail"]


@pytest.fixture
def home() -> Iterator[Home]:
    """An agent whose archive is loaded."""
    made = Home({"decay_rate": 0.5, "focus_limit": 2, "delete_threshold": 1, "link_initial_strength": 0.5})
    made.workspace.recollect(Query("anything", 10), 10, len)
    yield made
    assert made.faults() == []
    made.close()


def delete(home: Home, *wanted: int | Uncited) -> Removed:
    items = [one if isinstance(one, Uncited) else Memory(one) for one in wanted]
    return home.workspace.remove(Removal(items, "deleted"), lambda: False, 10, "-")


def correct(home: Home, node_id: int, content: str) -> None:
    wanted = Correction(node_id, content, "phrase", ("key",))
    home.workspace.remove(Removal([wanted], "corrected"), lambda: False, 10, "-")


def faded(home: Home) -> tuple[ShorteningTask, ...]:
    """Return texts that the current pass waits for."""
    for number in range(8):
        home.remember([(f"number {number}: {' and '.join(WORDS)}", [])], {})
        step = home.step()
        while not step.is_idle:
            if step.tasks:
                return step.tasks
            step = home.step()
    raise AssertionError("no memory faded")


def assert_it_agrees(home: Home) -> None:
    """Assert that the derived data in memory equals that rebuilt from the store."""
    followed = home.workspace.open_archive.loaded
    assert followed is not None
    held = snapshot(home.workspace.network)
    index = seen(followed)
    assert home.faults() == []
    anew = seen(home.store.read(Archive.load))
    living = set(home.nodes())
    # Deleted memories are ignored: a reloaded index never contained them.
    assert [[n for n in made if n in living] for made in index.pop("made")] == anew.pop("made")
    assert index == anew
    home.reopen()
    assert snapshot(home.workspace.network) == held
    home.workspace.recollect(Query("anything", 10), 10, len)


@pytest.mark.parametrize("seed", range(12))
def test_store_network_and_archive_agree_after_deletions_and_corrections(
    home: Home, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """This holds between batches and passes, for nodes in focus and with many links, before and after merges."""
    monkeypatch.setattr(passages, "MIN_MERGED", 8)
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
                node_id in (link.source, link.target)
                for link in home.store.read(lambda t: list(t.links.all()))
            )
            [outcome] = delete(home, node_id).outcomes
            assert isinstance(outcome, Deleted)
            assert outcome.links_removed == linked
            links = home.store.read(lambda txn: list(txn.links.all()))
            assert all(node_id not in (link.source, link.target) for link in links)
        for node_id in dice.sample(sorted(home.nodes()), min(len(home.nodes()), dice.randint(0, 2))):
            correct(home, node_id, " ".join(dice.sample(WORDS, 3)))
        messages = home.store.read(lambda txn: [record.number for record in txn.messages.all()])
        delete(
            home,
            *(Uncited(number) for number in dice.sample(messages, min(len(messages), dice.randint(0, 2)))),
        )
        assert_it_agrees(home)


def test_several_deletions_share_a_commit_and_report_each_result(home: Home) -> None:
    """Each target has one outcome, in order. A repeated target, and a link between two targets, count once."""
    home.remember([(f"{word} in the harbour", []) for word in WORDS[:4]], {})
    links = len(home.store.read(lambda txn: list(txn.links.all())))
    done = delete(home, 2, 9, 1, 2)
    gone = [outcome for outcome in done.outcomes if isinstance(outcome, Deleted)]
    assert sorted(home.nodes()) == [3, 4] and done.outcomes == [gone[0], None, gone[1], None]
    left = len(home.store.read(lambda txn: list(txn.links.all())))
    assert sum(one.links_removed for one in gone) == links - left
    assert_it_agrees(home)


def test_a_deletion_that_times_out_has_made_progress(home: Home) -> None:
    """At least one memory is deleted, so that repeated calls come to an end."""
    home.remember([(f"{word} in the harbour", []) for word in WORDS[:4]], {})
    removal = Removal([Memory(1), Memory(2), Memory(3)], "deleted")
    done = home.workspace.remove(removal, lambda: True, 10, "-")
    [outcome] = done.outcomes
    assert isinstance(outcome, Deleted) and not removal.is_done
    assert sorted(home.nodes()) == [2, 3, 4]


def test_a_refused_deletion_changes_nothing(home: Home) -> None:
    """When the commit fails, memories, links and texts are unchanged, in memory too."""
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
    """No posting stays in the merged or the new part; the words of neighbours stay in place."""
    for fewest in (0, 10**6):
        monkeypatch.setattr(passages, "MIN_MERGED", fewest)
        home.remember([("the anchor is rusty", []), ("the sail is white", [])], {})
    index = home.workspace.open_archive.loaded.index  # type: ignore[union-attr]
    before = index.postings(term_of("sail"))[0].tolist()
    delete(home, 1, 3)
    assert len(index.postings(term_of("anchor"))[0]) == 0
    assert index.postings(term_of("sail"))[0].tolist() == before


def test_a_text_being_shortened_does_not_bring_a_deleted_memory_back(home: Home) -> None:
    """When the model answers after the deletion, the pass continues and the memory stays deleted."""
    [task, *_] = faded(home)
    delete(home, task.shortening.node_id)
    home.step([shortened(task, lambda text, most: text[:most])])
    assert task.shortening.node_id not in home.nodes()
    assert_it_agrees(home)


def test_a_text_being_shortened_does_not_undo_a_correction(home: Home) -> None:
    """A result for the old text is discarded even if the correction left the content unchanged."""
    [task, *_] = faded(home)
    node_id = task.shortening.node_id
    correct(home, node_id, task.content)
    home.step([shortened(task, lambda text, most: "old words")])
    assert home.nodes()[node_id].content != "old words"
    assert_it_agrees(home)


def test_a_refused_deletion_of_a_message_changes_nothing(home: Home) -> None:
    """When the commit fails, uncited text is still found; the next attempt removes it."""
    home.remember([("the boat is late", []), ("tea is ready", [])], {})
    delete(home, 1)
    text = home.store.read(lambda txn: txn.messages.text(txn.messages.get(1)))
    home.store.is_full = True
    with pytest.raises(Exhausted):
        delete(home, Uncited(1))
    home.store.is_full = False
    assert home.store.read(lambda txn: txn.messages.text(txn.messages.get(1))) == text
    assert_it_agrees(home)
    [outcome] = delete(home, Uncited(1)).outcomes
    assert isinstance(outcome, Deleted) and outcome.links_removed == 0
    assert text.split() == ["…", "|", "tea", "is", "ready", "|"] and outcome.bytes_withdrawn == 5
    assert home.store.read(lambda txn: txn.messages.text(txn.messages.get(1))).strip() == "tea is ready"
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
def test_cited_text_stays(
    spans: list[tuple[int, int]], others: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    """Only the shared part of a span is preserved."""
    assert list(outside(spans, others)) == left
