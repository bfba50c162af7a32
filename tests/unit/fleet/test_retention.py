"""Expired texts are removed for good; their memories live on and are found by their own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ebbtide.changes import Change
from ebbtide.errors import Exhausted
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.deletion import executor, expiry
from ebbtide.fleet.deletion.expiry import DAY_MS
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
    """An agent whose archive is loaded."""
    made = Home({})
    recollected(made, "anything")
    yield made
    assert made.faults() == []
    made.close()


def recollected(home: Home, query: str, **fields: Any) -> list[Hit]:
    found, _ = home.workspace.recollect(Query(query, 10, **fields), 10, len)
    return list(found.memories)


def swept(home: Home, now_ms: int = 10) -> int:
    """Sweep until nothing is due; return the number of steps."""
    steps = 1
    while home.workspace.sweep(now_ms, lambda: True):
        steps += 1
    return steps


def seen(archive: Archive) -> dict[str, Any]:
    """Return the contents of a passage index as plain values."""
    columns: dict[str, Any] = {name: archive.index.column(name).tolist() for name in _COLUMNS}
    for word in WORDS:
        columns[word] = [part.tolist() for part in archive.index.postings(term_of(word))]
    return columns


def follows(home: Home) -> bool:
    """Whether the archive in memory equals one loaded from the store."""
    archive = home.workspace.open_archive.loaded
    assert archive is not None, "it was not given up"
    return seen(archive) == seen(home.store.read(Archive.load))


def texts(home: Home) -> list[str | None]:
    def read(txn: Any) -> list[str | None]:
        return [txn.messages.text(record) for record in txn.messages.all()]

    found: list[str | None] = home.store.read(read)
    return found


def chunk_count(home: Home) -> int:
    count: int = home.store.read(lambda txn: len(list(txn.tables.items(layout.CHUNKS))))
    return count


def test_with_none_texts_are_removed_with_the_digest(home: Home) -> None:
    """Once a batch is digested, no text is left on disk or in memory; speaker and time stay."""
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
    [record] = home.store.read(lambda txn: list(txn.messages.all()))
    assert (record.speaker, record.accepted_at_ms, record.is_withdrawn) == ("Ann", 5, True)


def test_memories_are_found_by_their_own_words(home: Home) -> None:
    """A living memory is found by its current content, with its source and an empty quote; no forgotten one is."""
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


def test_parts_of_a_long_message_keep_their_own_memories(home: Home) -> None:
    """Each part of a long message is found by its own memories, at its byte position, in any script."""
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
    """A text stays until it is N days old, and a waiting batch keeps its texts whatever their age."""
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


def test_lower_retention_applies_at_once_and_higher_restores_nothing(home: Home) -> None:
    """A shorter retention removes existing texts; a longer one applies to new texts and restores nothing."""
    home.remember([(BOAT, [])], {})
    assert not home.workspace.sweep(10, lambda: True)
    home.workspace.change_parameters({"retention": "none"})
    swept(home)
    assert texts(home) == [None]
    home.workspace.change_parameters({"retention": "keep"})
    home.remember([(TEA, [])], {})
    assert [text is None for text in texts(home)] == [True, False]
    assert recollected(home, "boat")[0].state == "living"


def test_a_shared_text_is_removed_with_its_last_reference(home: Home) -> None:
    """A waiting message keeps a text that another message has lost."""
    home.accept([BOAT])
    home.digest(home.task(), [], {})
    home.accept([BOAT])
    home.workspace.change_parameters({"retention": "none"})
    swept(home)
    assert texts(home) == [None, BOAT]
    assert chunk_count(home) == 1
    home.digest(home.task(), [], {})
    assert chunk_count(home) == 0


def test_steps_are_small_and_resume_after_a_close(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is small however much is due, and work left by a close or a kill resumes at the next opening."""
    for number in range(12):
        home.remember([(f"{BOAT} Number {number}.", [])], {})
    monkeypatch.setattr(expiry, "MAX_READ_PER_STEP", 5)
    monkeypatch.setattr(executor, "MAX_TEXTS_PER_STEP", 2)
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
    assert home.store.read(lambda txn: txn.meta.texts_from) == 13
    assert len(recollected(home, "boat")) > 0
    assert swept(home) == 1


def test_a_commit_that_fails_withdraws_nothing(home: Home) -> None:
    """When the commit fails, text and index are unchanged, and the next sweep removes them."""
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
    """Without the first content, the current content is shortened until it is forgotten."""
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


def test_missing_passages_are_rebuilt(home: Home) -> None:
    """The checker finds missing passages, repair drops them, and they are rebuilt on demand."""
    home.workspace.change_parameters({"retention": "none"})
    home.remember([(BOAT, [])], {})
    key = layout.u64(1)
    kept = home.store.read(lambda txn: txn.passages.get(1))
    wrong = [msgspec.structs.replace(entry, told_by=(7,)) for entry in kept]
    for value in (layout.encode(wrong), b"\xc1"):
        home.store.write(lambda txn, value=value: txn.tables.put(layout.PASSAGES, key, value))
        assert [finding.is_repairable for finding in home.faults()] == [True]
        assert rebuild_store(home.store.store) == []
        home.reopen()
        assert recollected(home, "harbour")[0].node_ids == (1,)
        node = home.nodes()[1]
        home.workspace.commit(Change(nodes=[msgspec.structs.replace(node, content="The boat is late.")]))
        assert recollected(home, "boat")[0].content == "The boat is late."
        home.workspace.commit(Change(nodes=[node]))
