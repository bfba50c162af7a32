"""Records compared with an oracle of plain dictionaries, in a plain store and in an encrypted one.

The oracle follows the specification of records: a batch happens whole or not at all, its reads see the state before it,
versions are never used again, and an expired record does not exist.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ebbtide.errors import EbbtideError
from ebbtide.fleet.ingest.admission import UNBOUNDED
from ebbtide.fleet.records import batch
from ebbtide.fleet.records.matching import Pattern
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.parameters import AgentParameters
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.encryption.seal import Seal
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.tier import amount

MAPS: dict[str, int] = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 26}
LABELS = ("a", "b", "a/b", "外婆", "x" * 200)
KEYS = ("k", "a", "b", "ключ", "x" * 500)
VALUES: tuple[dict[str, Any], ...] = (
    {},
    {"n": 1},
    {"n": 2.5, "t": "x"},
    {"n": True},
    {"d": {"n": [1, None]}},
)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"n": 1},
    {"n": 1.0},
    {"n": True},
    {"n": None},
    {"n": {"$gte": 1, "$lt": 2.5}},
    {"n": {"$ne": 1}},
    {"n": {"$lte": 2}, "t": None},
    {"d": {"n": [1, None]}},
    {"d": {"$eq": {"n": [1, None]}}},
    {"d": {"n": [{"$gt": 0}, None]}},
)

Place = tuple[tuple[str, ...], str]


class Refused(Exception):
    """The oracle refuses a batch."""


class Oracle:
    """The specification, replayed over a dictionary."""

    def __init__(self) -> None:
        self.records: dict[Place, dict[str, Any]] = {}
        self.next_version = 1

    def run(self, operations: list[Any], now: int) -> list[Any]:
        """Run a batch, and return a comparable result of each operation."""
        self.records = {p: one for p, one in self.records.items() if one["dies"] is None or one["dies"] > now}
        before, version = deepcopy(self.records), self.next_version
        try:
            return self._run(operations, now)
        except Refused:
            self.records, self.next_version = before, version
            raise

    def _run(self, operations: list[Any], now: int) -> list[Any]:
        results: list[Any] = [self._read(one) for one in operations]
        for operation, places in zip(operations, results, strict=True):
            if getattr(operation, "refreshes", False):
                for place, *_ in places:
                    if self.records[place]["ttl"]:
                        self.records[place]["dies"] = now + self.records[place]["ttl"] * 60_000
        for index, one in enumerate(operations):
            if isinstance(one, batch.Put):
                results[index] = self._put(one, now)
            if isinstance(one, batch.Delete):
                results[index] = self._delete(one)
        return results

    def _put(self, one: batch.Put, now: int) -> int:
        place = (one.namespace, one.key)
        known = self.records.get(place)
        self._compare(one.if_version, known)
        created = now if known is None else known["created"]
        dies = now + one.ttl_minutes * 60_000 if one.ttl_minutes else None
        version, self.next_version = self.next_version, self.next_version + 1
        self.records[place] = {
            "value": json.loads(one.value),
            "version": version,
            "created": created,
            "updated": now,
            "ttl": one.ttl_minutes,
            "dies": dies,
        }
        return version

    def _delete(self, one: batch.Delete) -> int:
        if one.key:
            self._compare(one.if_version, self.records.get((one.namespace, one.key)))
            gone = [(one.namespace, one.key)] if (one.namespace, one.key) in self.records else []
        else:
            gone = [place for place in self.records if place[0][: len(one.namespace)] == one.namespace]
        for place in gone:
            del self.records[place]
        return len(gone)

    @staticmethod
    def _compare(wanted: int | None, known: dict[str, Any] | None) -> None:
        if wanted is not None and wanted != (0 if known is None else known["version"]):
            raise Refused

    def _read(self, one: Any) -> Any:
        if isinstance(one, batch.Get):
            places = [(one.namespace, one.key)] if (one.namespace, one.key) in self.records else []
        elif isinstance(one, batch.Search):
            places = sorted(
                place
                for place, record in self.records.items()
                if place[0][: len(one.namespace)] == one.namespace and fits(record["value"], one.filter)
            )
            places = (places[::-1] if one.is_descending else places)[one.offset :][: one.limit]
        elif isinstance(one, batch.Namespaces):
            found = {
                namespace[: one.max_depth]
                for namespace, _ in self.records
                if all(begins_or_ends(namespace, pattern) for pattern in one.patterns)
            }
            return sorted(found)[one.offset :][: one.limit]
        else:
            return None
        return [
            (place, record["value"], record["version"], record["created"], record["updated"], record["dies"])
            for place in places
            for record in [self.records[place]]
        ]


def fits(value: Any, wanted: Any) -> bool:
    """Return whether a value matches a filter, as the specification says: JSON equality, nested, and comparisons."""
    if isinstance(wanted, dict) and any(name[:1] == "$" for name in wanted):
        is_number = type(value) in (int, float)
        outcomes = {
            "$eq": lambda other: json.dumps(value) == json.dumps(other),
            "$ne": lambda other: json.dumps(value) != json.dumps(other),
            "$gt": lambda other: is_number and value > other,
            "$gte": lambda other: is_number and value >= other,
            "$lt": lambda other: is_number and value < other,
            "$lte": lambda other: is_number and value <= other,
        }
        return all(outcomes[name](other) for name, other in wanted.items())
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(fits(value.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(fits, value, wanted))
    return (type(value) is type(wanted) and value == wanted) or (
        {type(value), type(wanted)} == {int, float} and value == wanted
    )


def begins_or_ends(namespace: tuple[str, ...], pattern: Pattern) -> bool:
    """Return whether a namespace fits a pattern."""
    labels = namespace if pattern.type == "prefix" else namespace[::-1]
    wanted = pattern.path if pattern.type == "prefix" else pattern.path[::-1]
    return len(labels) >= len(wanted) and all(
        one in ("*", label) for one, label in zip(wanted, labels, strict=False)
    )


def comparable(operation: Any, done: batch.Done) -> Any:
    """Return a result in the form of the oracle."""
    if isinstance(operation, batch.Put):
        return done.version
    if isinstance(operation, batch.Delete):
        return done.deleted
    if isinstance(operation, batch.Namespaces):
        return list(done.namespaces)
    return [
        (
            (one.namespace, one.key),
            json.loads(one.value),
            one.version,
            one.created_at_ms,
            one.updated_at_ms,
            one.expires_at_ms,
        )
        for one in done.records
    ]


def namespace(dice: Random, least: int = 1) -> tuple[str, ...]:
    return tuple(dice.choice(LABELS) for _ in range(dice.randrange(least, 4)))


def operation(dice: Random, oracle: Oracle) -> Any:
    """Return a random operation; half of them name a record that exists."""
    known = sorted(oracle.records)
    place = dice.choice(known) if known and dice.random() < 0.5 else (namespace(dice), dice.choice(KEYS))
    version = None
    if dice.random() < 0.2:
        version = dice.choice([0, oracle.next_version - 1, oracle.records.get(place, {}).get("version", 0)])
    match dice.randrange(9):
        case 0 | 1 | 2:
            return batch.Put(*place, json.dumps(dice.choice(VALUES)), dice.choice((0, 0, 1, 5)), version)
        case 3:
            return batch.Get(*place, dice.random() < 0.3)
        case 4:
            return batch.Delete(*place, version)
        case 5:
            return batch.Delete(place[0]) if dice.random() < 0.3 else batch.Get(*place)
        case 6 | 7:
            within = place[0][: dice.randrange(4)]
            limit, offset = dice.choice((1, 3, 100)), dice.choice((0, 0, 2))
            is_descending, refreshes = dice.random() < 0.5, dice.random() < 0.2
            return batch.Search(within, dice.choice(FILTERS), limit, offset, is_descending, refreshes)
        case _:
            labels = tuple(dice.choice(("*", *LABELS)) for _ in range(dice.randrange(3)))
            patterns = (Pattern(dice.choice(("prefix", "suffix")), labels),)
            return batch.Namespaces(
                patterns, dice.choice((None, 1, 2)), dice.choice((2, 100)), dice.choice((0, 1))
            )


WORDS = ("amber", "basil", "cedar", "delta", "ember", "flint")


def best(records: dict[Place, dict[str, Any]], one: batch.Search) -> list[tuple[Place, float]]:
    """Return the records that have a word of a query, by BM25 among all that match, with shares of the best score."""
    texts = {
        place: " ".join(record["found"]).split()
        for place, record in records.items()
        if place[0][: len(one.namespace)] == one.namespace and fits(record["value"], one.filter)
    }
    average = sum(map(len, texts.values())) / max(len(texts), 1)
    scores = dict.fromkeys(texts, 0.0)
    for word in set(one.query.split()):
        holding = sum(word in words for words in texts.values())
        rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for place, words in texts.items():
            count, length = words.count(word), 0.6 + 0.4 * len(words) / max(average, 1.0)
            scores[place] += rarity * count * 1.9 / (count + 0.9 * length)
    highest = max(scores.values(), default=0.0)
    order = sorted((-score / highest, place) for place, score in scores.items() if score)
    return [(place, -score) for score, place in order][one.offset :][: one.limit]


@pytest.mark.parametrize("seed", range(amount("RECORD_QUERIES", 2, 50)))
def test_a_query_returns_the_best_of_all_that_match(workspaces: list[Workspace], seed: int) -> None:
    """Prefix and filter come before the limit, and the order is that of BM25 among what they select."""
    dice, stored, now = Random(seed), {}, 1_000_000
    for _ in range(40):
        now += 1
        writes: list[Any] = []
        for _ in range(dice.randrange(4)):
            place = namespace(dice), dice.choice(KEYS)
            said = [" ".join(dice.choices(WORDS, k=dice.randrange(1, 6))) for _ in range(3)]
            value = {"n": dice.randrange(3), "t": said[0], "in": [{"t": said[1]}, {"u": said[2]}]}
            index, found = dice.choice(
                [
                    (None, said),
                    ((), []),
                    (("in[*].t",), said[1:2]),
                    (("t", "in[1].u", "x"), [said[0], said[2]]),
                ]
            )
            if dice.random() < 0.2:
                writes.append(batch.Delete(*place))
                stored.pop(place, None)
            else:
                writes.append(batch.Put(*place, json.dumps(value), index=index))
                if index is None:
                    found = [*found, str(value["n"])]
                stored[place] = {"value": value, "found": found}
        search = batch.Search(
            namespace(dice, 0)[:1],
            dice.choice([{}, {"n": 1}, {"n": {"$gte": 1}}]),
            dice.choice((1, 3, 100)),
            dice.choice((0, 0, 2)),
            query=" ".join(dice.choices(WORDS, k=dice.randrange(1, 3))),
        )
        expected = best(stored, search)
        for workspace in workspaces:
            workspace.records.run(writes, now, "-", "off", UNBOUNDED)
            [done] = workspace.records.run([search], now, "-", "off", UNBOUNDED)
            assert [(one.namespace, one.key) for one in done.records] == [place for place, _ in expected]
            assert list(done.scores) == pytest.approx([score for _, score in expected])
            kept = workspace.records.terms
            assert len(kept) <= len(stored) and kept.resident_bytes >= 0


@pytest.fixture
def workspaces() -> Iterator[list[Workspace]]:
    """One agent in a plain store, and one in an encrypted store."""
    root = Path(tempfile.mkdtemp())
    found = []
    for name, seal in (("plain", None), ("sealed", Seal(3, b"k" * 32))):
        (root / name).mkdir()
        identity = Identity("ann", 1, 7, layout.FORMAT_VERSION)
        store = LmdbStore.create(root / name, identity, seal=seal, **MAPS)
        found.append(Workspace(store, AgentParameters()))
    yield found
    for one in found:
        assert check_store(one.store) == []
        one.store.close()
    shutil.rmtree(root)


@pytest.mark.parametrize("seed", range(amount("RECORD_HISTORIES", 3, 100)))
def test_records_are_those_of_the_oracle(workspaces: list[Workspace], seed: int) -> None:
    """Every operation of every history has the result of the oracle, also after records expired and were swept."""
    dice, oracle, now = Random(seed), Oracle(), 1_000_000
    for _ in range(60):
        now += dice.choice((0, 1, 30_000, 90_000))
        operations = [operation(dice, oracle) for _ in range(dice.choice((1, 1, 3, 8)))]
        try:
            expected = oracle.run(operations, now)
        except Refused:
            for workspace in workspaces:
                with pytest.raises(EbbtideError, match="nothing was changed"):
                    workspace.records.run(operations, now, "-", "off", UNBOUNDED)
            continue
        for workspace in workspaces:
            done = workspace.records.run(operations, now, "-", "off", UNBOUNDED)
            assert list(map(comparable, operations, done)) == expected
        if dice.random() < 0.1:
            for workspace in workspaces:
                while workspace.sweep(now, lambda: False):
                    pass
                left = workspace.store.read(lambda txn: len(list(txn.records.all())))
                alive = [one for one in oracle.records.values() if one["dies"] is None or one["dies"] > now]
                assert left == len(alive)
