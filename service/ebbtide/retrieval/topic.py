"""A topic: words that name something, and where a text names it.

A text names a topic where the whole of it occurs, in any case, in traditional or simplified characters, with any white
space between its words. Where its ends are letters or digits of an alphabet they stand at the ends of words: “art” is
not in “party”. Chinese has no such ends, so there any occurrence counts. What a text says about a topic is the
sentences that name it. The rule guarded here: what is found is a stretch of the very text, in its own bytes.

Deliberately not here: what is about a topic without naming it. Whoever forgets must be able to foresee what goes.
"""

from __future__ import annotations

import re
import unicodedata

from ebbtide.retrieval.sentences import sentences_of
from ebbtide.retrieval.variants import simplified
from ebbtide.vocabulary import holds_han

Span = tuple[int, int]


class Topic:
    """Words that name something."""

    def __init__(self, words: str) -> None:
        folded, _ = _folded(words.strip())
        parts = [re.escape(part) for part in folded.split()]
        if not parts:
            raise ValueError("a topic has words")
        begin = r"(?<!\w)" if _ends_words(folded[0]) else ""
        end = r"(?!\w)" if _ends_words(folded[-1]) else ""
        self._pattern = re.compile(begin + r"\s+".join(parts) + end)

    def is_named_in(self, text: str) -> bool:
        """Whether a text names it."""
        return self._pattern.search(_folded(text)[0]) is not None

    def stretches(self, text: str) -> list[Span]:
        """The sentences of a text that name it, in UTF-8 bytes, in order; neighbours as one."""
        folded, places = _folded(text)
        named = [(places[m.start()], places[m.end() - 1] + 1) for m in self._pattern.finditer(folded)]
        if not named:
            return []
        found: list[Span] = []
        begin = place = 0
        for sentence in sentences_of(text):
            end, size = begin + len(sentence), len(sentence.encode())
            if any(first < end and last > begin for first, last in named):
                if found and found[-1][1] == place:
                    found[-1] = (found[-1][0], place + size)
                else:
                    found.append((place, place + size))
            begin, place = end, place + size
        return found


def _ends_words(character: str) -> bool:
    """Whether a word ends with the character where no other letter follows."""
    return (character.isalnum() or character == "_") and not holds_han(character) and not _is_kana(character)


def _is_kana(character: str) -> bool:
    return "\u3040" <= character <= "\u30ff"


def _folded(text: str) -> tuple[str, list[int]]:
    """A text as it is compared, and where each of its characters stood in the text."""
    if text.isascii():
        return text.casefold(), list(range(len(text)))
    table = simplified()
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        same = unicodedata.normalize("NFKC", character).casefold().translate(table)
        characters.append(same)
        places.extend([place] * len(same))
    return "".join(characters), places
