"""The properties of the second edition (memory model, 10), over random histories of its oracle."""

from __future__ import annotations

import copy
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.histories import examples
from tests.support.second_edition.histories import agent
from tests.support.second_edition.names import normalise
from tests.support.second_edition.oracle import SecondEdition
from tests.support.second_edition.records import (
    LinkKey,
    Memory,
    Message,
    Segment,
    Shortened,
    TooManyPinnedError,
)

NAMES = ["Ann", "Rome", "花生", "登录模块", "tea house", "JWT", "Ann's", "Priya", "7", "they"]
WORDS = [*NAMES, "likes", "了", "在", "with", "discussed", "的", "rain", "decided"]
KINDS = ["statement"] * 6 + ["courtesy", "question"]
REQUEST = "please remember: "
VALUES: dict[str, list] = {
    "focus_limit": [1, 2, 3, 5],
    "focus_policy": ["both", "both", "nodes"],
    "decay_rate": [0.97, 0.9, 0.7, 0.4],
    "entities_per_memory": [0, 1, 3],
    "entity_memories": [1, 2, 32],
    "entity_wait_max": [1, 3],
    "strategy": ["scan", "scan", "slots"],
    "max_nodes": [3, 12, 40],
    "compression_batch_size": [2, 30],
    "link_initial_strength": [0.0, 0.5, 1.0],
    "min_shrink": [0.0, 0.25],
    "delete_threshold": [0, 5],
    "max_pinned": [0, 1, 4, 100],
    "pin_on_request": [True, False],
    "remember_questions": [False, True],
    "long_term_factor": [0.0, 0.02, 0.5],
    "cue_memories": [0, 2, 32],
}
# Changing these while links fade would change how long a link lasts.
FIXED = ["decay_rate"]


def drop_words(memory: Memory, target: int) -> Shortened:
    """Shorten the present content by leaving out words, and its keywords too."""
    words = memory.content.split()
    while words and len(" ".join(words)) > target:
        words.pop(len(words) // 2)
    return Shortened(" ".join(words), "", memory.keywords[1:])


def is_subsequence(words: list[str], of: list[str]) -> bool:
    """Whether the words occur in the others in this order."""
    remaining = iter(of)
    return all(word in remaining for word in words)


class Life:
    """A random history, with what the properties need to know about its past."""

    def __init__(self, values: dict) -> None:
        self.memory: SecondEdition = agent(**values)
        self.lasting: dict[LinkKey, int] = {}  # entity links: the scan count when last held or written
        self.written: dict[LinkKey, object] = {}
        self.ever_linked: dict[int, set[int]] = {}
        self.threshold = self.memory.parameters.link_break_threshold
        self.most_scans = math.ceil(math.log(self.threshold) / math.log(self.memory.parameters.decay_rate))

    def remember(self, dice: Random) -> None:
        messages, segments = [], []
        for number in range(dice.choice([1, 1, 2, 3, 6])):
            text = dice.choice(["", "", "", REQUEST]) + " ".join(dice.choices(WORDS, k=dice.randint(2, 12)))
            messages.append(Message(dice.choice(["user", "assistant"]), text, dice.choice(["", "Bob"])))
            keywords = dice.sample(NAMES, dice.randrange(5))
            segments.append(Segment(text, keywords, messages=[number], kind=dice.choice(KINDS)))
        self.memory.digest(messages, segments, accepted_at=self.memory.pass_number, rng=dice)

    def compress(self, dice: Random) -> None:
        before = copy.deepcopy(self.memory.memories)
        self.memory.compress(drop_words, dice)
        for memory_id, old in before.items():
            new = self.memory.memories.get(memory_id)
            if old.pinned:
                assert new is not None and new.content == old.content
            if new is not None:
                assert new.content == old.content or is_subsequence(new.content.split(), old.content.split())
                assert new.scan_count - old.scan_count in (0, 1)

    def by_hand(self, dice: Random) -> None:
        memory = self.memory
        nodes = [*memory.memories, *memory.entities]
        if not nodes:
            return
        getattr(memory, dice.choice(["focus", "unfocus"]))(dice.choice(nodes))
        if memory.memories:
            chosen = dice.choice(list(memory.memories))
            try:
                getattr(memory, dice.choice(["pin", "unpin"]))(chosen)
            except TooManyPinnedError:
                assert sum(bool(m.pinned) for m in memory.memories.values()) >= memory.parameters.max_pinned

    def erase(self, dice: Random) -> None:
        if not self.memory.memories:
            return
        chosen = dice.choice(list(self.memory.memories))
        if dice.random() < 0.5:
            self.memory.delete(chosen)
        else:
            self.memory.correct(chosen, " ".join(dice.choices(WORDS, k=6)), dice.sample(NAMES, 3))

    def patch(self, dice: Random) -> None:
        name = dice.choice([name for name in sorted(VALUES) if name not in FIXED])
        self.memory.patch(**{name: dice.choice(VALUES[name])})

    # ---- properties -------------------------------------------------------------------------------

    def check(self) -> None:
        memory = self.memory
        self.check_structure()
        for entity_id in memory.entity_focus:  # importance of the newest memories of an entity in focus
            for memory_id in memory.window(entity_id):
                assert memory.importance(memory_id) >= 1
        for key, link in memory.links.items():
            if key[0] not in memory.entities:
                continue
            self.ever_linked.setdefault(key[0], set()).add(key[1])
            scans = memory.entities[key[0]].scan_count
            if memory.is_held(key) or self.written.get(key) is not link:
                self.lasting[key] = scans
            self.written[key] = link
            if memory.is_live(key):  # no entity link outlives its last holding or writing for long
                assert scans - self.lasting[key] < max(self.most_scans, 1)

    def check_structure(self) -> None:
        memory = self.memory
        keys = [entity.key for entity in memory.entities.values()]
        assert len(set(keys)) == len(keys)
        assert not set(memory.memories) & set(memory.entities)
        assert set(memory.memory_focus) <= set(memory.memories)
        assert set(memory.entity_focus) <= set(memory.entities)
        for source, target, _ in memory.links:
            assert memory.lives(source)
            assert target not in memory.erased
            assert memory.lives(target) or target in memory.forgotten
            assert source in memory.memories or target not in memory.entities  # no links between entities

    def check_recall(self, dice: Random) -> None:
        memory = self.memory
        keywords = dice.sample([*WORDS, "x"], dice.randrange(3))
        filters = dice.choice([[], [], ["about"], ["花生", "next"]])
        before = copy.deepcopy(vars(memory))
        answer = memory.recall(keywords, filters, dice.randrange(4), dates=dice.random() < 0.3)
        assert vars(memory) == before  # recall changes nothing
        assert {memory_id for memory_id, _ in answer.results} <= set(
            memory.memories
        )  # an entity is no result
        for entity_id, entity in memory.entities.items():  # loose ends only of what was forgotten
            for sentence in (f"something about {entity.name},", f"关于{entity.name}，"):
                if sentence in answer.text:
                    assert self.ever_linked[entity_id] & memory.forgotten
        for memory_id, kept in memory.memories.items():
            if kept.pinned and memory.parameters.focus_policy == "both":
                self.check_reach_of_pinned(memory_id)

    def check_reach_of_pinned(self, memory_id: int) -> None:
        """A pinned memory is within reach of the names of its entities."""
        for entity_id in self.memory.entities_of(memory_id):
            name = self.memory.entities[entity_id].name
            found = self.memory.recall([name], [], 1, max_results=0).results
            assert normalise(name) == self.memory.entities[entity_id].key
            assert memory_id in [hit for hit, _ in found]


EVENTS = [Life.remember] * 9 + [Life.compress] * 9 + [Life.by_hand] * 3 + [Life.erase, Life.patch]


def live(seed: int, events: list[int]) -> SecondEdition:
    """Live through a history that numbers determine, with the properties checked at every step."""
    dice = Random(seed)
    life = Life({name: dice.choice(VALUES[name]) for name in dice.sample(sorted(VALUES), 5)})
    for event in events:
        dice = Random(event)
        happen = dice.choice(EVENTS)
        for _ in range(dice.choice([1, 4]) if happen is Life.compress else 1):
            happen(life, dice)
            life.check()
        life.check_recall(dice)
    return life.memory


@examples(160)
@given(seed=st.integers(0, 2**32), events=st.lists(st.integers(0, 2**32), min_size=8, max_size=40))
def test_random_histories(seed: int, events: list[int]) -> None:
    """No history of batches, passes, pins, foci, deletions and parameter changes breaks a property of section 10."""
    live(seed, events)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_long_random_histories(seed: int) -> None:
    """Neither does a long one, in which traces appear and disappear."""
    dice = Random(seed)
    live(seed, [dice.randrange(2**32) for _ in range(200)])


@pytest.mark.full
def test_histories_contain_what_the_properties_are_about() -> None:
    """The random histories forget, erase, pin and leave traces; otherwise the properties would hold trivially."""
    memories = [live(seed, [Random(seed).randrange(2**32) + i for i in range(60)]) for seed in range(8)]
    assert any(memory.forgotten for memory in memories)
    assert any(memory.erased for memory in memories)
    assert any(m.pinned for memory in memories for m in memory.memories.values())
    assert any(m.rewrites for memory in memories for m in memory.memories.values())
    assert any(memory.loose_ends(i) for memory in memories for i in memory.entities)
