"""Talk in small batches for the benchmark of the memory model, and facts to state within it.

The talk is public where it is available: LoCoMo in English, MemDaily and MemoryBank in Chinese. Otherwise it is the
project's own (`conversations/`). The facts (`memory_facts.jsonl`) name things that do not occur in the talk. Each takes
one of three courses: it is said once, its topic comes back, or it is discussed for a while and then never again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal

from benchmarks.recall_data import Corpus, MissingSet, Turn, read_own, read_set
from ebbtide.verbs.remember import Message

Language = Literal["English", "Chinese"]
LANGUAGES: tuple[Language, ...] = ("English", "Chinese")

PUBLIC_SETS: dict[Language, tuple[str, ...]] = {
    "English": ("locomo",),
    "Chinese": ("memdaily", "memorybank_cn"),
}
OWN_SETS = {"English": "friends_en", "Chinese": "friends_zh"}

MAX_MESSAGES = 3
"""A batch has 1 to 3 messages, as from a client that sends every turn or two."""

FACTS = Path(__file__).with_name("memory_facts.jsonl")

ONCE, COMES_BACK, DISCUSSED = "said once", "comes back", "discussed, then never"
COURSES = (ONCE, COMES_BACK, DISCUSSED)

COMES_BACK_EACH, DISCUSSED_EACH, DISCUSSED_FOR = 20, 8, 160
"""Batches between two mentions of a topic, and how long a topic is discussed."""

MENTIONS: dict[Language, tuple[str, ...]] = {
    "English": (
        "We talked about {} again.",
        "I had some news about {} today.",
        "I saw {} mentioned on a sign.",
    ),
    "Chinese": ("今天又聊到了{}。", "我听到了{}的新消息。", "吃饭的时候大家提到了{}。"),
}

ALLERGIES: dict[Language, tuple[str, str]] = {
    "English": ("I am severely allergic to peanuts.", "peanuts"),
    "Chinese": ("我对花生严重过敏。", "花生"),
}
"""A fact that may be pinned, and the keyword to query it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact, the name of its topic, and the later mentions of the topic."""

    language: Language
    course: str
    name: str
    fact: str

    def mention(self, number: int) -> str:
        """Return a later message about the same topic."""
        forms = MENTIONS[self.language]
        return forms[number % len(forms)].format(self.name)

    def mentions(self, until: int) -> range:
        """Return how many batches after the fact its topic is mentioned, up to `until`."""
        if self.course == COMES_BACK:
            return range(COMES_BACK_EACH, until + 1, COMES_BACK_EACH)
        if self.course == DISCUSSED:
            return range(DISCUSSED_EACH, DISCUSSED_FOR + 1, DISCUSSED_EACH)
        return range(0)

    @property
    def begins_to_fade(self) -> int:
        """Return how many batches after the fact its age counts as 0."""
        return DISCUSSED_FOR if self.course == DISCUSSED else 0


def facts(language: Language, each: int | None = None) -> list[Fact]:
    """Return the facts in a language, `each` of every course."""
    with FACTS.open(encoding="utf-8") as lines:
        found = [Fact(**json.loads(line)) for line in lines]
    found = [one for one in found if one.language == language]
    return [one for course in COURSES for one in islice((f for f in found if f.course == course), each)]


def talk(language: Language, folder: Path, *, is_own: bool, seed: int) -> tuple[str, list[list[Message]]]:
    """Return the name of the talk in a language and its batches. `is_own`: never the public sets."""
    names = () if is_own else PUBLIC_SETS[language]
    corpora: list[Corpus] = []
    for name in names:
        found = read_set(name, folder)
        if isinstance(found, MissingSet):
            corpora, names = [], ()
            break
        corpora += found
    if not names:
        names = (OWN_SETS[language],)
        corpora = read_own(names[0])
    turns = [turn for corpus in corpora for turn in corpus.turns]
    return " and ".join(names), list(_batches(turns, Random(seed)))


def _batches(turns: Sequence[Turn], dice: Random) -> Iterator[list[Message]]:
    left = iter(turns)
    while part := list(islice(left, dice.randint(1, MAX_MESSAGES))):
        yield [message(turn.text, turn.speaker) for turn in part]


def message(text: str, speaker: str | None = None) -> Message:
    """Return a message of a user."""
    return Message(role="user", content=text, speaker=speaker or None)
