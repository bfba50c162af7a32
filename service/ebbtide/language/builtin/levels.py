"""Grade the words of a clause by how much the statement depends on them.

The predicate with its object and negation is needed most, then the subject, then names, numbers and dates, then other
modifiers. Fillers are needed least. Words of one noun phrase have one level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.english_tags import classify, context, normal
from ebbtide.language.builtin.negation import is_condition_word, is_negation
from ebbtide.language.builtin.tokens import CALLED_NAME, Candidate, Token
from ebbtide.language.builtin.word_lists import word_list, words

PREDICATE, SUBJECT, DETAIL, MODIFIER, FILLER = range(5)

_HAN_VERBS = words("v vi vd")
_REPORTING = word_list("reporting_verbs")
_REPORT_LINKS = words("that me us 我 我们")
_REFERRING = word_list("referring_words")
_REPORTED_TAGS = words("word n nr ns nt nz r nrt title code t s num")
_BEFORE_NOUNS = (
    words_english.DETERMINERS
    | words_english.POSSESSIVES
    | words_english.PREPOSITIONS
    | words_english.ADJECTIVES
)
_DATES = words_english.WEEKDAYS | words_english.MONTHS
_ENGLISH_PREDICATES = (
    words_english.VERBS
    | words_english.AUXILIARIES
    | words("i'm i've i'd i'll it's he's she's we're we've we'll they're they've they'd you're you've that's")
)

_EMPHASIS = words_english.DROPPABLE | word_list("english_fillers")
_SPARE_ADJECTIVES = word_list("english_spare_adjectives")
_SUBORDINATORS = word_list("english_subordinators")
_TIME_HEADS = word_list("english_time_nouns")
_OBJECTS = words("noun name code pronoun subject")
_OF_TIME = words("on in at since until")
_BE = word_list("english_be")
_LIMITING = word_list("english_limiting_adverbs")


class Word(NamedTuple):
    """A token, the number of its unit, its level, and the number of its part between the commas of the unit."""

    token: Token
    unit: int
    level: int
    part: int


def levels_of(text: str, tokens: Sequence[Token], found: Sequence[Candidate]) -> list[int]:
    """Return the level of each token of a clause. `found` are the noun phrases of the clause."""
    reported = _reported_from(tokens)
    if reported:
        return [DETAIL] * reported + levels_of(text, tokens[reported:], found)
    graded = _grade_words(text, tokens)
    at = 0
    for candidate in found:
        while at < len(tokens) and tokens[at].start < candidate.start:
            at += 1
        end = at
        while end < len(tokens) and tokens[end].end <= candidate.end:
            end += 1
        if candidate.kind == "weak" and candidate.weight == CALLED_NAME:
            graded[at:end] = [FILLER] * (end - at)
        elif end > at + 1 and candidate.kind != "weak":
            graded[at:end] = [min(graded[at:end])] * (end - at)
    for index, after in enumerate(tokens[1:]):
        if graded[index] <= SUBJECT and is_apposition(tokens[index], after):
            begin = (
                index - 1 if index and normal(tokens[index - 1].text) in words_english.POSSESSIVES else index
            )
            graded[begin : index + 1] = [DETAIL] * (index + 1 - begin)
    return graded


def is_apposition(token: Token, after: Token) -> bool:
    """Return whether a word says who the person is whose name follows: sister Clara, 妹妹克拉拉."""
    if token.tag == "word":
        return normal(token.text) in words_english.PERSONS and after.tag == "word" and after.text[0].isupper()
    return token.text in words_chinese.KIN and after.tag in ("nr", "nrt")


def has_predicate(tokens: Sequence[Token]) -> bool:
    """Return whether a part of a sentence contains a verb."""
    return any(
        token.tag in _HAN_VERBS or is_english_verb(tokens, index) for index, token in enumerate(tokens)
    )


def is_english_verb(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word is an English verb, judged by the word before it."""
    lower = normal(tokens[index].text)
    if tokens[index].tag != "word" or lower in _ENGLISH_PREDICATES:
        return tokens[index].tag == "word"
    before = normal(tokens[index - 1].text) if index else ""
    return lower in words_english.AMBIGUOUS and before != "" and before not in _BEFORE_NOUNS


def _reported_from(tokens: Sequence[Token]) -> int:
    """Return where a reported statement with its own subject begins: after `Ann says that`, 老师说."""
    for index, token in enumerate(tokens[1:5], 1):
        if normal(token.text) not in _REPORTING or any(map(is_negation, tokens[:index])):
            continue
        begin = index + 1
        while begin < len(tokens) and (
            normal(tokens[begin].text) in _REPORT_LINKS or tokens[begin].tag == "punct"
        ):
            begin += 1
        rest = tokens[begin : begin + 1]
        if not rest or normal(rest[0].text) in _REFERRING or len(tokens) - begin < 3:
            return 0
        return begin if rest[0].tag in _REPORTED_TAGS else 0
    return 0


class _Place:
    """Where in an English clause a word is."""

    def __init__(self) -> None:
        self.has_verb = False
        self.has_object = False
        self.is_linked = False
        self.level = PREDICATE
        self.preposition = ""
        self.is_closed = False


def _grade_words(text: str, tokens: Sequence[Token]) -> list[int]:
    graded: list[int] = []
    place = _Place()
    previous = "start"
    leads = True
    kinds: list[str] = []
    for index, token in enumerate(tokens):
        kind = classify(text, tokens, index, previous) if token.tag == "word" else "break"
        if token.text == "May" and index:
            kind = "time"
        if kind == "adj" and previous in ("noun", "name") and normal(token.text).endswith("ed"):
            kind = "verb"
        previous = context(token, kind)
        kinds.append(kind)
    for index, token in enumerate(tokens):
        lower = normal(token.text)
        level = _grade_word(tokens, kinds, index, lower, leads, place)
        leads = leads and level == FILLER
        graded.append(level)
    if not place.has_verb:
        return [PREDICATE if level in (SUBJECT, MODIFIER) else level for level in graded]
    return graded


def _grade_word(
    tokens: Sequence[Token], kinds: Sequence[str], index: int, lower: str, leads: bool, place: _Place
) -> int:
    token, kind = tokens[index], kinds[index]
    if is_negation(token) or is_condition_word(token):
        place.has_verb = place.has_verb or lower.endswith(("n't", "not"))
        return place.level if place.has_verb and place.level != SUBJECT else PREDICATE
    if not index and token.text == "when" and _is_past_clause(tokens):
        return FILLER
    if leads and lower not in _SUBORDINATORS and (lower in words_english.OPENERS or kind == "conj"):
        return FILLER
    if lower in _SUBORDINATORS and place.has_verb:
        place.level, place.is_closed = MODIFIER, True
    elif kind == "conj" and place.has_verb and "verb" in kinds[index + 1 : index + 8]:
        place.level, place.is_closed = max(place.level, DETAIL), True
    if place.is_closed:
        return place.level
    if kind in ("verb", "modal") or lower in words_english.AUXILIARIES:
        if not place.has_verb:
            place.level = PREDICATE
        place.has_verb, place.has_object, place.is_linked = True, False, lower in _BE
        if index == 1 and lower in _BE and kinds[0] == "subject" and kinds[2:3] != ["break"]:
            # As in I'm: the rest of the predicate says the same without the verb.
            return SUBJECT
        return place.level
    if kind == "prep" or (kind == "to" and kinds[index + 1 : index + 2] != ["verb"]):
        return _grade_preposition(tokens, kinds, index, lower, place)
    if kind == "subject" and not place.has_verb:
        place.level = PREDICATE
    if kind == "subject" and "'" in lower and place.has_verb:
        place.has_object = False
        return place.level
    if kind == "subject" and "'" in lower:
        place.has_verb = True
        return SUBJECT if place.level == PREDICATE else place.level
    if lower in ("yes", "no") and index and kinds[index - 1] == "verb":
        return place.level
    if lower in _EMPHASIS and index + 1 < len(tokens):
        return FILLER
    if place.has_verb and (kind == "det" or lower in ("every", "last", "next")):
        ahead = [normal(other.text) for other in tokens[index + 1 : index + 3]]
        if place.has_object and any(word in _TIME_HEADS for word in ahead):
            place.level = MODIFIER
    if (
        kind == "adv"
        and lower.endswith("ly")
        and lower not in _LIMITING
        and kinds[index + 1 : index + 2] == ["adj"]
    ):
        return MODIFIER
    if kind == "adv" and lower not in _LIMITING and place.has_verb and place.level != MODIFIER:
        return MODIFIER if place.has_object else place.level
    if (
        kind == "adj"
        and kinds[index + 1 : index + 2] in (["noun"], ["mod"], ["name"])
        and lower in _SPARE_ADJECTIVES
        and kinds[index - 1 : index] != ["prep"]
    ):
        return max(place.level, MODIFIER) if place.has_verb else MODIFIER
    if kind in _OBJECTS and not (kind == "pronoun" and kinds[index - 1] == "verb"):
        place.has_object = place.has_verb
    if not place.has_verb and place.level == PREDICATE:
        return SUBJECT
    return place.level


def _is_past_clause(tokens: Sequence[Token]) -> bool:
    """Return whether `when`, a subject and a past form begin a clause: it says what happened."""
    return (
        len(tokens) > 2
        and normal(tokens[1].text) in words_english.SUBJECTS
        and words_english.is_past(tokens[2].text)
    )


def _grade_preposition(
    tokens: Sequence[Token], kinds: Sequence[str], index: int, lower: str, place: _Place
) -> int:
    """Begin a prepositional phrase: it completes a verb without an object, otherwise it is a modifier."""
    if place.level == MODIFIER and not place.has_verb:
        return MODIFIER
    if _is_particle(tokens, kinds, index) or _is_range(tokens, index):
        return place.level
    before, place.preposition = place.preposition, lower
    ahead = range(index + 1, min(index + 5, len(tokens)))
    if lower in _OF_TIME and place.has_verb and not place.is_linked and _is_date(tokens, kinds, index + 1):
        place.level, place.has_object = DETAIL, True
        return DETAIL
    if lower == "of" or (place.has_verb and not place.has_object and place.level != MODIFIER):
        return place.level
    if not place.has_verb:
        place.level = MODIFIER
        return place.level
    if (before, lower) == ("from", "to"):
        return place.level
    # In "in an orchestra in Porto", only the second phrase names a place.
    end = next((at for at in ahead if normal(tokens[at].text) == lower), ahead.stop)
    exact = any(_is_exact(tokens[at], kinds[at]) for at in range(index + 1, end))
    if not exact:
        place.level = MODIFIER
    elif place.level != MODIFIER or lower == before:
        place.level = DETAIL
    return place.level


def _is_particle(tokens: Sequence[Token], kinds: Sequence[str], index: int) -> bool:
    """Return whether a preposition belongs to its verb, because no noun follows: I'm keeping the weight off."""
    return (
        index > 1
        and (index + 1 == len(tokens) or tokens[index + 1].tag == "punct")
        and kinds[index] == "prep"
    )


def _is_range(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word links two numbers: 7th to 11th."""
    ends = (tokens[index - 1].text, tokens[index + 1].text) if 0 < index < len(tokens) - 1 else ("", "")
    return ends[0][:1].isdigit() and ends[1][:1].isdigit()


def _is_date(tokens: Sequence[Token], kinds: Sequence[str], index: int) -> bool:
    return index < len(tokens) and (kinds[index] == "time" or tokens[index].tag == "date")


def _is_exact(token: Token, kind: str) -> bool:
    """Return whether a word is a name, a number or a date."""
    return kind in ("name", "code", "time") or token.tag in ("num", "date") or normal(token.text) in _DATES
