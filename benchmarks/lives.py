"""An agent with many lives, written in bulk: few memories live, as with default parameters; the others are forgotten.

Its latest events are of the kinds, in the numbers and in records of the sizes of an agent that grew: about thirty of a
pass, most of which are broken links. The memories have no links.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.stores import BEGUN_MS, MAP_BYTES, identity, kept
from benchmarks.texts import Writer
from ebbtide.changes import Change
from ebbtide.events import EventKind, EventRun, focus_run, run_of
from ebbtide.fleet.state.event_builder import EVENTS_KEEP
from ebbtide.records import Life, Node
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import WriteTransaction

LIVING: Final = 1_300
"""Living memories of a large agent at any age."""

PER_PASS: Final = 5
"""Memories that are made before each pass: those of one batch."""

BROKEN_PER_PASS: Final = 20
EVENTS_PER_PASS: Final = PER_PASS + BROKEN_PER_PASS + 3
"""At least."""

SHORTENED_EVERY: Final = 40
"""Passes between two shortenings of a memory."""

ROOM_BYTES: Final = 1 << 30


def kept_lives(folder: Path, count: int) -> Path:
    """Return the directory of an agent that made `count` memories, written now or by an earlier run. Copy it."""
    return kept(folder, f"lives-{count}", partial(_write, count))


def _write(count: int, path: Path) -> None:
    store = LmdbStore.create(path, identity("lives", 1), map_bytes=ROOM_BYTES, max_map_bytes=MAP_BYTES)
    lives = _Lives(count)
    store.write(lives.write)
    store.close()


class _Lives:
    """Lives by id, and shortenings by pass, as columns."""

    def __init__(self, count: int) -> None:
        chance = np.random.default_rng(count)
        self._texts = [text.content for text in Writer(count).texts(count)]
        self._ids, self._passes = np.arange(1, count + 1), count // PER_PASS
        self._born = (self._ids - 1) // PER_PASS
        self._lengths = np.array([len(text) for text in self._texts], dtype=np.int64)
        ended = np.minimum(self._passes, self._born + chance.integers(100, 300, count))
        self._ended = np.where(self._ids > count - LIVING, 0, ended)
        times = chance.integers(0, 4, count)
        owner = np.repeat(self._ids, times)
        step = np.arange(len(owner)) - np.repeat(np.cumsum(times) - times, times) + 1
        at = self._born[owner - 1] + SHORTENED_EVERY * step
        last = np.where(self._ended == 0, self._passes, self._ended - 1)
        order = np.argsort(at, kind="stable")
        order = order[at[order] <= last[owner[order] - 1]]
        owner, step, at = owner[order], step[order], at[order]
        lengths = self._lengths[owner - 1]
        self._shortened = np.array([owner, lengths >> (step - 1), lengths >> step, at])
        self._left = self._lengths.copy()
        np.minimum.at(self._left, owner - 1, lengths >> step)

    def write(self, txn: WriteTransaction) -> None:
        """Write all lives, the memories that live, and the latest events."""
        for node_id, *life in np.array([self._ids, self._born, self._lengths, self._ended]).T.tolist():
            txn.lives.put(node_id, Life(*life))
        living = self._ids[self._ended == 0].tolist()
        txn.apply(
            Change(
                nodes=[self._node(txn, node_id) for node_id in living],
                focus=tuple(living[: -PER_PASS - 1 : -1]),
                next_node_id=len(self._ids) + 1,
                finished_passes=self._passes,
            )
        )
        first = max(1, self._passes - EVENTS_KEEP // EVENTS_PER_PASS)
        for number in range(first, self._passes + 1):
            for runs in self._commits(number):
                txn.events.put(BEGUN_MS, [run for run in runs if run.count], EVENTS_KEEP)

    def _node(self, txn: WriteTransaction, node_id: int) -> Node:
        text, left = self._texts[node_id - 1], int(self._left[node_id - 1])
        key = txn.texts.put(text)
        return Node(node_id, text[:left], text[:20], (), BEGUN_MS, len(text), first_key=key)

    def _commits(self, number: int) -> Iterator[list[EventRun]]:
        """Yield the events of each commit up to the end of a pass."""
        made = self._ids[self._born == number - 1]
        yield [
            run_of(
                EventKind.NODE_CREATED, made.tolist(), [number] * len(made), self._lengths[made - 1].tolist()
            ),
            focus_run(made[::-1].tolist(), ()),
            run_of(EventKind.BATCH_DIGESTED, [number], [len(made)]),
        ]
        begin, end = np.searchsorted(self._shortened[3], [number, number + 1])
        if begin < end:
            yield [run_of(EventKind.NODE_COMPRESSED, *self._shortened[:, begin:end].tolist())]
        forgotten = self._ids[self._ended == number].tolist()
        broken = [int(made[0])] * BROKEN_PER_PASS
        yield [
            run_of(EventKind.NODE_FORGOTTEN, forgotten, [number] * len(forgotten)),
            run_of(EventKind.LINK_BROKEN, broken, range(1, BROKEN_PER_PASS + 1), [number] * BROKEN_PER_PASS),
            run_of(EventKind.PASS_COMPLETED, [number]),
        ]
