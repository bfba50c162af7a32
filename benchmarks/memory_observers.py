"""Measurements during a life: reach, living memories, traces of forgotten ones, facts, and an allergy.

Ages and lags count batches. An observer queries the agent after each batch and its compression pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from benchmarks.memory_life import Life
from benchmarks.memory_talk import ALLERGIES, Fact, Language, message
from ebbtide.ids import NodeId
from ebbtide.memory.wording import joined
from ebbtide.records import Node
from ebbtide.verbs.remember import Message

FIRST = 10
"""The first results of an answer, which are counted separately."""

SAMPLED_EACH = 4
"""At short lags, only the memories of every fourth batch are queried, because nearly all of them live."""
LONG_LAG = 300

FACT_AT = 100
"""The batch of the first fact. By then the agent has memories, names and a focus."""

WHOLE, SHORT, GONE = "whole", "short", "gone"


class Silent:
    """An observer that adds nothing to the talk."""

    def extra(self, number: int) -> list[Message]:
        """Return no messages."""
        return []


class Reach(Silent):
    """Whether living memories are found by their own first keyword, some batches later."""

    def __init__(self, lags: Sequence[int]) -> None:
        self.first: dict[NodeId, Node] = {}
        """Every memory as it was when new."""
        self.counts: dict[int, Counter[str]] = {lag: Counter() for lag in lags}

    async def after(self, life: Life) -> None:
        """Query the memories that are as old as one of the lags."""
        self.first.update(await life.living(life.made[-1]))
        for lag, counts in self.counts.items():
            number = life.age - 1 - lag
            if number < 0 or (lag < LONG_LAG and number % SAMPLED_EACH):
                continue
            counts["made"] += len(life.made[number])
            for node_id, node in (await life.living(life.made[number])).items():
                counts["living"] += 1
                await self._ask(life, node_id, node, counts)

    async def _ask(self, life: Life, node_id: NodeId, node: Node, counts: Counter[str]) -> None:
        if node.keywords:
            counts["asked"] += 1
            places = [one.node_id for one, _ in (await life.recall(node.keywords[0])).memories]
            counts["found"] += node_id in places
            counts["found first"] += node_id in places[:FIRST]
        if original := self.first[node_id].keywords:
            counts["asked as when new"] += 1
            places = [one.node_id for one, _ in (await life.recall(original[0])).memories]
            counts["found as when new"] += node_id in places


class Living(Silent):
    """The number of memories that live."""

    def __init__(self, each: int) -> None:
        self._each = each
        self.rows: list[tuple[int, int, int]] = []
        """(age, memories made, memories living)."""

    async def after(self, life: Life) -> None:
        """Count at regular ages."""
        if life.age % self._each == 0:
            self.rows.append((life.age, sum(map(len, life.made)), await life.living_count()))


async def asked_for_forgotten(life: Life, first: dict[NodeId, Node]) -> Counter[str]:
    """Query each forgotten memory by the first keyword that it had when new, each keyword once."""
    living = await life.living(list(first))
    asked = dict.fromkeys(
        node.keywords[0] for node_id, node in first.items() if node_id not in living and node.keywords
    )
    counts = Counter(forgotten=len(first) - len(living), asked=len(asked))
    for keyword in asked:
        answer = await life.recall(keyword)
        if answer.memories:
            counts["others live"] += 1
            continue
        counts["none lives"] += 1
        counts["reported"] += bool(answer.loose_ends)
    return counts


@dataclass(slots=True)
class _Followed:
    """A fact within a life: the batch that states it, its memory, and its states by age."""

    fact: Fact
    said: int
    node_id: NodeId | None = None
    states: dict[int, str] = field(default_factory=dict)


class Survival:
    """The survival of facts, by course and age."""

    def __init__(self, facts: Collection[Fact], ages: Sequence[int], begin: int = FACT_AT) -> None:
        self.ages = ages
        self._facts = [_Followed(fact, begin + place) for place, fact in enumerate(facts)]
        self.batch_count = max(
            (one.said + one.fact.begins_to_fade + max(ages) + 1 for one in self._facts), default=0
        )
        """The length of a life in which every fact reaches the last age."""

    def extra(self, number: int) -> list[Message]:
        """Return the facts and mentions of a batch."""
        texts = []
        for one in self._facts:
            later = number - one.said
            if later == 0:
                texts.append(one.fact.fact)
            elif later in one.fact.mentions(max(self.ages)):
                texts.append(one.fact.mention(later))
        return [message(text) for text in texts]

    async def after(self, life: Life) -> None:
        """Note the memory of a new fact, and the state of facts that have reached one of the ages."""
        number = life.age - 1
        for one in self._facts:
            if number == one.said:
                one.node_id = await memory_of(life, one.fact.fact)
            age = number - one.said - one.fact.begins_to_fade
            if one.node_id is not None and age in self.ages:
                node = (await life.living([one.node_id])).get(one.node_id)
                one.states[age] = _state(node)

    def counts(self, course: str, age: int) -> Counter[str]:
        """Return how many facts of a course were whole, short and gone at an age."""
        return Counter(one.states[age] for one in self._facts if one.fact.course == course)


def _state(node: Node | None) -> str:
    if node is None:
        return GONE
    return WHOLE if len(node.content) == node.original_length else SHORT


async def memory_of(life: Life, text: str) -> NodeId:
    """Return the memory of the last batch that was made from a text."""
    made = await life.living(life.made[-1])
    [found] = [node_id for node_id, node in made.items() if node.content in text]
    return found


class Allergy:
    """A fact said once, pinned or not, and queried by one word."""

    def __init__(
        self, language: Language, ages: Collection[int], *, is_pinned: bool, said: int = FACT_AT
    ) -> None:
        self._fact, self._keyword = ALLERGIES[language]
        self._ages, self._is_pinned, self._said = ages, is_pinned, said
        self.answers: dict[int, str] = {}
        """The text of the answer, by age."""

    def extra(self, number: int) -> list[Message]:
        """Return the fact, in its batch."""
        return [message(self._fact)] if number == self._said else []

    async def after(self, life: Life) -> None:
        """Pin the new memory if requested, and query it at each of the ages."""
        age = life.age - 1 - self._said
        if age == 0 and self._is_pinned:
            await life.pin(await memory_of(life, self._fact))
        if age in self._ages:
            answer = await life.recall(self._keyword)
            self.answers[age] = joined(answer.blocks("auto"))
