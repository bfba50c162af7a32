"""The pure engine compared with the oracle: both remember the same after any history.

The oracle was written from the memory model page without knowledge of the engine. Both get equal random generators and
the same deterministic shortener. The network is also compared with the one that is built from what was written.
"""

from __future__ import annotations

from random import Random
from unicodedata import category

import pytest
from hypothesis import currently_in_test_context, event, given
from hypothesis import strategies as st

from ebbtide.han import contains_han
from ebbtide.memory.digestion import LinkNames
from ebbtide.parameters import AgentParameters
from tests.property import histories
from tests.property.homes import snapshot
from tests.property.lockstep import (
    PureEngine,
    assert_same_memory,
    assert_same_recall,
    memory_or_mention,
    oracle_compresses,
    oracle_remembers,
)
from tests.support.oracle import has_han
from tests.support.second_edition.oracle import SecondEdition
from tests.support.second_edition.records import Message, Parameters, Segment
from tests.support.tier import amount

NAMES = [
    "JWT",
    "Ann",
    "ann",
    "cats",
    "Cat",
    "项目",
    "西湖",
    "Tea house",
    "house",
    "AI",
    "7",
    "我",
    "Porto",
    "PostgreSQL",
]
GAPS = [" ", "", " with ", "的", "'s ", " 讨论 ", " need the ", ", ", "属于"]
ANSWERS = ["", "", "", "关于", "cause", "朋友", "belongs to", "friend of Ann", "之后"]
RELATIONS = ["关于", "about", "NEXT", "cause", "项目", "之前", "unheard"]
REQUESTS = ["", "", "", "", "remember that ", "Don’t forget that ", "别忘了", "no need to remember "]
VALUES: dict[str, list] = {
    **histories.VALUES,
    "focus_limit": [1, 2, 3, 5],
    "decay_rate": [0.97, 0.9, 0.8, 0.5, 0.3, 1.0],
    "link_break_threshold": [0.0, 0.01, 0.01, 0.3, 1.0],
    "focus_policy": ["both", "both", "nodes"],
    "entities_per_memory": [0, 1, 3, 5],
    "entity_memories": [1, 2, 3, 32],
    "entity_wait_max": [1, 2, 3],
    "cue_memories": [0, 1, 2, 32],
    "max_pinned": [0, 1, 2, 100],
    "pin_on_request": [True, True, False],
    "delete_threshold": [0, 1, 5, 5],
}


class Pair:
    """Engine and oracle with the same history."""

    def __init__(self, changes: dict) -> None:
        changes = {"speaker_prefix": "auto", **changes}
        self.engine = PureEngine(histories.unbounded(AgentParameters(), **changes))
        self.oracle = SecondEdition(Parameters(**changes))

    def digest(self, seed: int) -> None:
        dice = Random(seed)
        count = dice.choice([1, 1, 2, 3, 6])
        messages, segments, told = [], [], []
        for index in range(count):
            content, keywords = said(dice)
            kind = dice.choice(["statement"] * 5 + ["courtesy", "question"])
            role = dice.choice(["user", "user", "assistant"])
            speaker, time = dice.choice(["", "", "Ann"]), dice.choice([None, 5, 50, 500])
            messages.append(Message(role, content, speaker, time))
            segments.append(Segment(content, keywords, messages=[index], kind=kind))
        for message, segment in zip(messages, segments, strict=True):
            told.append(
                memory_or_mention(
                    segment.content,
                    segment.keywords,
                    segment.kind,
                    created_at_ms=7 if message.timestamp is None else message.timestamp,
                    speaker=message.speaker,
                    is_from_user=message.role == "user",
                )
            )
        first, oracle = self.oracle.next_id, self.oracle
        limit = oracle.parameters.focus_limit
        memories = [one for one in segments if one.kind == "statement"]
        focus = oracle.memory_focus[:limit] or list(range(first, first + len(memories)))[::-1][:limit]
        names: dict[tuple[int, int], str] = {}
        entity_names: dict[tuple[int, str], str] = {}

        def relate(memory_id: int, other: int) -> str:
            answer = ANSWERS[(memory_id * 7 + other * 3 + seed) % len(ANSWERS)]
            if other in oracle.entities:
                entity_names[memory_id - first, oracle.entities[other].key] = answer
            else:
                names[memory_id - first, focus.index(other)] = answer
            return answer

        ids = oracle.digest(messages, segments, accepted_at=7, relate=relate, rng=Random(seed))
        for node_id in ids:
            oracle.memories[node_id].label = ""
        self.engine.digest(told, LinkNames(names, entity_names), Random(seed))

    def compress(self, seed: int, stops: frozenset[int] = frozenset()) -> None:
        def shorten(text: str, target: int) -> str | None:
            return histories.shorten(text, target, seed)

        before = len(self.oracle.memories), len(self.oracle.entities)
        self.engine.compress(shorten, Random(seed), stops)
        oracle_compresses(self.oracle, shorten, Random(seed))
        if currently_in_test_context():
            forgot = len(self.oracle.memories) < before[0], len(self.oracle.entities) < before[1]
            event(f"forgot memories: {forgot[0]}, entities: {forgot[1]}")

    def by_hand(self, dice: Random) -> None:
        oracle = self.oracle
        living = [*oracle.memories, *oracle.entities]
        if not living:
            return
        action, node_id = dice.choice(["focus", "unfocus", "pin", "unpin"]), dice.choice(living)
        if action in ("pin", "unpin") and node_id in oracle.entities:
            return
        pinned = [one for one in oracle.memories.values() if one.pinned]
        if (
            action == "pin"
            and not oracle.memories[node_id].pinned
            and len(pinned) >= oracle.parameters.max_pinned
        ):
            return
        getattr(oracle, action)(node_id)
        self.engine.by_hand(action, node_id)

    def amend(self, dice: Random) -> None:
        living = sorted(self.oracle.memories)
        if not living:
            return
        node_id = dice.choice(living)
        if dice.random() < 0.5:
            self.oracle.delete(node_id)
            self.engine.delete(node_id)
        else:
            content, keywords = said(dice)
            content += f" {dice.random()}"
            self.oracle.correct(node_id, content, keywords)
            self.engine.correct(node_id, content, tuple(keywords))

    def keep(self, dice: Random) -> None:
        living = sorted(self.oracle.memories)
        kept = set(dice.sample(living, dice.randint(0, min(4, len(living)))))
        self.oracle.keep(kept)
        self.engine.keep(kept)

    def patch(self, changes: dict) -> None:
        self.engine.patch(changes)
        self.oracle.patch(**changes)

    def compare(self) -> None:
        ground = self.engine.ground
        assert ground.pass_state is None
        assert_same_memory(self.engine.network, ground.nodes, (ground.finished, ground.owed), self.oracle)
        assert snapshot(self.engine.network) == snapshot(
            self.engine.ground.network(self.engine.network.parameters)
        )

    def recall(self, dice: Random) -> None:
        cue = {
            "keywords": dice.sample(
                [*NAMES, *histories.HOSTILE_NAMES, "JWT 项目", "e", "x", "ann's", "湖"],
                dice.choice([0, 0, 1, 1, 2, 3]),
            ),
            "relations": dice.sample(RELATIONS, dice.choice([0, 0, 1, 2])),
            "depth": dice.randint(0, 4),
            "max_results": dice.choice([None, 0, 1, 2]),
            "time_range": dice.choice([(None, None), (None, None), (6, None), (5, 60)]),
            "dates": dice.random() < 0.3,
        }
        assert_same_recall(self.engine.recall, self.engine.network.parameters.locale, cue, self.oracle)


def said(dice: Random) -> tuple[str, list[str]]:
    """Return a content and its keywords; one in three has hostile names."""
    known = dice.choice([NAMES, NAMES, [*NAMES, *histories.HOSTILE_NAMES]])
    names = dice.sample(known, dice.choice([0, 1, 2, 3]))
    content = (
        dice.choice(REQUESTS)
        + "".join(dice.choice(GAPS) + name for name in names)
        + dice.choice(["", " " * 3, "x" * 30])
    )
    keywords = [*names, *dice.sample(["day", "cats"], dice.choice([0, 0, 1]))]
    dice.shuffle(keywords)
    return content, keywords


def happen(pair: Pair, seed: int) -> None:
    """Apply one event of a history, determined by a number."""
    dice = Random(seed)
    roll = dice.random()
    if roll < 0.4:
        pair.digest(seed)
    elif roll < 0.7:
        stops = frozenset(dice.sample(range(20), dice.choice([0, 0, 1, 4])))
        for number in range(dice.choice([1, 1, 2, 6])):
            pair.compress(seed % 1000 + number, stops)
            pair.compare()
    elif roll < 0.8:
        pair.recall(dice)
    elif roll < 0.85:
        pair.engine.reopen()
    elif roll < 0.88:
        pair.keep(dice)
    elif roll < 0.91:
        pair.by_hand(dice)
    elif roll < 0.94:
        pair.amend(dice)
    else:
        names = dice.sample(sorted(VALUES), dice.randint(1, 3))
        pair.patch({name: dice.choice(VALUES[name]) for name in names})
    pair.compare()


starting = st.fixed_dictionaries(
    {},
    optional={
        "decay_rate": st.sampled_from([0.9, 0.8, 0.6]),
        "focus_limit": st.integers(1, 4),
        "entity_memories": st.sampled_from([1, 2, 32]),
        "strategy": st.sampled_from(["scan", "scan", "slots"]),
        "max_nodes": st.integers(2, 14),
        "max_pinned": st.integers(0, 3),
    },
)


@histories.examples(200)
@given(changes=starting, events=st.lists(st.integers(0, 2**32), min_size=20, max_size=50))
def test_the_engine_remembers_and_recalls_like_the_oracle(changes: dict, events: list[int]) -> None:
    """After each event of any history, engine, oracle and the network built from what was written agree."""
    pair = Pair(changes)
    for seed in events:
        happen(pair, seed)
    for seed in events[:5]:
        pair.recall(Random(seed))


def live(number: int) -> None:
    """Live through the history that a number determines."""
    dice = Random(number)
    names = dice.sample(sorted(VALUES), dice.choice([0, 2, 5]))
    pair = Pair({name: dice.choice(VALUES[name]) for name in names})
    for _ in range(dice.choice([15, 30, 50])):
        happen(pair, dice.randrange(2**32))


@pytest.mark.parametrize("begin", range(0, amount("EBBTIDE_HISTORIES", 15, 1500), 15))
def test_many_short_histories(begin: int) -> None:
    """Engine and oracle agree in histories of plain dice, which reach further than those of `hypothesis`."""
    for number in range(begin, begin + 15):
        live(number)


@pytest.mark.full
def test_long_life_with_defaults() -> None:
    """With default parameters and one pass per batch, contents shrink and end at the same pass in both."""
    pair = Pair({"decay_rate": 0.9})
    for number in range(120):
        words = [f"batch {number} says thing {i}, at some length, about tea" for i in range(3)]
        told = [memory_or_mention(text, [f"name{number}", "tea"], "statement") for text in words]
        pair.engine.digest(told, LinkNames(), Random(number))
        oracle_remembers(
            pair.oracle, [(text, [f"name{number}", "tea"]) for text in words], lambda i, j: "", Random(number)
        )
        pair.compress(number * 11)
        if number % 10 == 0:
            pair.compare()
            cue = {"keywords": ["TEA"], "relations": [], "depth": 3, "max_results": None}
            assert_same_recall(pair.engine.recall, "auto", cue, pair.oracle)
    assert 1 not in pair.oracle.memories
    assert any(len(n.content) < n.original_length for n in pair.oracle.memories.values())


def test_both_know_a_han_character() -> None:
    """Engine and oracle recognise the same Han characters among all assigned code points."""
    assigned = (chr(c) for c in range(0x110000) if category(chr(c)) not in ("Cn", "Cs"))
    assert [hex(ord(c)) for c in assigned if contains_han(c) != has_han(c)] == []
