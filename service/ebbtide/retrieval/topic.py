"""A topic: words that name something, and where a text names it.

A text names a topic where the whole of it occurs, in any case, in traditional or simplified characters, composed or
not, with straight or curly marks, with any white space between its words (a space without width, too), and whatever is
not seen between its letters.
Where its ends are letters or digits of an alphabet they stand at the ends of words: “art” is not in “party”. Chinese,
Japanese, Korean, Thai and their neighbours have no such ends, or put particles behind them: any occurrence counts.
What a text says about a topic is the sentences that name it. The rule guarded here: what is found is a stretch of the
very text, in its own bytes.

Deliberately not here: what is about a topic without naming it. Whoever forgets must be able to foresee what goes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from ebbtide.retrieval.normalisation import nfkc, simplified
from ebbtide.retrieval.sentences import sentences_of

Span = tuple[int, int]

_NO_ENDS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00016fe0-\U00016fff\U0001b000-\U0001b16f\U00020000-\U000323af"  # Han, and rarer kana
)
"""Characters of writings that put no space between a word and what follows it."""

_NO_WIDTH = "\u200b"
"""A space without width: it parts words, or only says where a line may break within one."""

_GAP = rf"[\s{_NO_WIDTH}]"

_EDGES = re.compile(rf"\A{_GAP}++|(?<!{_GAP}){_GAP}++\Z")

_IN_WORDS = rf"[^\W{_NO_ENDS}]"

_LETTER = re.compile(_IN_WORDS)

_ALIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛ʼʹ′´`", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
    }
)
"""Marks that a keyboard, a phone and a typesetter write differently."""


class Topic:
    """Words that name something."""

    def __init__(self, words: str) -> None:
        folded = _EDGES.sub("", _folded(words)[0])
        if not folded:
            raise ValueError("a topic has words")
        self._pattern = _pattern(folded)

    def is_named_in(self, text: str) -> bool:
        """Whether a text names it."""
        return self._pattern.search(_folded(text)[0]) is not None

    def stretches(self, text: str) -> list[Span]:
        """The sentences of a text that name it, in UTF-8 bytes, in order; neighbours as one."""
        folded, places = _folded(text)
        found_at = [match.span() for match in self._pattern.finditer(folded)]
        named = found_at if places is None else [(places[a][0], places[b - 1][1]) for a, b in found_at]
        if not named:
            return []
        found: list[Span] = []
        begin = place = passed = 0
        for sentence in sentences_of(text):
            end, size = begin + len(sentence), len(sentence.encode())
            while passed < len(named) and named[passed][1] <= begin:
                passed += 1
            if passed < len(named) and named[passed][0] < end:
                if found and found[-1][1] == place:
                    found[-1] = (found[-1][0], place + size)
                else:
                    found.append((place, place + size))
            begin, place = end, place + size
        return found


def _pattern(folded: str) -> re.Pattern[str]:
    """What finds the words of a topic; a space without width in them may part two words or stand within one."""
    parts = re.split(f"({_GAP}+)", folded)
    parts[::2] = [f"{_NO_WIDTH}*+".join(map(re.escape, word)) for word in parts[::2]]
    parts[1::2] = [_GAP + ("++" if gap.strip(_NO_WIDTH) else "*+") for gap in parts[1::2]]
    begin = rf"(?<!{_IN_WORDS})" if _ends_words(folded[0]) else ""
    end = rf"(?!{_IN_WORDS})" if _ends_words(folded[-1]) else ""
    return re.compile(begin + "".join(parts) + end)


def _ends_words(character: str) -> bool:
    """Whether a word ends with the character where no other letter follows."""
    return _LETTER.fullmatch(character) is not None


def _folded(text: str) -> tuple[str, list[Span] | None]:
    """A text as it is compared, and for each of its characters where it comes from; None where nothing has moved."""
    if text.isascii():
        return text.casefold().translate(_ALIKE), None
    table = simplified()
    characters: list[str] = []
    places: list[Span] = []
    for cluster, begin, end in _clusters(text):
        composed = nfkc(cluster.translate(_ALIKE))
        same = nfkc(composed.casefold()).translate(table).translate(_ALIKE)
        characters.append(same)
        places.extend([(begin, end)] * len(same))
    return "".join(characters), places


def _clusters(text: str) -> Iterator[tuple[str, int, int]]:
    """A text cut before each character that does not join the one before it, without what is not seen.

    Spaces without width stay, but for those within a cluster.
    """
    cluster: list[str] = []
    begin = end = 0
    spaces: list[int] = []
    for place, character in enumerate(text):
        if not character.isascii() and unicodedata.category(character) == "Cf":
            if character == _NO_WIDTH:
                spaces.append(place)
            continue
        if not cluster or not _joins(character):
            if cluster:
                yield "".join(cluster), begin, end
            yield from ((_NO_WIDTH, space, space + 1) for space in spaces)
            cluster, begin = [], place
        spaces.clear()
        cluster.append(character)
        end = place + 1
    if cluster:
        yield "".join(cluster), begin, end
    yield from ((_NO_WIDTH, space, space + 1) for space in spaces)


def _joins(character: str) -> bool:
    """Whether a character may become one with those before it: an accent, or a later letter of a Korean syllable."""
    if character.isascii():
        return False
    is_later_letter = "\u1160" <= character <= "\u11ff" or character in "\uff9e\uff9f"
    return is_later_letter or unicodedata.category(character).startswith("M")
