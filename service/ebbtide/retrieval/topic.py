"""Find where a text names a topic.

A text names a topic if it contains the whole of it, regardless of case, traditional or simplified characters, Unicode
composition, straight or curly marks, white space between words (including zero-width spaces), and invisible characters.
Alphabetic words match whole: “art” is not in “party”. The last Latin word matches in the singular, the plural and the
possessive, as names of entities do (`entity_names.py`). Scripts without spaces (Chinese, Japanese, Thai) or with
particles (Korean) match anywhere. The result is the sentences that name the topic, as bytes of the original text. Text
about a topic that does not name it is not found, so that the caller can foresee what will be deleted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from ebbtide.entity_names import last_word, word_forms
from ebbtide.han import contains_han
from ebbtide.normalisation import nfkc, simplified
from ebbtide.retrieval.sentences import sentences_of

Span = tuple[int, int]

_NO_ENDS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00016fe0-\U00016fff\U0001b000-\U0001b16f\U00020000-\U000323af"  # Han, and rarer kana
)
"""Characters of scripts without spaces between words."""

_NO_WIDTH = "\u200b"
"""A zero-width space: it separates words, or marks a possible line break within one."""

_GAP = rf"[\s{_NO_WIDTH}]"

_EDGES = re.compile(rf"\A{_GAP}++|(?<!{_GAP}){_GAP}++\Z")

_IN_WORDS = rf"[^\W{_NO_ENDS}]"

_GAPS = re.compile(f"({_GAP}+)")

_LETTER = re.compile(_IN_WORDS)

_POSSESSIVE = re.compile("(?<=.)'s$", re.DOTALL)

_ALIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛ʼʹ′´`", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
    }
)
"""Marks that keyboards, phones and typesetters write differently."""


class Topic:
    """Words that name something."""

    def __init__(self, words: str) -> None:
        folded = _EDGES.sub("", _folded(words)[0])
        if all(_is_mark(character) for character in folded):
            raise ValueError("a topic needs words")
        self._pattern = _pattern(folded)

    def is_named_in(self, text: str) -> bool:
        """Return whether a text names the topic."""
        return self._pattern.search(_folded(text)[0]) is not None

    def stretches(self, text: str) -> list[Span]:
        """Return the sentences that name the topic as bounds in UTF-8 bytes, adjacent ones merged."""
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
    """Return the pattern for a topic. A zero-width space in it may separate two words or occur within one."""
    forms = _forms(folded)
    begin = rf"(?<!{_IN_WORDS})" if _ends_words(folded[0]) else ""
    end = rf"(?!{_IN_WORDS})" if _ends_words(forms[0][-1]) else ""
    return re.compile(f"{begin}(?:{'|'.join(map(_spaced, forms))}){end}")


def _forms(folded: str) -> list[str]:
    """Return a topic with its last Latin word in the singular and the plural, without a possessive ending."""
    if contains_han(folded):
        return [folded]
    name = _POSSESSIVE.sub("", folded)
    begin, end = last_word(name)
    return [name[:begin] + form + name[end:] for form in word_forms(name[begin:end])]


def _spaced(form: str) -> str:
    """Return the pattern for one form of a topic, with any white space between its words."""
    parts = _GAPS.split(form)
    parts[::2] = [f"{_NO_WIDTH}*+".join(map(re.escape, word)) for word in parts[::2]]
    parts[1::2] = [_GAP + ("++" if gap.strip(_NO_WIDTH) else "*+") for gap in parts[1::2]]
    return "".join(parts)


def _is_mark(character: str) -> bool:
    """Return whether a character is punctuation, a space or a control character: alone, it names nothing."""
    category = unicodedata.category(character)
    return category[0] in "PZ" or category in ("Cc", "Cf")


def _ends_words(character: str) -> bool:
    """Return whether a word ends after this character if no other letter follows."""
    return _LETTER.fullmatch(character) is not None


def _folded(text: str) -> tuple[str, list[Span] | None]:
    """Return a text in its form for comparison, with the origin of each character, or None if unchanged."""
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
    """Yield the grapheme clusters of a text with their bounds, without invisible characters.

    Zero-width spaces are kept, except within a cluster.
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
    """Return whether a character combines with the preceding one: an accent, or a later letter of a Korean syllable."""
    if character.isascii():
        return False
    is_later_letter = "\u1160" <= character <= "\u11ff" or character in "\uff9e\uff9f"
    return is_later_letter or unicodedata.category(character).startswith("M")
