"""An opened agent reads the texts of its memories when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ebbtide.fleet.deletion.removal import Correction, Removal
from ebbtide.ids import NodeId
from ebbtide.records import Cue, NodeText
from ebbtide.store.lmdb.network import NodeReader
from tests.property.homes import Home, snapshot

TALK = [
    ("the harbour master drinks tea", ["harbour", "tea"]),
    ("the ferry leaves at noon", ["ferry"]),
    ("tea grows on the hill", ["tea", "hill"]),
]


@pytest.fixture
def home() -> Iterator[Home]:
    """A workspace that was opened on a store with a few memories."""
    made = Home({"decay_rate": 0.5, "focus_limit": 1, "delete_threshold": 1})
    made.remember(TALK, {})
    made.reopen()
    yield made
    assert made.faults() == []
    made.close()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets an entry whenever all texts are read."""
    found: list[int] = []
    plain = NodeReader.texts

    def texts(self: NodeReader) -> Iterator[NodeText]:
        found.append(1)
        return plain(self)

    monkeypatch.setattr(NodeReader, "texts", texts)
    return found


def recalled(home: Home, *keywords: str) -> set[str]:
    """Return the contents that a recall finds by these keywords."""
    answer, _ = home.workspace.recall(Cue(keywords=keywords, depth=3))
    return {node.content for _, node in answer.memories}


def corrected(home: Home, node_id: NodeId, content: str, *keywords: str) -> None:
    """Correct a memory."""
    wanted = Correction(node_id, content=content, keywords=keywords)
    home.workspace.remove(Removal([wanted], "corrected"), lambda: False, 10, "-")


def test_texts_are_read_once_by_the_first_keyword(home: Home, reads: list[int]) -> None:
    """Opening, a digest and a recall without keywords read no texts; the first recall by keyword reads them once."""
    home.remember([("the lighthouse is dark", [])], {})
    assert len(recalled(home)) == 4
    before = home.workspace.resident_bytes
    assert reads == []
    assert recalled(home, "tea") == {TALK[0][0], TALK[2][0]}
    assert recalled(home, "lighthouse") == {"the lighthouse is dark"}
    assert reads == [1]
    assert home.workspace.resident_bytes > before


def forget(home: Home) -> None:
    """Forget memories by a compression pass."""
    for number in range(12):
        home.remember([(f"number {number}", [])], {})
        home.compress(lambda text, most: text[:most])
    assert min(home.nodes()) > 1


@pytest.mark.parametrize(
    "change",
    [
        lambda home: home.remember([("a cup of tea", ["cup"])], {}),
        lambda home: corrected(home, 1, "the harbour master drinks coffee", "harbour", "coffee"),
        forget,
    ],
    ids=["remember", "correct", "forget"],
)
def test_changes_before_the_first_use_are_seen(home: Home, change: Callable[[Home], object]) -> None:
    """A change leads to the same state whether the texts were read before it or are read after it."""
    first = Home(home.defaults)
    first.remember(TALK, {})
    assert first.workspace.network.texts is not None
    change(first)
    change(home)
    assert snapshot(home.workspace.network) == snapshot(first.workspace.network)
    for word in ("tea", "coffee", "number"):
        assert recalled(home, word) == recalled(first, word)
    first.close()


def test_a_correction_that_reads_the_texts_sees_the_old_ones(home: Home, reads: list[int]) -> None:
    """A correction before the first recall compares the new text with the one before its transaction."""
    first = Home(home.defaults)
    first.remember(TALK, {})
    assert first.workspace.network.texts is not None
    reads.clear()
    for one in (first, home):
        corrected(one, 2, "the ferry leaves at noon", "ferry", "island")
    assert reads == [1]
    assert snapshot(home.workspace.network) == snapshot(first.workspace.network)
    assert "island" in home.workspace.network.entity_of_key
    first.close()


def test_a_failed_read_is_repeated(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the texts cannot be read, the recall fails, and the next one reads them."""

    def fail(self: NodeReader) -> Iterator[NodeText]:
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(NodeReader, "texts", fail)
        with pytest.raises(MemoryError):
            recalled(home, "tea")
    assert recalled(home, "tea") == {TALK[0][0], TALK[2][0]}
