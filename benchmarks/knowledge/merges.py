"""Merges: which names are proposed or merged as one that differ, and which names of one thing are proposed.

`data/merges.jsonl` was written before the rules, and the rules were developed with it. `data/names.jsonl` was written
by others and is only a score. Similarities are cosines of the built-in embedder, with its mean subtracted. The names of
MemDaily are those of 25 unrelated users: in one agent, every entity that two of them share is wrong.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from benchmarks.knowledge.sets import Named as Mention
from benchmarks.knowledge.sets import NamePair, read_merges, read_names
from benchmarks.knowledge.table import Row
from benchmarks.recall_data import default_folder
from ebbtide.entity_names import entity_key
from ebbtide.language.builtin.static_embedder import StaticEmbedder
from ebbtide.memory.merge_proposals import Named, is_one_by_name, may_merge, proposed

MOST_JOINED = 8

KINDS = {one: one for one in ("person", "organisation", "place", "language")} | dict.fromkeys(
    ("thing", "event"), "text"
)
"""The kind of a name for each type of the sets."""
_SAID = re.compile(
    r"^(?P<first>[\u4e00-\u9fff]{2,4})是我的(?P<kin>[\u4e00-\u9fff]{1,4})[,，。]"
    r"|我的?(?P<owner>[\u4e00-\u9fff]{1,4}?)(?:的名字|名字)?(?:叫做?|是叫)(?P<second>[\u4e00-\u9fff]{2,4})[。，]"
)
"""How MemDaily says who a person is: 李婷婷是我的表妹, and 我的上司叫赵雅琳."""


def _named(number: int, one: Mention) -> Named:
    return Named(number, one.name, KINDS.get(one.type, ""), one.kin or "")  # type: ignore[arg-type]


def similarities(pairs: Sequence[NamePair]) -> list[float]:
    """Return the centred cosine of each pair of names; 0 where the embedder has no vector."""
    names = [one.name for pair in pairs for one in (pair.first, pair.second)]
    found = asyncio.run(StaticEmbedder(ThreadPoolExecutor(1)).embed(names))
    mean = np.mean([vector for vector in found if vector is not None], axis=0)
    units: list[NDArray[np.float32] | None] = [
        None if vector is None else (vector - mean) / np.linalg.norm(vector - mean) for vector in found
    ]
    return [
        0.0 if one is None or other is None else float(one @ other)
        for one, other in zip(units[::2], units[1::2], strict=True)
    ]


def _rows_of(what: str, pairs: Sequence[NamePair], least: int) -> list[Row]:
    merged = wrong = right = 0
    for pair, similarity in zip(pairs, similarities(pairs), strict=True):
        one, other = _named(1, pair.first), _named(2, pair.second)
        is_proposed = proposed(one, other, similarity) is not None
        if pair.same:
            right += is_proposed or is_one_by_name(one, other)
        else:
            merged += may_merge(one, other, similarity) or is_one_by_name(one, other)
            wrong += is_proposed
    hard, same = (sum(pair.same == is_same for pair in pairs) for is_same in (False, True))
    return [
        Row(f"wrong merges, {what}", "0", f"{merged} of {hard}; {wrong} proposed", merged == 0),
        Row(f"true pairs proposed, {what}", f"≥ {least}", f"{right} of {same}", right >= least),
    ]


def joined_people(lines: Sequence[str]) -> tuple[int, int]:
    """Return how many names join people of different users by name alone, and by name and kin."""
    people: dict[str, set[str]] = defaultdict(set)
    entities: dict[str, list[tuple[Named, str]]] = defaultdict(list)
    joined: set[str] = set()
    for user, name, kin in sorted(mention for line in lines for mention in _mentions(line)):
        key, one = entity_key(name), Named(1, name, "person", kin)
        people[key].add(user)
        known = [owner for entity, owner in entities[key] if is_one_by_name(entity, one)]
        if not known:
            entities[key].append((one, user))
        elif known[0] != user:
            joined.add(key)
    return sum(len(users) > 1 for users in people.values()), len(joined)


def _mentions(line: str) -> set[tuple[str, str, str]]:
    """Return (user, name, kin) of each person whom a corpus introduces."""
    corpus = json.loads(line)
    found = (match for turn in corpus["turns"] for match in _SAID.finditer(turn["text"]))
    return {
        (
            corpus["corpus_id"],
            one["first"] or one["second"],
            (one["kin"] or one["owner"]).removesuffix("名字"),
        )
        for one in found
    }


def rows(_: bool) -> list[Row]:
    """Return the rows of merges."""
    found = _rows_of("own pairs", read_merges(), 18) + _rows_of("held-out pairs", read_names(), 10)
    path = default_folder() / "memdaily.jsonl"
    if not path.exists():
        reason = "skipped: no memdaily.jsonl in the folder of EBBTIDE_BENCH_DATA"
        return [*found, Row("names that join people of MemDaily", f"≤ {MOST_JOINED}", reason, True)]
    by_name, by_both = joined_people(path.read_text(encoding="utf-8").splitlines())
    measured = f"{by_both} (by name alone {by_name})"
    return [
        *found,
        Row("names that join people of MemDaily", f"≤ {MOST_JOINED}", measured, by_both <= MOST_JOINED),
    ]
