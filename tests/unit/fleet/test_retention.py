"""Texts go when their time is over, for good; their memories live on and are found by their own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ebbtide.changes import Change
from ebbtide.errors import Exhausted
from ebbtide.fleet.archive import retention
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.archive.retention import DAY_MS
from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.recollected import Hit
from ebbtide.retrieval.analysis import term_of
from ebbtide.retrieval.passages import _COLUMNS
from ebbtide.store import layout
from ebbtide.store.integrity.rebuild import rebuild_store
from tests.property.homes import Home

BOAT = "The boat in the old harbour is late again, and nobody knows why it is so."
TEA = "青岛的茶叶很香，外婆每天早上都喝。"
WORDS = ("boat", "harbour", "茶叶", "late")


@pytest.fixture
def home() -> Iterator[Home]:
    """An agent that was asked something already: its archive is loaded."""
    made = Home({})
    recollected(made, "anything")
    yield made
    assert made.faults() == []
    made.close()


def recollected(home: Home, query: str, **fields: Any) -> list[Hit]:
    found, _ = home.workspace.recollect(Query(query, 10, **fields), 10, len)
    return list(found.memories)


def swept(home: Home, now_ms: int = 10) -> int:
    """Steps until nothing is due any more."""
    steps = 1
    while home.workspace.sweep(now_ms, lambda: True):
        steps += 1
    return steps


def seen(archive: Archive) -> dict[str, Any]:
    """What a shelf holds, as plain values."""
    columns: dict[str, Any] = {name: archive.shelf.column(name).tolist() for name in _COLUMNS}
    for word in WORDS:
        columns[word] = [part.tolist() for part in archive.shelf.postings(term_of(word))]
    return columns


def follows(home: Home) -> bool:
    """Whether the archive in memory is what one made anew from the store would be."""
    archive = home.workspace.open_archive.loaded
    assert archive is not None, "it was not given up"
    return seen(archive) == seen(home.store.read(Archive.load))


def texts(home: Home) -> list[str | None]:
    def read(txn: Any) -> list[str | None]:
        return [txn.message_text(record) for record in txn.messages()]

    found: list[str | None] = home.store.read(read)
    return found


def chunk_count(home: Home) -> int:
    count: int = home.store.read(lambda txn: len(list(txn.items(layout.CHUNKS))))
    return count


def test_with_none_texts_go_with_the_digest(home: Home) -> None:
    """As soon as a batch is digested nothing on disk or in memory holds its texts; who and when stay."""
    home.workspace.change_parameters({"retention": "none"})
    home.accept([BOAT], speakers=["Ann"])
    task = home.task()
    [before] = recollected(home, "boat")
    assert (before.state, before.source.quote) == ("pending", BOAT)
    home.digest(task, [], {})
    assert recollected(home, "boat") == []
    assert texts(home) == [None]
    assert chunk_count(home) == 0
    assert follows(home)
    [record] = home.store.read(lambda txn: list(txn.messages()))
    assert (record.speaker, record.accepted_at_ms, record.is_withdrawn) == ("Ann", 5, True)


def test_memories_are_found_by_their_own_words(home: Home) -> None:
    """What a living memory says finds it, told as it is now with its source and no quote; a forgotten one is gone."""
    home.workspace.change_parameters({"retention": "none"})
    home.remember([(BOAT, []), (TEA, [])], {})
    assert texts(home) == [None]
    [found] = recollected(home, "harbour")
    assert (found.state, found.node_ids, found.source.quote) == ("living", (1, 2), "")
    assert found.content == f"{BOAT} {TEA}"
    assert recollected(home, "外婆的茶叶")[0].node_ids == (1, 2)
    node = home.nodes()[1]
    home.workspace.commit(Change(nodes=[msgspec.structs.replace(node, content="The boat is late.")]))
    assert recollected(home, "harbour") == []
    assert recollected(home, "boat")[0].content == f"The boat is late. {TEA}"
    assert follows(home)
    home.workspace.commit(Change(forgotten=[1], focus=(2,)))
    assert recollected(home, "boat") == []
    assert [one.node_ids for one in recollected(home, "茶叶")] == [(2,)]
    assert follows(home)
    home.workspace.commit(Change(forgotten=[2], focus=()))
    assert recollected(home, "茶叶") == []
    assert follows(home)


def test_stretches_of_a_long_message_keep_their_own_memories(home: Home) -> None:
    """Each stretch is told by the memories made of it, at its place in bytes, in any script."""
    home.workspace.change_parameters({"retention": "none"})
    first, second = (TEA * 50)[:800] + "。", BOAT * 20
    home.remember([(first, []), (second, [])], {})
    late = recollected(home, "boat")[0]
    assert late.node_ids[-1] == 2
    assert late.source.offset > 800
    assert follows(home)
    home.reopen()
    assert recollected(home, "boat")[0].source == late.source


def test_days_are_counted_from_the_acceptance(home: Home) -> None:
    """A text stays until it is N days old, and a batch that waits keeps its texts however old they are."""
    home.workspace.change_parameters({"retention": "days:2"})
    home.remember([(BOAT, [])], {})
    waiting = home.accept([TEA])
    swept(home, now_ms=5 + 2 * DAY_MS)
    assert [text is None for text in texts(home)] == [False, False]
    swept(home, now_ms=6 + 2 * DAY_MS)
    assert [text is None for text in texts(home)] == [True, False]
    assert [one.state for one in recollected(home, "茶叶")] == ["pending"]
    assert follows(home)
    home.digest(home.task(), [], {})
    assert waiting.number == 2
    swept(home, now_ms=6 + 2 * DAY_MS)
    assert texts(home) == [None, None]
    assert follows(home)


def test_lowering_applies_to_what_is_there_and_raising_brings_nothing_back(home: Home) -> None:
    """A shorter retention takes old texts away; a longer one keeps what comes, and restores nothing."""
    home.remember([(BOAT, [])], {})
    assert not home.workspace.sweep(10, lambda: True)
    home.workspace.change_parameters({"retention": "none"})
    swept(home)
    assert texts(home) == [None]
    home.workspace.change_parameters({"retention": "keep"})
    home.remember([(TEA, [])], {})
    assert [text is None for text in texts(home)] == [True, False]
    assert recollected(home, "boat")[0].state == "living"


def test_a_text_said_twice_goes_with_the_last_who_refers_to_it(home: Home) -> None:
    """A message that waits keeps the text that another has lost."""
    home.accept([BOAT])
    home.digest(home.task(), [], {})
    home.accept([BOAT])
    home.workspace.change_parameters({"retention": "none"})
    swept(home)
    assert texts(home) == [None, BOAT]
    assert chunk_count(home) == 1
    home.digest(home.task(), [], {})
    assert chunk_count(home) == 0


def test_steps_are_small_and_go_on_after_a_close(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is due, a step does little of it; what a close or a kill leaves is done at the next opening."""
    for number in range(12):
        home.remember([(f"{BOAT} Number {number}.", [])], {})
    monkeypatch.setattr(retention, "MOST_LOOKED_AT", 5)
    monkeypatch.setattr(retention, "MOST_WITHDRAWN", 2)
    home.workspace.change_parameters({"retention": "none"})
    gone = [0]
    while home.workspace.sweep(10, lambda: False) and gone[-1] < 6:
        gone.append(texts(home).count(None))
        assert gone[-1] - gone[-2] <= 2
        assert home.faults() == []
    assert follows(home)
    home.reopen()
    swept(home)
    assert texts(home) == [None] * 12
    assert home.store.read(lambda txn: txn.texts_from()) == 13
    assert len(recollected(home, "boat")) > 0
    assert swept(home) == 1


def test_a_commit_that_fails_withdraws_nothing(home: Home) -> None:
    """Where the disk refuses, text and index stay as they were, and the next sweep does it."""
    home.remember([(BOAT, [])], {})
    home.workspace.change_parameters({"retention": "none"})
    home.store.is_full = True
    with pytest.raises(Exhausted):
        swept(home)
    home.store.is_full = False
    assert texts(home) != [None]
    assert recollected(home, "boat")[0].source.quote
    assert follows(home)
    swept(home)
    assert texts(home) == [None]


def test_compression_works_from_the_present_content(home: Home) -> None:
    """Where the first content is gone, what the memory says now is shortened; it goes on to be forgotten."""
    home.workspace.change_parameters(
        {"retention": "none", "decay_rate": 0.5, "focus_limit": 1, "link_initial_strength": 0.9}
    )
    home.remember([(BOAT, []), (TEA, []), (BOAT[4:], [])], {})
    home.remember([("Something else.", [])], {})
    shown: list[str] = []

    def shorten(text: str, target: int) -> str:
        shown.append(text)
        return text[:target]

    for _ in range(8):
        home.workspace.passes.owe(1)
        home.compress(shorten)
        assert home.faults() == []
        assert follows(home)
    shortened = [text for text in shown if text not in (BOAT, TEA, BOAT[4:])]
    assert shortened, "some was shortened twice"


def test_passages_that_are_missing_are_made_anew(home: Home) -> None:
    """Passages of memories that were lost are found, mended by dropping them, and made anew when they are needed."""
    home.workspace.change_parameters({"retention": "none"})
    home.remember([(BOAT, [])], {})
    key = layout.u64(1)
    kept = home.store.read(lambda txn: txn.passages_of(1))
    wrong = [msgspec.structs.replace(entry, told_by=(7,)) for entry in kept]
    for value in (layout.encode(wrong), b"\xc1"):
        home.store.write(lambda txn, value=value: txn.put(layout.PASSAGES, key, value))
        assert [finding.is_repairable for finding in home.faults()] == [True]
        assert rebuild_store(home.store.store) == []
        home.reopen()
        assert recollected(home, "harbour")[0].node_ids == (1,)
        node = home.nodes()[1]
        home.workspace.commit(Change(nodes=[msgspec.structs.replace(node, content="The boat is late.")]))
        assert recollected(home, "boat")[0].content == "The boat is late."
        home.workspace.commit(Change(nodes=[node]))
