"""A home and the oracle in lockstep, with everything on disk."""

from __future__ import annotations

from random import Random

import pytest

from ebbtide.fleet.deletion.removal import Correction, Memory, Removal
from ebbtide.memory.association import Answer
from ebbtide.memory.digestion import Mention
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue
from tests.property import histories
from tests.property.homes import SEED, Home, snapshot
from tests.property.lockstep import (
    assert_same_memory,
    assert_same_recall,
    names_as_mapping,
    names_by_rule,
    oracle_compresses,
    oracle_for,
    oracle_remembers,
    recorded,
    rewrites_of,
)
from tests.support.replicas import Replica
from tests.support.second_edition.records import Message, Segment, TooManyPinnedError


class HomePair:
    """A home and an oracle with the same history. `close` it."""

    def __init__(self, defaults: dict) -> None:
        self.replica = Replica()
        self.home = Home(defaults, self.replica)
        self.oracle = oracle_for(AgentParameters(**defaults))
        self.overrides: dict[str, object] = {}

    def close(self) -> None:
        """Run the consistency checker on the store, and compare its replica; then remove both."""
        try:
            assert self.home.faults() == []
            self.replica.assert_equals(self.home.store.store)
        finally:
            self.home.close()
            self.replica.close()

    def remember(self, segments: list, names: list[str]) -> None:
        named = names_by_rule(names)
        mapping = names_as_mapping(named, len(segments), self.home.workspace.parameters.focus_limit)
        batch = self.home.remember(segments, mapping)
        dice = Random(f"{SEED}/digest/{batch.number}")
        oracle_remembers(self.oracle, segments, named, dice, 5)

    def compress(self, salt: int, times_up: list[bool], reopen_at: list[int]) -> None:
        if self.oracle.owed == 0:
            assert self.home.step().is_idle
            return

        def shorten(text: str, target: int) -> str | None:
            return histories.shorten(text, target, salt)

        self.home.compress(shorten, times_up, reopen_at)
        dice = Random(f"{SEED}/pass/{self.oracle.pass_number + 1}")
        oracle_compresses(self.oracle, shorten, dice)

    def mention(self, keywords: list[str]) -> None:
        """Digest a batch of one courtesy, which makes no memory."""
        self.home.accept(["…"])
        task = self.home.task()
        self.home.digest(task, [Mention(tuple(keywords))], {})
        self.oracle.digest([Message("user", "…")], [Segment("…", keywords, kind="courtesy")])

    def by_hand(self, action: str, place: int) -> None:
        """Focus, unfocus, pin or unpin one of the living nodes."""
        workspace, oracle = self.home.workspace, self.oracle
        nodes = sorted(oracle.memories if "pin" in action else [*oracle.memories, *oracle.entities])
        if not nodes:
            return
        node_id = nodes[place % len(nodes)]
        is_done = getattr(workspace, f"{action}_by_hand")(node_id)
        if is_done is False:
            with pytest.raises(TooManyPinnedError):
                oracle.pin(node_id)
        else:
            getattr(oracle, action)(node_id)

    def delete(self, place: int) -> None:
        """Delete one of the living memories."""
        nodes = sorted(self.oracle.memories)
        if nodes:
            node_id = nodes[place % len(nodes)]
            self.home.workspace.remove(Removal([Memory(node_id)], "deleted"), lambda: False, 10, "-")
            self.oracle.delete(node_id)

    def correct(self, place: int, content: str, keywords: list[str]) -> None:
        """Correct one of the living memories."""
        nodes = sorted(self.oracle.memories)
        if not nodes:
            return
        node_id = nodes[place % len(nodes)]
        before = self.oracle.memories[node_id]
        if (before.content, before.keywords) == (content, keywords):
            return
        corrected = Correction(node_id, content=content, keywords=tuple(keywords))
        self.home.workspace.remove(Removal([corrected], "corrected"), lambda: False, 10, "-")
        self.oracle.correct(node_id, content, keywords)

    def patch(self, changes: dict) -> None:
        self.overrides = {k: v for k, v in {**self.overrides, **changes}.items() if v is not None}
        self.home.workspace.change_parameters(changes)
        # Every change settles the focus, also one that leaves all values of the oracle as they are.
        self.oracle.patch(**self.values())

    def reopen(self, defaults: dict | None = None) -> None:
        before = snapshot(self.home.workspace.network)
        self.home.reopen(defaults)
        if defaults is None:
            assert snapshot(self.home.workspace.network) == before
        self.resolve()

    def values(self) -> dict[str, object]:
        """Return the current parameters of the oracle: the agent's own before the daemon's."""
        own = {name: value for name, value in self.overrides.items() if name in histories.ORACLE_FIELDS}
        defaults = {k: v for k, v in self.home.defaults.items() if k in histories.ORACLE_FIELDS}
        fresh = histories.for_oracle(AgentParameters())
        return {**vars(fresh), **defaults, **own}

    def resolve(self) -> None:
        """Give the oracle the current parameters after a start, which settles the focus only if they differ."""
        values = self.values()
        if values != vars(self.oracle.parameters):
            self.oracle.patch(**values)

    def recall(self, cue: dict) -> None:
        workspace = self.home.workspace
        before = snapshot(workspace.network)

        def answer(asked: Cue) -> Answer:
            return workspace.recall(asked)[0]

        assert_same_recall(answer, workspace.parameters.locale, cue, self.oracle)
        assert snapshot(workspace.network) == before

    def compare(self) -> None:
        nodes = self.home.nodes()
        assert_same_memory(self.home.workspace.network, nodes, self.home.counters(), self.oracle)
        for node_id, node in nodes.items():
            assert recorded(node.rewrites) == rewrites_of(self.oracle, node_id)
            first = self.home.store.read(lambda txn, node=node: txn.nodes.first_content(node))
            assert first == self.oracle.memories[node_id].first_content
