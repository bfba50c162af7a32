"""Texts of synthetic memories: 60 to 200 characters, half Chinese, half English, 3 to 5 keywords each.

Words are drawn by rank (Zipf), so some are nearly everywhere and some almost nowhere; now and then a person is named.
To a search engine the texts look like conversation, though they make no sense to a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks import words

SHORTEST, LONGEST = 60, 200
ZIPF = 1.05
"""Exponent of the ranks: about that of natural language."""

NAMED_SHARE = 0.03
"""Share of words that are the name of a person."""

PAUSE_SHARE = 0.12
"""Share of words that a comma follows."""

BLOCK = 20_000
"""Texts generated in one step, so that a million of them need little memory."""

NOWHERE = "xylophagous"
"""A word that no text contains."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of one memory."""

    content: str
    phrase: str
    keywords: tuple[str, ...]


class _Tongue:
    """One language: its words with and without a comma, its names, and how to join words."""

    def __init__(
        self, plain: Sequence[str], names: Sequence[str], space: str, marks: tuple[str, str]
    ) -> None:
        self.space, self.marks = space, marks
        self.plain = [*plain, *names]
        self.tokens = [*self.plain, *(word + marks[0] for word in self.plain)]
        self.word_count, self.name_count = len(plain), len(names)
        weights = 1 / np.arange(1, len(plain) + 1) ** ZIPF
        self.weights = weights / weights.sum()
        mean = float(np.dot(self.weights, [len(word) for word in plain])) + len(space)
        # Draws more words than needed: a text is cut to its length, never stretched to it.
        self.words_each_char = 1.6 / mean

    def texts(self, dice: np.random.Generator, count: int) -> Iterator[Text]:
        """Yield this many texts."""
        shape = (count, self._words_needed(LONGEST))
        drawn = dice.choice(self.word_count, shape, p=self.weights)
        is_named = dice.random(shape) < NAMED_SHARE
        drawn = np.where(is_named, self.word_count + dice.integers(0, self.name_count, shape), drawn)
        paused = drawn + np.where(dice.random(shape) < PAUSE_SHARE, len(self.plain), 0)
        # Cutting the end may leave a text two characters shorter.
        lengths = dice.integers(SHORTEST + 2, LONGEST + 1, count)
        keyword_counts = dice.integers(3, 6, count)
        for length, keyword_count, ranks, places in zip(
            lengths.tolist(), keyword_counts.tolist(), drawn.tolist(), paused.tolist(), strict=True
        ):
            used = places[: self._words_needed(length)]
            said = self.space.join([self.tokens[place] for place in used])
            content = said[: length - 1].rstrip(self.space + self.marks[0]) + self.marks[1]
            # The keywords of a memory are the rarest of its first words, which every text contains.
            telling = sorted(set(ranks[:12]))[-keyword_count:]
            yield Text(content, said[:20].strip(), tuple(self.plain[rank] for rank in telling))

    def _words_needed(self, length: int) -> int:
        return int(length * self.words_each_char) + 1


class Writer:
    """Writes texts from a seed."""

    def __init__(self, seed: int) -> None:
        self._dice = np.random.default_rng([seed, 1])
        english_names = [" ".join(name) for name in product(words.FIRST_NAMES, words.LAST_NAMES)]
        chinese_names = ["".join(name) for name in product(words.CHINESE_SURNAMES, words.CHINESE_GIVEN_NAMES)]
        self.english = _Tongue(words.ENGLISH, english_names, " ", (",", "."))
        self.chinese = _Tongue(words.CHINESE, chinese_names, "", ("，", "。"))

    def texts(self, count: int) -> Iterator[Text]:
        """Yield this many texts, half of them in each language, in random order."""
        for begin in range(0, count, BLOCK):
            size = min(BLOCK, count - begin)
            is_chinese = self._dice.permutation(np.arange(size) < size // 2).tolist()
            chinese = self.chinese.texts(self._dice, sum(is_chinese))
            english = self.english.texts(self._dice, size - sum(is_chinese))
            for choice in is_chinese:
                yield next(chinese if choice else english)

    def turns(self, count: int, *, chinese: bool) -> list[str]:
        """Return this many turns of a conversation in one language."""
        tongue = self.chinese if chinese else self.english
        return [text.content for text in tongue.texts(self._dice, count)]


def common_words() -> tuple[str, ...]:
    """Return words that many memories contain, and that a user might search for."""
    return ("time", "工作", "home", "朋友", "work", "周末")


def rare_words() -> tuple[str, ...]:
    """Return names, each of which only a few memories contain."""
    english = zip(words.FIRST_NAMES, words.LAST_NAMES, strict=True)
    chinese = zip(words.CHINESE_SURNAMES, words.CHINESE_GIVEN_NAMES, strict=False)
    return tuple(f"{first} {last}" for first, last in english) + tuple("".join(name) for name in chinese)
