"""Split a text into clauses.

Clauses are slices in order that contain every word. A list (milk, eggs and bread; 、) is not split, because a piece of
one or two words stays with its neighbour.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ebbtide.language.builtin import words_english
from ebbtide.language.builtin.scripts import HAN, has_word, width
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.words_english import is_past


class Clause(NamedTuple):
    """A slice [start, end) with its closing punctuation. `closes` is true if a sentence ends with it."""

    start: int
    end: int
    closes: bool


_COMMA = re.compile(
    # The pattern begins with a character set, which the search finds fast; the rest looks back at that character.
    rf"[，；：,;:—\s](?:(?<=[{HAN}]\s)(?=[{HAN}])|(?<=[，；：])[，；：]*[”’」』）)\"]*|(?<=[,;:])(?=\s)|(?<=—)—*|(?<=\s)[-–—]++\s"
    r"|(?<=\s)(?<!\sa\s)(?<!\b[Ee]ven\s)"
    r"(?=(?:and|so)\s(?:in\sthe\send\s|now\s|then\s|finally\s)?(?:I|we|he|she|they|it|you|my|our)[\s']"
    r"|(?:and|so)\sthe\s[a-z]{1,20}\s(?:is|was|are|were|has|have|had|will|can't|can|cannot)\s"
    r"|(?:but|because(?!\sof)|although|though|while|whereas|unless|so that|which|until)\s"
    r"|when\s(?:I|we|he|she|they|it|you)\s))"
)
# Narrower pieces (two or three English words, five Han characters) are items of a list.
_CLAUSE_MIN = 13.0
# A longer text before "and I" is a clause and not the other subject.
_SUBJECT_MAX = 4
_VERBAL = words_english.VERBS | words_english.AMBIGUOUS | words_english.AUXILIARIES | words_english.SUBJECTS


def clauses(text: str) -> list[Clause]:
    """Return the clauses of a text in order."""
    found: list[Clause] = []
    for start, end in sentence_spans(text):
        if not has_word(text[start:end]):
            if found:
                found[-1] = found[-1]._replace(end=end)
            continue
        found.extend(_within(text, start, end))
    return found


def _within(text: str, start: int, end: int) -> list[Clause]:
    pieces: list[tuple[int, int]] = []
    at = start
    for match in _COMMA.finditer(text, start, end):
        if match.end() >= end:
            break
        if match[0].isspace() and (
            width(text[at : match.end()]) < _CLAUSE_MIN
            or not _may_split(text[at : match.start()][-40:], text[match.end() : match.end() + 40])
        ):
            continue
        pieces.append((at, match.end()))
        at = match.end()
    if not pieces:
        return [Clause(*_strip(text, start, end), True)]
    pieces.append((at, end))
    joined: list[tuple[int, int]] = []
    for begin, stop in pieces:
        narrow = width(text[begin:stop].strip()) < _CLAUSE_MIN
        if joined and (narrow or width(text[slice(*joined[-1])].strip()) < _CLAUSE_MIN):
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((begin, stop))
    stripped = [_strip(text, begin, stop) for begin, stop in joined]
    return [Clause(b, e, index == len(stripped) - 1) for index, (b, e) in enumerate(stripped)]


def _may_split(before: str, opening: str) -> bool:
    """Return whether a text without a comma is two clauses: `when` precedes a past form, and the first has a verb."""
    words = opening.split(" ", 3)
    if words[0] == "when":
        return len(words) > 2 and is_past(words[2])
    named = [word.casefold() for word in before.split()]
    return opening[:6] != "and I " or len(named) > _SUBJECT_MAX or any(map(_VERBAL.__contains__, named))


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
