"""The engine and both oracles in one history: `focus_policy = nodes` changes no number of the first edition.

All live through the same random history of batches, passes, recalls, deletions and parameter changes. Relation names,
the order with several keywords and loose ends differ by intent (memory model, 10) and are not compared.
"""

from __future__ import annotations

from math import isclose
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.memory.digestion import LinkNames
from ebbtide.memory.draft import Draft
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue
from tests.property.histories import examples, keywords_for, unbounded
from tests.property.lockstep import PureEngine, memory_or_mention
from tests.support.networks import all_links
from tests.support.oracle import Oracle, OracleParameters, has_han, round12
from tests.support.second_edition import relations
from tests.support.second_edition.oracle import SecondEdition
from tests.support.second_edition.records import Memory, Message, Parameters, Segment, Shortened

WORDS = [
    "tea",
    "Tea house",
    "straße",
    "STRASSE",
    "猫",
    "猫喜欢鱼",
    "我们去了西湖边的茶馆",
    "river bank",
    "JWT",
    "7",
]
NOUNS = ["", "", "friend", "cause", "朋友"]
VALUES: dict[str, list] = {
    "focus_limit": [1, 2, 3, 5, 9],
    "strategy": ["scan", "scan", "slots"],
    "decay_rate": [1.0, 0.97, 0.9, 0.7, 0.3, 1e-3],
    "link_initial_strength": [0.0, 0.01, 0.25, 0.5, 1.0],
    "link_break_threshold": [0.0, 0.01, 0.01, 0.3, 1.0],
    "delete_threshold": [0, 1, 5, 10, 1000],
    "min_shrink": [0.0, 0.25, 0.9, 1.0],
    "max_nodes": [1, 3, 8, 20, 40],
    "compression_batch_size": [1, 3, 12, 100],
    "slot_sample_size": [1, 2, 6],
    "long_term_factor": [0.0, 0.02, 0.3, 1.0],
    "locale": ["auto", "zh", "en"],
    "max_owed_passes": [1, 2, 100],
}


class BothEditions:
    """One agent in each edition, and one in the engine, with the same history."""

    def __init__(self, values: dict) -> None:
        self.first = Oracle(OracleParameters(**values))
        self.second = SecondEdition(Parameters(**values, focus_policy="nodes", pin_on_request=False))
        parameters = {**values, "focus_policy": "nodes", "pin_on_request": False}
        self.engine = PureEngine(unbounded(AgentParameters(), **parameters))

    def remember(self, texts: list[tuple[str, list[str]]], salt: int) -> None:
        start, limit = self.first.next_id, self.first.parameters.focus_limit
        partners = self.first.focus[:limit] or list(range(start, start + len(texts)))[::-1][:limit]

        def noun(memory_id: int, partner: int) -> str:
            return NOUNS[(memory_id * 7 + partner * 3 + salt) % len(NOUNS)]

        locale = self.first.parameters.locale
        if locale == "auto":
            locale = "zh" if any(has_han(text) for text, _ in texts) else "en"
        names = [relations.in_locale(name, locale) for name in (relations.NEXT, relations.PREVIOUS)]
        self.first.remember(
            texts,
            neighbour_names=(names[0], names[1]),
            relate=lambda i, j: noun(start + i, partners[j]),
            rng=Random(salt),
        )
        segments = [Segment(text, keywords) for text, keywords in texts]
        self.second.digest([Message("user", "")], segments, relate=noun, rng=Random(salt))
        told = [memory_or_mention(text, keywords, "statement") for text, keywords in texts]
        nouns = {
            (i, j): noun(start + i, partner) for i in range(len(texts)) for j, partner in enumerate(partners)
        }
        self.engine.digest(told, LinkNames(nouns), Random(salt))

    def compress(self, salt: int) -> None:
        # A present content is always the beginning of the first one, so cutting either gives the same text.
        def cut(content: str, target: int) -> str | None:
            return None if (salt + target) % 7 == 0 else content[:target]

        def shorten(memory: Memory, target: int) -> Shortened | None:
            text = cut(memory.first_content, target)
            return None if text is None else Shortened(text, "", keywords_for(text))

        self.first.compress(shorten=cut, rng=Random(salt), keywords_of=keywords_for)
        self.second.compress(shorten, Random(salt))
        self.engine.compress(cut, Random(salt))

    def delete(self, place: int) -> None:
        living = sorted(self.first.nodes)
        if living:
            self.first.erase(living[place % len(living)])
            self.second.delete(living[place % len(living)])
            self.engine.delete(living[place % len(living)])

    def patch(self, values: dict) -> None:
        self.first.patch(**values)
        self.second.patch(**values)
        self.engine.patch(values)

    def assert_same(self) -> None:
        first, second = self.first, self.second
        assert (first.next_id, first.pass_number, first.owed) == (
            second.next_id,
            second.pass_number,
            second.owed,
        )
        assert first.focus == second.memory_focus
        assert [*first.nodes] == [*second.memories]
        for memory_id, node in first.nodes.items():
            memory = second.memories[memory_id]
            assert (node.content, node.keywords, node.scan_count, node.last_scan_pass) == (
                memory.content,
                memory.keywords,
                memory.scan_count,
                memory.last_scan_pass,
            )
            assert [vars(r) for r in node.rewrites] == [vars(r) for r in memory.rewrites]
            assert first.importance(memory_id) == second.importance(memory_id)
        assert {key: s for key, s in first.links().items() if key[1] not in second.erased} == {
            without_rule(key): second.strength(key) for key in second.links
        }

        self.assert_same_engine()

    def assert_same_engine(self) -> None:
        """Contents, focus, scans, importance and links of the engine are the first edition's."""
        first, network, ground = self.first, self.engine.network, self.engine.ground
        assert (first.next_id, first.pass_number, first.owed, first.focus, [*first.nodes]) == (
            network.next_node_id,
            ground.finished,
            ground.owed,
            [*network.focus],
            network.node_ids(),
        )
        for memory_id, node in first.nodes.items():
            own = ground.nodes[memory_id]
            assert (node.content, node.keywords, (node.scan_count, node.last_scan_pass)) == (
                own.content,
                [*own.keywords],
                (network.node(memory_id).scan.count, network.node(memory_id).scan.last_pass),
            )
            assert isclose(
                first.importance(memory_id),
                Draft(network).importance(memory_id),
                rel_tol=1e-9,
                abs_tol=1e-300,
            )
        strengths = {key: s for key, s in first.links().items() if key[1] not in self.second.erased}
        found = {
            without_rule((link.source, link.target, link.relation)): now for link, now in all_links(network)
        }
        assert strengths.keys() == found.keys()
        assert all(isclose(strengths[key], found[key], rel_tol=1e-9, abs_tol=1e-300) for key in strengths)

    def assert_same_recall(self, keywords: list[str], names: list[str], depth: int) -> None:
        old = self.first.recall(keywords, names, depth, 0).results
        answer = self.engine.recall(Cue(keywords, names, depth, 10_000))
        new = self.second.recall(keywords, names, depth, max_results=0)
        if new.relations_unknown:  # the first edition finds nothing by them, the second drops them
            return
        results = [hit for hit in new.results if not (names and hit[0] in self.second.memory_focus)]
        if len(keywords) > 1:
            assert sorted(old) == sorted(results)
        else:
            assert old == results
        focused = self.second.memory_focus if names else []
        own = sorted(reached.node_id for reached, _ in answer.memories if reached.node_id not in focused)
        assert sorted(memory_id for memory_id, _ in old) == own


def without_rule(key: tuple[int, int, str]) -> tuple[int, int, str]:
    """Return a link's key as the first edition names it: a link named 之后 or 之前 by rule had no name."""
    is_rule = relations.relation_key(key[2]) in (relations.AFTER, relations.BEFORE)
    return (key[0], key[1], "" if is_rule else key[2])


def some_texts(dice: Random) -> list[tuple[str, list[str]]]:
    """Return a batch of contents with keywords."""
    return [
        (" ".join(dice.choices(WORDS, k=dice.randint(1, 8))), dice.sample(WORDS, dice.randrange(4)))
        for _ in range(dice.choice([0, 1, 1, 2, 3, 5, 8]))
    ]


def some_values(dice: Random, count: int) -> dict:
    """Return new values of some parameters."""
    return {name: dice.choice(VALUES[name]) for name in dice.sample(sorted(VALUES), count)}


def happen(both: BothEditions, event: int) -> None:
    """Apply the event that a number determines."""
    dice = Random(event)
    roll = dice.random()
    if roll < 0.4:
        both.remember(some_texts(dice), event)
    elif roll < 0.75:
        for step in range(dice.choice([1, 1, 2, 5])):
            both.compress(event + step)
            both.assert_same()
    elif roll < 0.88:
        names = dice.choice([[], [], ["friend"], ["NEXT", "朋友"], ["上文", "cause"]])
        both.assert_same_recall(
            dice.sample(["tea", "猫", "ss", "x"], dice.randrange(3)), names, dice.randrange(5)
        )
    elif roll < 0.95:
        both.patch(some_values(dice, 2))
    else:
        both.delete(dice.randrange(100))
    both.assert_same()


@examples(240)
@given(seed=st.integers(0, 2**32), events=st.lists(st.integers(0, 2**32), min_size=12, max_size=45))
@pytest.mark.full
def test_nodes_reproduces_the_first_edition(seed: int, events: list[int]) -> None:
    """Importance, decay and reach under `focus_policy = nodes` equal the first edition's, number for number."""
    dice = Random(seed)
    both = BothEditions(some_values(dice, dice.randrange(len(VALUES))))
    for event in events:
        happen(both, event)
    both.assert_same_recall([], [], 2)


def test_a_long_life_in_both_editions() -> None:
    """With default parameters, memories shrink and are forgotten in the same passes, as in the first edition."""
    both = BothEditions({"decay_rate": 0.9})
    for number in range(60):
        both.remember([(f"batch {number} says thing {i}, at some length", ["tea"]) for i in range(3)], number)
        both.compress(number)
        both.assert_same()
    assert 1 not in both.second.memories
    assert any(memory.rewrites for memory in both.second.memories.values())
    strengths = [round12(strength) for _, strength in both.second.recall([], [], 2).results]
    assert strengths == sorted(strengths, reverse=True)
