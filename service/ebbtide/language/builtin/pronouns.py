"""Find the name that a pronoun may be replaced by.

A clause that begins with he, she, they, 他 or 她 may take the name in the clause before it in the same sentence. That
clause must name one person, and mention no other by kinship or role.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.levels import FILLER, SUBJECT, Word, is_apposition
from ebbtide.language.builtin.tokens import Candidate
from ebbtide.language.builtin.units import Unit
from ebbtide.language.builtin.word_lists import words as word_set

_PRONOUNS = word_set("he she they 他 她")


def named_pronouns(
    text: str, units: Sequence[Unit], words: Sequence[Word], found: Sequence[Candidate]
) -> Iterator[tuple[int, list[int]]]:
    """Yield the index of each pronoun that begins a clause, with the indices of the words of its name."""
    own: list[list[int]] = [[] for _ in units]
    for index, word in enumerate(words):
        own[word.unit].append(index)
    names: list[list[Candidate]] = [[] for _ in units]
    number = 0
    for candidate in found:
        while number < len(units) and units[number].end <= candidate.start:
            number += 1
        if number < len(units) and _is_name(text, candidate, units[number]):
            names[number].append(candidate)
    for number in range(1, len(units)):
        pronoun = next((index for index in own[number] if words[index].level != FILLER), -1)
        if pronoun < 0 or normal(words[pronoun].token.text) not in _PRONOUNS or units[number - 1].closes:
            continue
        if len(names[number - 1]) == 1:
            named = _subject(names[number - 1][0], own[number - 1], words)
            if named:
                yield pronoun, named


def _is_name(text: str, candidate: Candidate, unit: Unit) -> bool:
    """Return whether a noun phrase is a name. A capital letter at the start of a sentence shows it only in one word."""
    if candidate.kind == "name":
        return True
    return candidate.start == unit.start and candidate.text[0].isupper() and " " not in candidate.text


def _subject(name: Candidate, own: Sequence[int], words: Sequence[Word]) -> list[int]:
    """Return the words of a name that is the subject of its clause, or nothing if another person is mentioned."""
    named = [i for i in own if name.start <= words[i].token.start and words[i].token.end <= name.end]
    exact = named and words[named[0]].token.start == name.start and words[named[-1]].token.end == name.end
    if not exact or any(words[index].level != SUBJECT for index in named):
        return []
    for index, after in zip(own, [*own[1:], -1], strict=True):
        token = words[index].token
        person = token.text in words_chinese.KIN or normal(token.text) in words_english.PERSONS
        if person and (after < 0 or not is_apposition(token, words[after].token)):
            return []
    return named
