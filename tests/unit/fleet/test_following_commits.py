"""The workspace after a commit whose change could not be applied in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ebbtide.memory.network import Network
from ebbtide.records import Cue
from tests.property.homes import Home, snapshot

TEA = [(f"tea number {number} with the harbour master", []) for number in range(4)]


@pytest.fixture
def home() -> Iterator[Home]:
    """A workspace on a real store, with a few memories."""
    made = Home({"decay_rate": 0.5, "focus_limit": 1, "delete_threshold": 1})
    made.remember(TEA, {})
    yield made
    assert made.faults() == []
    made.close()


def fail_once(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let the next change run out of memory once, after this many of its links or nodes were applied."""
    plain = Network.put_node if after else Network.put_links

    def fail(self: Network, *_: object) -> None:
        monkeypatch.setattr(Network, plain.__name__, plain)
        raise MemoryError

    monkeypatch.setattr(Network, plain.__name__, fail)


@pytest.mark.parametrize("after", [0, 1])
def test_a_digest_that_memory_cannot_follow_is_done_all_the_same(
    home: Home, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The batch is digested once, ids are not reused, and the next recall sees everything."""
    fail_once(monkeypatch, after)
    home.remember([("coffee at the station", [])], {})
    home.remember([("cocoa by the fire", [])], {})
    assert sorted(home.nodes()) == [1, 2, 3, 4, 5, 6]
    assert [node.content for node in home.nodes().values()][4:] == [
        "coffee at the station",
        "cocoa by the fire",
    ]
    answer, counts = home.workspace.recall(Cue(keywords=["coffee"], depth=3))
    assert [node.content for _, node in answer.memories] == ["coffee at the station"]
    assert counts.pending_batches == 0
    seen = snapshot(home.workspace.network)
    home.reopen()
    assert snapshot(home.workspace.network) == seen


def test_a_pass_that_memory_cannot_follow_goes_on(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes forgotten on disk are gone in memory, and the pass ends normally."""
    for number in range(12):
        home.remember([(f"batch number {number}", [])], {})
        monkeypatch.setattr(Network, "_scan", _out_of_memory(monkeypatch))
        home.compress(lambda text, most: text[:most])
        seen = snapshot(home.workspace.network)
        home.reopen()
        assert snapshot(home.workspace.network) == seen
    assert min(home.nodes()) > 4, "the first memories are forgotten by now"


def _out_of_memory(monkeypatch: pytest.MonkeyPatch) -> object:
    plain = Network._scan

    def fail(self: Network, *_: object) -> None:
        monkeypatch.setattr(Network, "_scan", plain)
        raise MemoryError

    return fail
