"""Choose three to five keywords of a text.

Every keyword occurs in the text and has at most 30 characters. A keyword that is contained in a longer one is dropped.
The weights come from candidates.py; repetition increases them.
"""

from __future__ import annotations

from ebbtide.entity_names import singular
from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.english_nouns import TOPICAL_WEIGHT
from ebbtide.language.builtin.phrasing import phrase as phrase
from ebbtide.language.builtin.scripts import has_han
from ebbtide.language.builtin.small_talk import CHINESE_WORDS, ENGLISH_WORDS
from ebbtide.language.builtin.tokens import Candidate
from ebbtide.language.builtin.word_lists import word_list
from ebbtide.language.builtin.words_english import ADJECTIVES, VAGUE_NOUNS, VERBS

_KEYWORDS_MAX = 5
_KEYWORDS_GOOD = 3
_LENGTH_MAX = 30
# Minimum score of a fourth or fifth keyword.
_WORTH = 1.0
# A text is mostly about what it names first.
_EARLY = 0.5
# A lower score is not a keyword if a better one exists.
_SLIGHT = 0.7
# The weight of vague nouns, which may fill up. Verbs and adjectives weigh more but are no keywords.
_SLIGHT_NOUN = 0.2
_SOCIAL = ADJECTIVES | ENGLISH_WORDS | CHINESE_WORDS
_NAMES_NOTHING = word_list("empty_nouns")
_EMPTY = _SOCIAL | VAGUE_NOUNS | VERBS


def keywords(text: str) -> tuple[str, ...]:
    """Return up to five nouns or noun phrases of a text, the most informative first.

    Weaker nouns fill up to three. Adjectives and empty words never do: fewer keywords are better than meaningless ones.
    """
    scored = _score(candidates(text))
    chosen = _informative(scored)
    # Empty nouns are added only next to a keyword that is not empty.
    for empty in (_EMPTY, _SOCIAL) if chosen else (_EMPTY,):
        for _, candidate in scored:
            if len(chosen) >= _KEYWORDS_GOOD:
                break
            if _may_fill(candidate, empty):
                _add(chosen, candidate)
    return tuple(candidate.text for candidate in chosen)


def cue_keywords(text: str) -> tuple[str, ...]:
    """Return the words to recall a question by: its keywords, the words of its phrases, its verbs and adjectives.

    A keyword matches verbatim, so a phrase that is not a fixed term finds less than its words. The singular of a word
    finds the plural too.
    """
    found = candidates(text)
    chosen = keywords(text)
    nouns = {candidate.text for candidate in found if candidate.kind in ("noun", "weak")}
    words = [
        _singular(word) for keyword in chosen if keyword in nouns for word in keyword.split() if len(word) > 2
    ]
    others = [
        _singular(candidate.text)
        for candidate in found
        if candidate.kind == "weak" and candidate.weight > _SLIGHT_NOUN and len(candidate.text) > 3
    ]
    return tuple(dict.fromkeys((*chosen, *words, *others)))


def _singular(word: str) -> str:
    return word[:-1] if singular(word.casefold()) == word[:-1].casefold() else word


def _may_fill(candidate: Candidate, empty: frozenset[str]) -> bool:
    """Return whether a weak candidate may become the second or third keyword."""
    text = candidate.text.casefold()
    if candidate.kind != "weak":
        return not _is_small_number(candidate)
    if candidate.weight != _SLIGHT_NOUN or has_han(text) or candidate.text[:1].isupper():
        return False
    return len(text) > 1 and text not in empty


def _is_small_number(candidate: Candidate) -> bool:
    """Return whether a number says little without its sentence: 0号, 12."""
    return candidate.kind == "number" and candidate.weight < _WORTH


def _informative(scored: list[tuple[float, Candidate]]) -> list[Candidate]:
    chosen: list[Candidate] = []
    for score, candidate in scored:
        if candidate.kind == "weak" or _is_small_number(candidate):
            continue
        if len(chosen) >= _KEYWORDS_GOOD and score < _WORTH:
            break
        if chosen and score < _SLIGHT:
            break
        _add(chosen, candidate)
    if not chosen:
        for _, candidate in scored[:_KEYWORDS_GOOD]:
            if candidate.weight >= TOPICAL_WEIGHT:
                _add(chosen, candidate)
    return chosen[:_KEYWORDS_MAX]


def names_nothing(keyword: str) -> bool:
    """Return whether a word is a noun without content, such as “years”, “part” and 东西: never a keyword."""
    return singular(keyword.casefold()) in _NAMES_NOTHING


def _score(found: tuple[Candidate, ...]) -> list[tuple[float, Candidate]]:
    """Sort the candidates by weight, increased by repetition, then by position."""
    counts: dict[str, int] = {}
    firsts: dict[str, Candidate] = {}
    for candidate in found:
        if not candidate.text.strip() or len(candidate.text) > _LENGTH_MAX or "\n" in candidate.text:
            continue
        if names_nothing(candidate.text):
            continue
        key = singular(candidate.text.casefold())
        counts[key] = counts.get(key, 0) + 1
        if key not in firsts or candidate.weight > firsts[key].weight:
            firsts[key] = candidate
    size = max((candidate.end for candidate in found), default=1)
    scored = [
        (
            candidate.weight
            + 0.3 * min(counts[key] - 1, 4)
            + (_EARLY * (1 - candidate.start / size) if candidate.weight >= _WORTH else 0.0),
            candidate,
        )
        for key, candidate in firsts.items()
    ]
    scored.sort(key=lambda item: (-item[0], item[1].start, item[1].end))
    return scored


def _add(chosen: list[Candidate], candidate: Candidate) -> None:
    """Add a candidate unless a chosen one contains it. A longer candidate replaces its part."""
    key = candidate.text.casefold()
    for index, other in enumerate(chosen):
        held = other.text.casefold()
        if key in held:
            return
        if held in key and len(chosen) <= _KEYWORDS_MAX:
            chosen[index] = candidate
            return
    chosen.append(candidate)
