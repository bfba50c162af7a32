"""Shorten an English text to a list of notes: its most telling names and noun phrases, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.candidates import READ_MAX
from ebbtide.language.builtin.english_classes import is_gerund
from ebbtide.language.builtin.english_noun_phrases import ADDRESSED, DENIED, RUN, Note, Span, noun_phrases
from ebbtide.language.builtin.english_ranking import FRAMES
from ebbtide.language.builtin.english_statements import Analysis, analyse
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.negation import is_condition_word, is_negation
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import word_list, words
from ebbtide.language.port import MAX_WORD_CHARS

Fits = Callable[[str], bool]
"""Whether a text fits the room."""

TRIES = 40
"""How many pieces are tried after the first ones."""
STARTS = 6
"""How many pieces are tried as the first one."""
HALF = 0.5
"""The share of the room that a shortening should fill."""
WHOLE_MAX = 48
"""The longest text that stays as it is if none of its parts says something."""

# A note of nearly the same weight is preferred as the first one if it fills the room.
_NEARLY = 0.6
_EMPTIEST = FRAMES | words(
    "part parts way ways lot lots bit kind kinds sort sorts stuff piece pieces front back"
)
_NO_WORDS = lexicon.FUNCTION_WORDS | lexicon.EMPTY_WORDS | word_list("english_no_words")
# Behind a verb, these change what it says.
_PARTICLES = words("up off out on in down over away back")


def is_list(text: str) -> bool:
    """Return whether a text is a list of notes: no item of several words has a verb."""
    analysis = analyse(text[:READ_MAX])
    size = verbs = 0
    for token, kind in zip((*analysis.tokens, None), (*analysis.kinds, "break"), strict=True):
        if token is None or token.text == ",":
            if size > 1 and verbs:
                return False
            size = verbs = 0
            continue
        size += 1
        verbs += kind in ("verb", "aux", "clause", "subject")
    return True


def notes(text: str, fits: Fits, first: str = "", *, verbal: bool = False) -> str:
    """Return the most telling noun phrases that fit, in the order of the text, separated by commas.

    `first` is the first content, which decides what is telling. If `verbal`, verbs and adjectives are added where the
    noun phrases leave half of the room free.
    """
    analysis = analyse(text[:READ_MAX])
    nouns = sorted(noun_phrases(text, analysis, first), key=lambda note: (-note.weight, note.forms[0]))[
        :TRIES
    ]
    # Denied and addressed nouns are notes only if there is no other: in a list, "no" would seem to deny all.
    denied = [note for note in nouns if note.weight == DENIED]
    nouns = [note for note in nouns if note.weight > ADDRESSED] or nouns[:1]
    nouns = [note for note in nouns if not _is_empty(analysis, note)] or nouns

    def joined(spans: Sequence[Span]) -> str:
        return ", ".join(_phrase(analysis.tokens, text, begin, end) for begin, end in sorted(spans))

    def fit(spans: Sequence[Span]) -> bool:
        return fits(joined(spans))

    def is_half_full(spans: Sequence[Span]) -> bool:
        return bool(spans) and is_filled(joined(spans), fits, HALF)

    chosen: list[Span] = []
    for number, note in enumerate(nouns[:STARTS]):
        named = analysis.kinds[nouns[0].forms[0][1] - 1] == "name"
        if number and (
            note.weight < _NEARLY * nouns[0].weight or (named and chosen and _is_single(analysis, note))
        ):
            break
        ordered = [note, *nouns[:number], *nouns[number + 1 :]]
        found = _fitting(analysis, [other.forms for other in ordered], [], fit)
        chosen = chosen or found
        if is_half_full(found):
            chosen = found
            break
    if not chosen:
        chosen = _fitting(analysis, [note.parts for note in nouns], [], fit)[:1]
    if not chosen:
        return ""
    for note in denied:
        # A denied noun at the end of a list denies no other.
        if not is_half_full(chosen) and note.forms[0] > max(chosen):
            chosen = _fitting(analysis, [note.forms], chosen, fit)
            break
    for index in _words(analysis, only=False) if verbal else ():
        if is_half_full(chosen):
            break
        chosen = _fitting(analysis, [((index, index + 1),)], chosen, fit)
    if not is_half_full(chosen):
        chosen = _with_determiners(analysis, chosen, fit)
    return joined(chosen)


def shortest(text: str, fits: Fits) -> str:
    """Return what is left of a text of which no statement and no noun phrase fits.

    The result is the verbs and adjectives that fit, otherwise the shortest noun phrase or a short statement as a whole,
    which do not fit. It is "" for a long text without a noun.
    """
    analysis = analyse(text[:READ_MAX])

    def said_of(spans: Sequence[Span]) -> str:
        return ", ".join(_phrase(analysis.tokens, text, *span) for span in sorted(spans))

    named = [span for note in noun_phrases(text, analysis) for span in (*note.forms, *note.parts)]
    if not named:
        single = [((index, index + 1),) for index in _words(analysis, only=True)]
        chosen = _fitting(analysis, single, [], lambda spans: fits(said_of(spans)))
        if chosen:
            return said_of(chosen)
    said = min((_phrase(analysis.tokens, text, *span) for span in named), key=len, default="")
    if 0 < len(said) <= MAX_WORD_CHARS:
        return said
    return text if len(text) <= WHOLE_MAX else ""


def is_filled(said: str, fits: Fits, share: float) -> bool:
    """Return whether a text fills this share of the room: a text that much longer does not fit."""
    return not fits(f"{said} {said} {said}"[: int(len(said) / share) + 1])


def _is_empty(analysis: Analysis, note: Note) -> bool:
    """Return whether a note is one of the emptiest words: news."""
    return _is_single(analysis, note) and normal(analysis.tokens[note.forms[0][0]].text) in _EMPTIEST


def _is_single(analysis: Analysis, note: Note) -> bool:
    """Return whether a note is one common noun."""
    begin, end = note.forms[0]
    return end == begin + 1 and analysis.kinds[begin] == "noun"


def _with_determiners(
    analysis: Analysis, chosen: Sequence[Span], fit: Callable[[Sequence[Span]], bool]
) -> list[Span]:
    """Add articles and possessives to noun phrases while they fit: the left ear, my mother."""
    found = list(chosen)
    for number, (begin, end) in enumerate(chosen):
        longer = [*found[:number], (begin - 1, end), *found[number + 1 :]]
        word = normal(analysis.tokens[begin - 1].text) if begin else ""
        if (word in lexicon.DETERMINERS or word in lexicon.POSSESSIVES) and fit(longer):
            found = longer
    return found


def _fitting(
    analysis: Analysis,
    named: Sequence[Sequence[Span]],
    chosen: Sequence[Span],
    fit: Callable[[Sequence[Span]], bool],
) -> list[Span]:
    """Add to the chosen spans the first form of each note that fits."""
    found = list(chosen)
    for forms in named:
        form = next(
            (form for form in forms if fit([*found, form]) and not _repeats(analysis, found, form)), None
        )
        if form is not None:
            found.append(form)
    return found


def _words(analysis: Analysis, *, only: bool) -> list[int]:
    """Return the verbs, adjectives and vague nouns of statements without a negation or condition.

    Unless they are the `only` items of a list, adjectives of a noun and the emptiest words are left out.
    """
    found: list[int] = []
    for statement in analysis.statements:
        inside = range(statement.begin, statement.end)
        if statement.asks or any(
            is_negation(analysis.tokens[i]) or is_condition_word(analysis.tokens[i]) for i in inside
        ):
            continue
        telling = [i for i in inside if _is_telling(analysis, i) and (only or _is_predicate(analysis, i))]
        found += [i for i in telling if analysis.kinds[i] in ("noun", "adj", "mod")]
        found += [i for i in telling if analysis.kinds[i] == "verb"]
    return found


def _is_predicate(analysis: Analysis, index: int) -> bool:
    """Return whether a word adds to a list of nouns: no adjective of a noun, no verb that looks like one."""
    if analysis.kinds[index] == "verb":
        return not analysis.tokens[index].text.endswith("s") and not is_gerund(
            normal(analysis.tokens[index].text)
        )
    if analysis.kinds[index] == "noun":
        return normal(analysis.tokens[index].text) not in _EMPTIEST
    behind = analysis.kinds[index + 1 : index + 2]
    return analysis.kinds[index] == "adj" and not RUN.intersection(behind)


def _is_telling(analysis: Analysis, index: int) -> bool:
    word = normal(analysis.tokens[index].text)
    if index and analysis.kinds[index - 1] == "num":
        return False
    if analysis.kinds[index] == "verb" and any(
        normal(token.text) in _PARTICLES for token in analysis.tokens[index + 1 : index + 2]
    ):
        return False
    return len(word) > 3 and word.isalpha() and word not in _NO_WORDS


def _repeats(analysis: Analysis, chosen: Sequence[Span], form: Span) -> bool:
    """Return whether a span overlaps a chosen one or has no word of its own."""
    if any(begin < form[1] and form[0] < end for begin, end in chosen):
        return True
    said = {normal(analysis.tokens[i].text) for begin, end in chosen for i in range(begin, end)}
    return all(normal(analysis.tokens[i].text) in said for i in range(*form))


def _phrase(tokens: Sequence[Token], text: str, begin: int, end: int) -> str:
    said = " ".join(text[tokens[begin].start : tokens[end - 1].end].split())
    return said[:-2] if said.endswith(("'s", "’s")) else said
