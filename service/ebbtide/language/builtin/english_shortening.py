"""Shorten an English text: whole statements while one fits, otherwise a list of names and noun phrases.

The parts of the first content are ranked once. A shortening takes them from what is left, in rank order, as far as they
fit. No word is cut, and a subject is never left out while its verb is kept.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.candidates import READ_MAX, candidates
from ebbtide.language.builtin.english_statements import Analysis, Part, Statement, analyse, is_gerund
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.negation import holds_negation, is_condition_word, is_negation
from ebbtide.language.builtin.small_talk import is_small_talk
from ebbtide.language.builtin.tokens import CALLED_NAME, Candidate, Token, tokenize
from ebbtide.language.builtin.word_lists import ordered_list, word_list, words

Fits = Callable[[str], bool]

_DECIDING = re.compile("|".join(ordered_list("deciding")), re.IGNORECASE)
_INTENDING = re.compile("|".join(ordered_list("intentions")), re.IGNORECASE)
_BACKGROUND = re.compile("|".join(ordered_list("background")), re.IGNORECASE)
_CONCLUDING = re.compile(r"(?:and |but |so )?(?:in the end|finally|eventually)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"(?:and |but |so )?(?:I|we|my|our)\b", re.IGNORECASE)

_KIND_FACTORS = {"number": 1.8, "time": 1.6, "code": 1.2, "weak": 0.5}
_CONTRASTS = words("but however though although yet")
_REFERRING = words("it it's its they they're he he's she she's that that's this his her")
_MARKS = frozenset(",;:—–")
_FRAMES = words("news update question questions favour favor idea surprise thing things word story request")
_EMPTIEST = _FRAMES | words(
    "part parts way ways lot lots bit kind kinds sort sorts stuff piece pieces front back"
)
_REPORTING = words("called rang phoned texted emailed wrote messaged replied answered says said")
_FRAME_WORDS_MAX = 4
# How many parts are tried after the longest beginning of the order.
_TRIES = 40
_STARTS = 6
# The share of the room that statements fill; the best one is kept if it fills less.
_HALF, _BEST = 0.5, 0.4
# A list that fills half of the room replaces a statement that fills less.
_POOR = 0.35
# Longer texts are tried less often.
_MANY = 200
# A core of a larger share of the text is not kept first.
_LONG = 0.4
_ROOM = 1.5


def shortened(present: str, first: str, fits: Fits) -> str:
    """Return statements of a text that fit, or a list if no statement fits or the list fills much more of the room.

    `first` is the first content, of which `present` is left. The result is "" if neither a statement nor a noun fits.
    """
    is_notes = present != first and is_list(present)
    stated = "" if is_notes else select(first, present, fits)
    if stated and _is_filled(stated, fits, _POOR):
        return stated
    listed = notes(present, fits, first)
    is_full = bool(listed) and _is_filled(listed, fits, _HALF)
    if stated:
        return listed if is_full else stated
    asking = not listed or not _is_filled(listed, fits, _BEST)
    other = "" if is_notes or is_full else select(first, present, fits, telling=False, asking=asking)
    if other and _is_filled(other, fits, _HALF):
        return other
    listed = notes(present, fits, first, verbal=True)
    is_short = bool(other) and not _is_filled(other, fits, _POOR)
    return listed or ("" if is_short and len(present) <= _WHOLE_MAX else other)


def select(text: str, present: str, fits: Fits, *, telling: bool = True, asking: bool = False) -> str:
    """Return the statements of `text` that fit and that `present` still contains, or "" if none fits.

    If `telling`, the result does not consist of a statement that names nothing, and unless `asking`, of a question.
    """
    analysis = analyse(text)
    available = _available(analysis, present) if present != text else frozenset(range(len(analysis.parts)))
    if available is None:
        return select(present, present, fits, telling=telling, asking=asking)
    order = [part for part in _order(text) if part in available]
    cores = [part for part in order if analysis.parts[part].parent < 0]
    if telling:
        cores = [core for core in cores if _is_worth_keeping(text, core)]
    else:
        cores = [core for core in cores if not _is_greeting(analysis, core)]
        cores = [
            core for core in cores if asking or not analysis.statements[analysis.parts[core].statement].asks
        ]

    def joined(chosen: Sequence[int]) -> str:
        return render(analysis, chosen, fits)

    best = ""
    beginnings = [-1] if order and order[0] in cores else []
    for core in [*beginnings, *cores[: _STARTS * _MANY // max(_MANY, len(order)) + 1]]:
        chosen = _filled(analysis, order, core, lambda parts: fits(joined(parts)))
        said = joined(chosen) if chosen else ""
        is_best = (
            chosen[0] == order[0] and not _worths(text)[analysis.parts[chosen[0]].statement].is_hollow
            if chosen
            else False
        )
        if said and fits(said) and _is_filled(said, fits, _BEST if is_best else _HALF):
            return said
        best = best or said
    return best


def _is_filled(said: str, fits: Fits, share: float) -> bool:
    """Return whether a text fills this share of the room: a text that much longer does not fit."""
    return not fits(f"{said} {said} {said}"[: int(len(said) / share) + 1])


def _filled(
    analysis: Analysis, order: Sequence[int], core: int, fit: Callable[[Sequence[int]], bool]
) -> list[int]:
    """Return the parts that fit: the longest beginning of the order or a core, and further parts in order."""
    if core < 0:
        found = bisect_left(range(1, len(order) + 1), True, key=lambda count: not fit(order[:count]))
        chosen = list(order[:found])
        while unsound := _unsound(analysis, set(chosen)):
            chosen = [part for part in chosen if analysis.parts[part].statement not in unsound]
    else:
        chosen = [core] if fit([core]) and not _unsound(analysis, {core}) else []
    kept = set(chosen)
    tries = _TRIES * _MANY // max(_MANY, len(order))
    for part in [part for part in order if part not in kept][:tries] if chosen else []:
        if _may_add(analysis, part, kept) and fit([*chosen, part]):
            chosen.append(part)
            kept.add(part)
    return chosen


def _unsound(analysis: Analysis, chosen: set[int]) -> set[int]:
    """Return the chosen statements whose pronoun would refer to the wrong statement."""
    kept = {analysis.parts[part].statement for part in chosen}
    unsound = {number for number in kept if number + 1 not in kept and _is_contrasted(analysis, number)}
    before = -1
    for number in sorted(kept):
        if 0 <= before < analysis.statements[number].refers:
            unsound.add(number)
        else:
            before = number
    return unsound


def _is_contrasted(analysis: Analysis, number: int) -> bool:
    """Return whether a statement is an intention that came to nothing: I was going to sell it, but …"""
    following = analysis.statements[number + 1 : number + 2]
    own = analysis.statements[number]
    if not following or following[0].sentence != own.sentence:
        return False
    if not {normal(analysis.tokens[index].text) for index in following[0].link} & _CONTRASTS:
        return False
    said = " ".join(token.text for token in analysis.tokens[own.begin : own.end])
    return _INTENDING.search(said) is not None


def _may_add(analysis: Analysis, part: int, kept: set[int]) -> bool:
    parent, needs = analysis.parts[part].parent, analysis.statements[analysis.parts[part].statement].needs
    if parent >= 0:
        return parent in kept
    if _unsound(analysis, kept | {part}):
        return False
    return needs < 0 or any(
        analysis.parts[other].parent < 0 and analysis.parts[other].statement == needs for other in kept
    )


# --- what is left ---------------------------------------------------------------------------------------------


def _available(analysis: Analysis, present: str) -> frozenset[int] | None:
    """Return the parts that a shortening still contains; None if it does not consist of parts."""
    wanted = [normal(token.text) for token in tokenize(present) if token.tag != "punct"]
    own = [index for index, token in enumerate(analysis.tokens) if token.tag != "punct"]
    for backwards in (False, True):
        rest = iter(reversed(own) if backwards else own)
        matched: set[int] = set()
        for word in reversed(wanted) if backwards else wanted:
            index = next((index for index in rest if normal(analysis.tokens[index].text) == word), -1)
            if index < 0:
                return None
            matched.add(index)
        kept = _covered(analysis, matched)
        said = render(analysis, kept, lambda said: True)
        if [normal(token.text) for token in tokenize(said) if token.tag != "punct"] == wanted:
            return frozenset(kept)
    return None


def _covered(analysis: Analysis, matched: set[int]) -> set[int]:
    """Return the parts whose words all occur among the matched ones."""
    kept: set[int] = set()
    for number, part in enumerate(analysis.parts):
        statement = analysis.statements[part.statement]
        needed = [index for index in part.tokens if analysis.tokens[index].tag != "punct"]
        if statement.pronoun in needed and statement.pronoun not in matched:
            needed = [index for index in (*statement.name, *needed) if index != statement.pronoun]
        if needed and all(index in matched for index in needed) and (part.parent < 0 or part.parent in kept):
            kept.add(number)
    return kept


# --- order ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _order(text: str) -> tuple[int, ...]:
    """Return the parts in the order in which they are kept, each behind the one that it depends on."""
    analysis = analyse(text)
    places = _places(text, analysis)
    ranks: list[float] = []
    for part in analysis.parts:
        rank = places[part.statement] + part.behind
        ranks.append(rank)
    return tuple(sorted(range(len(ranks)), key=lambda index: (ranks[index], index)))


class _Worth(NamedTuple):
    value: float
    size: int
    is_hollow: bool


@lru_cache(maxsize=64)
def _worths(text: str) -> tuple[_Worth, ...]:
    analysis = analyse(text)
    found = candidates(text)
    sizes = [0] * len(analysis.statements)
    for part in analysis.parts:
        if part.parent < 0:
            sizes[part.statement] = sum(len(analysis.tokens[index].text) + 1 for index in part.tokens)
    frames = _frames(analysis)
    first = _first(text, analysis, frames)
    worths: list[_Worth] = []
    at = 0
    for number, statement in enumerate(analysis.statements):
        end = _span(analysis, statement)[1]
        begin = at
        while at < len(found) and found[at].start < end:
            at += 1
        own = found[begin:at]
        worths.append(_worth(text, analysis, number, own, sizes[number], number == first, number in frames))
    return tuple(worths)


def _span(analysis: Analysis, statement: Statement) -> tuple[int, int]:
    begin = statement.link[0] if statement.link else statement.begin
    return analysis.tokens[begin].start, analysis.tokens[max(begin, statement.end - 1)].end


def _first(text: str, analysis: Analysis, frames: frozenset[int]) -> int:
    """Return the first statement that is no small talk, question or background."""
    first = -1
    for number, statement in enumerate(analysis.statements):
        start, end = _span(analysis, statement)
        leads = (
            statement.asks
            or statement.fragment
            or _BACKGROUND.search(text[start:end]) is not None
            or number in frames
            or is_small_talk(analysis.tokens[statement.begin : statement.end])
        )
        if first < 0 and not leads:
            first = number
        if first >= 0 and number > first:
            if statement.sentence != analysis.statements[first].sentence:
                break
            if _CONCLUDING.match(text, analysis.tokens[statement.begin].start) or _CONCLUDING.match(
                text, start
            ):
                return number
    if first >= 0:
        return first
    return next((number for number, statement in enumerate(analysis.statements) if not statement.asks), 0)


def _frames(analysis: Analysis) -> frozenset[int]:
    """Return the numbers of the statements that only introduce others: there's news, Linda called."""
    cores: dict[int, Part] = {}
    for part in analysis.parts:
        if part.parent < 0:
            cores.setdefault(part.statement, part)
    return frozenset(number for number, core in cores.items() if _is_frame(analysis, number, core))


def _is_frame(analysis: Analysis, number: int, core: Part) -> bool:
    statement = analysis.statements[number]
    inside = [index for index in core.tokens if analysis.tokens[index].tag != "punct"]
    if not inside or statement.fragment or number + 1 == len(analysis.statements):
        return False
    if normal(analysis.tokens[inside[-1]].text) in _REPORTING:
        return len(inside) <= _FRAME_WORDS_MAX
    nouns = {normal(analysis.tokens[index].text) for index in inside if analysis.kinds[index] in _HEADS}
    return (
        bool(nouns) and nouns <= _FRAMES and not holds_negation([analysis.tokens[index] for index in inside])
    )


def _worth(
    text: str,
    analysis: Analysis,
    number: int,
    found: Sequence[Candidate],
    size: int,
    is_first: bool,
    is_frame: bool,
) -> _Worth:
    """Return how much the text depends on a statement: decisions and first statements most, small talk least."""
    statement = analysis.statements[number]
    start, end = _span(analysis, statement)
    own = analysis.tokens[statement.begin : statement.end]
    strong = [c for c in found if c.kind != "weak" and c.weight > 0.6]
    opening = normal(own[0].text) if own else ""
    links = {normal(analysis.tokens[index].text) for index in statement.link} | {
        normal(token.text) for token in analysis.tokens[statement.begin : statement.begin + 1]
    }
    value = (
        0.1 + sum(_KIND_FACTORS.get(c.kind, 1.0) * c.weight for c in found) + 0.005 * min(end - start, 200)
    )
    value *= 0.5 if not strong else 1.0
    value *= 0.6 if opening in _REFERRING else 1.0
    value *= 1.3 if links & _CONTRASTS or holds_negation(own) else 1.0
    worth = 0.12 * min(value, 8.0) + is_first - is_frame
    decides = _DECIDING.search(text, start, end) is not None
    worth += 1.5 * decides
    background = _BACKGROUND.search(text[analysis.tokens[statement.begin].start : end])
    worth -= 1.5 * (background is not None)
    following = analysis.statements[number + 1 : number + 2]
    if links & _CONTRASTS:
        worth += 0.3
    if following and following[0].sentence == statement.sentence:
        contrasted = {normal(analysis.tokens[index].text) for index in following[0].link} & _CONTRASTS
        worth -= (0.3 + (_INTENDING.search(text, start, end) is not None)) * bool(contrasted)
    if statement.asks:
        worth -= 1.0
    if _FIRST_PERSON.match(text, start):
        worth += 0.4
    elif not strong:
        worth -= 0.6
    if statement.fragment:
        worth -= 0.5
    worth -= 2.0 * (is_small_talk(own) or (statement.asks and not strong))
    worth -= 0.6 * (size > _LONG * len(text))
    return _Worth(worth, size, not strong or is_frame)


def _places(text: str, analysis: Analysis) -> list[float]:
    """Return the place of each statement: 0 for the best one."""
    worths = _worths(text)
    numbers = range(len(worths))
    best = max(numbers, key=lambda number: (worths[number].value, -number), default=0)
    density = [worth.value - _ROOM * worth.size / max(1, len(text)) for worth in worths]
    places = [0.0] * len(worths)
    for place, number in enumerate(
        sorted(numbers, key=lambda number: (number != best, -density[number], number))
    ):
        places[number] = float(place)
    for number in numbers:
        needs = analysis.statements[number].needs
        if needs >= 0:
            places[number] = max(places[number], places[needs] + 0.1)
    return places


def _is_worth_keeping(text: str, part: int) -> bool:
    """Return whether a statement says something alone: it names something and is no small talk."""
    analysis = analyse(text)
    statement = analysis.statements[analysis.parts[part].statement]
    worth = _worths(text)[analysis.parts[part].statement]
    return (
        statement.needs < 0
        and not statement.fragment
        and not statement.asks
        and worth.value > -1.7
        and not (worth.is_hollow and worth.size < 12)
    )


def _is_greeting(analysis: Analysis, part: int) -> bool:
    """Return whether a fragment begins with a greeting, congratulations or thanks."""
    statement = analysis.statements[analysis.parts[part].statement]
    return statement.fragment and normal(analysis.tokens[statement.begin].text) in lexicon.OPENERS


# --- text -----------------------------------------------------------------------------------------------------


def render(analysis: Analysis, chosen: Iterable[int], fits: Fits) -> str:
    """Return the text of some parts. The mark that closes a sentence is kept at the end if it fits."""
    tokens = analysis.tokens
    own: dict[int, list[int]] = {}
    for number in chosen:
        part = analysis.parts[number]
        own.setdefault(part.statement, []).extend(part.tokens)
    pieces: list[str] = []
    last = final = -1
    for number in sorted(own):
        statement = analysis.statements[number]
        indices = sorted(own[number])
        if last >= 0:
            pieces.append(_separator(analysis, last, number))
        if statement.pronoun in indices and number - 1 not in own:
            pieces.append(_text(tokens, statement.name) + " ")
            indices.remove(statement.pronoun)
        pieces.append(_text(tokens, indices))
        last, final = number, indices[-1] if indices else -1
    said = "".join(pieces).rstrip(" ,;:—–-")
    mark = analysis.closing[analysis.statements[last].sentence] if last >= 0 else -1
    if mark < 0:
        return said
    closed = said + tokens[mark].text
    return closed if analysis.statements[last].asks or (final == mark - 1 and fits(closed)) else said


def _separator(analysis: Analysis, last: int, number: int) -> str:
    """Return what separates two statements: the end of the sentence, the words that link them, or a semicolon."""
    tokens, before, statement = analysis.tokens, analysis.statements[last], analysis.statements[number]
    if before.sentence != statement.sentence:
        mark = (
            tokens[analysis.closing[before.sentence]].text if analysis.closing[before.sentence] >= 0 else "."
        )
        return (mark if before.asks or mark[0] != "?" else ".") + " "
    if last < number - 1 or not statement.link:
        return "; "
    mark = tokens[statement.link[0]].text
    linked = _text(tokens, statement.link)
    return (mark if mark in _MARKS else "") + (f" {linked}" if linked else "") + " "


def _text(tokens: Sequence[Token], indices: Sequence[int]) -> str:
    """Join tokens. White space between two of them is one space, and words that were apart are separated."""
    pieces: list[str] = []
    last = -1
    for index in indices:
        token = tokens[index]
        if last < 0:
            if token.text in _MARKS:
                continue
        elif index > last + 1 and token.tag == "punct" and token.text not in "$€£¥#@(\"“'‘":
            pieces.append(" " if token.text in "—–-" else "")
        elif index > last + 1 or token.start > tokens[last].end:
            pieces.append(" ")
        pieces.append(token.text)
        last = index
    return "".join(pieces)


# --- notes ----------------------------------------------------------------------------------------------------


class _Note(NamedTuple):
    """The spans of tokens by which something can be named, the longest first, and how telling it is.

    `parts` are used where no whole name fits.
    """

    forms: tuple[tuple[int, int], ...]
    parts: tuple[tuple[int, int], ...]
    weight: float


_RUN = words("noun name code time num adj mod")
_HEADS = words("noun name code time num")
_NO_NOTES = lexicon.VAGUE_NOUNS | lexicon.FUNCTION_WORDS | lexicon.EMPTY_WORDS
_WORD_MAX = 24
# The longest text that stays as it is if none of its parts says something.
_WHOLE_MAX = 48
_NO_WORDS = lexicon.FUNCTION_WORDS | lexicon.EMPTY_WORDS | word_list("english_no_words")
_TITLES = word_list("english_titles")
_ORDINAL = re.compile(r"\d{1,3}(?:st|nd|rd|th)")
# A number that says something alone: an amount, a time, a date or a decimal.
_EXACT = re.compile(r"[$€£%]|\d[.,:/-]\d|\d{4}")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_LONG_NUMBER = re.compile(r"\d{3}|\d[.,]\d")
# A note of nearly the same weight is preferred if it fills the room.
_NEGATING = words("no not without never nor")
_EXCEPTING = words("except but unless until till besides if")
_ORDERING = words("first second third last next")
_PARTICLES = words("up off out on in down over away back")
_COUNT = re.compile(
    r"\d[\d.,]*(?:st|nd|rd|th)?|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|one|two|three|four|five|six|seven|eight|nine|ten"
)
_NEGATED, _DENIED, _VAGUE = 0.01, 0.005, 0.25
_NEARLY = 0.6
# How much more the nouns of the best statement weigh, and the first of them.
_STATED, _SUBJECT = 0.5, 0.5
_PHRASE_MAX = 7


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
    nouns = sorted(_notes(text, analysis, first), key=lambda note: (-note.weight, note.forms[0]))[:_TRIES]
    # Denied and addressed nouns are notes only if there is no other: in a list, "no" would seem to deny all.
    denied = [note for note in nouns if note.weight == _DENIED]
    nouns = [note for note in nouns if note.weight > _NEGATED] or nouns[:1]
    nouns = [note for note in nouns if not _is_empty(analysis, note)] or nouns

    def joined(spans: Sequence[tuple[int, int]]) -> str:
        return ", ".join(_phrase(analysis.tokens, text, begin, end) for begin, end in sorted(spans))

    def fit(spans: Sequence[tuple[int, int]]) -> bool:
        return fits(joined(spans))

    def is_half_full(spans: Sequence[tuple[int, int]]) -> bool:
        return bool(spans) and _is_filled(joined(spans), fits, _HALF)

    chosen: list[tuple[int, int]] = []
    for number, note in enumerate(nouns[:_STARTS]):
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


def _is_empty(analysis: Analysis, note: _Note) -> bool:
    """Return whether a note is one of the emptiest words: news."""
    return _is_single(analysis, note) and normal(analysis.tokens[note.forms[0][0]].text) in _EMPTIEST


def _is_single(analysis: Analysis, note: _Note) -> bool:
    """Return whether a note is one common noun."""
    begin, end = note.forms[0]
    return end == begin + 1 and analysis.kinds[begin] == "noun"


def _with_determiners(
    analysis: Analysis, chosen: Sequence[tuple[int, int]], fit: Callable[[Sequence[tuple[int, int]]], bool]
) -> list[tuple[int, int]]:
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
    named: Sequence[Sequence[tuple[int, int]]],
    chosen: Sequence[tuple[int, int]],
    fit: Callable[[Sequence[tuple[int, int]]], bool],
) -> list[tuple[int, int]]:
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
    return analysis.kinds[index] == "adj" and not _RUN.intersection(behind)


def _is_telling(analysis: Analysis, index: int) -> bool:
    word = normal(analysis.tokens[index].text)
    if index and analysis.kinds[index - 1] == "num":
        return False
    if analysis.kinds[index] == "verb" and any(
        normal(token.text) in _PARTICLES for token in analysis.tokens[index + 1 : index + 2]
    ):
        return False
    return len(word) > 3 and word.isalpha() and word not in _NO_WORDS


def _repeats(analysis: Analysis, chosen: Sequence[tuple[int, int]], form: tuple[int, int]) -> bool:
    """Return whether a span overlaps a chosen one or has no word of its own."""
    if any(begin < form[1] and form[0] < end for begin, end in chosen):
        return True
    said = {normal(analysis.tokens[i].text) for begin, end in chosen for i in range(begin, end)}
    return all(normal(analysis.tokens[i].text) in said for i in range(*form))


def _phrase(tokens: Sequence[Token], text: str, begin: int, end: int) -> str:
    said = " ".join(text[tokens[begin].start : tokens[end - 1].end].split())
    return said[:-2] if said.endswith(("'s", "’s")) else said


@lru_cache(maxsize=64)
def _weights(text: str) -> dict[str, float]:
    """Return the weight of each word of the noun phrases of a text. Those of the best statement count more."""
    weights: dict[str, float] = {}
    analysis = analyse(text)
    places = _places(text, analysis)
    best = min(range(len(places)), key=places.__getitem__, default=-1)
    begin, end = _span(analysis, analysis.statements[best]) if best >= 0 else (0, 0)
    subject = _SUBJECT
    for candidate in candidates(text):
        if candidate.kind != "weak":
            weight = candidate.weight
            if normal(candidate.text) in _FRAMES:
                weight = _VAGUE
            elif begin <= candidate.start < end:
                weight += _STATED + subject
                subject = 0.0
            for token in tokenize(candidate.text):
                word = normal(token.text)
                weights[word] = max(weights.get(word, 0.0), weight)
    return weights


def _called(text: str) -> frozenset[str]:
    """Return the first words of the names that a text only addresses."""
    return frozenset(
        normal(candidate.text.split(" ")[0])
        for candidate in candidates(text)
        if candidate.kind == "weak" and candidate.weight == CALLED_NAME
    )


def _notes(text: str, analysis: Analysis, first: str = "") -> Iterator[_Note]:
    """Yield the noun phrases of a text that say something alone."""
    tokens, kinds = analysis.tokens, analysis.kinds
    found = candidates(text)
    weights, called = _weights(first or text), _called(first or text)
    at = index = 0
    while index < len(tokens):
        begin = index
        if _is_named_clause(analysis, index):
            span = (index, index + 1)
            yield _Note((span,), (), weights.get(normal(tokens[index].text)[:-2], _VAGUE))
        if kinds[index] not in _RUN:
            index += 1
            continue
        while index < len(tokens) and (kinds[index] in _RUN or _is_inner(tokens, index)):
            index += 1
            if normal(tokens[index - 1].text).removesuffix("s") in lexicon.WEEKDAYS:
                break
            counts = index < len(tokens) and kinds[index] == "num" and not _is_year(analysis, index)
            if counts and (tokens[index].text.isalpha() or _LONG_NUMBER.search(tokens[index].text)):
                break
        end = index
        while end > begin and kinds[end - 1] not in _HEADS:
            end -= 1
        while at < len(found) and found[at].end <= tokens[begin].start:
            at += 1
        if end <= begin:
            continue
        inside = []
        while at < len(found) and found[at].start < tokens[end - 1].end:
            inside.append(found[at])
            at += 1
        strong = [c for c in inside if c.kind != "weak"]
        said = tokens[begin : _of_end(analysis, end)]
        weight = max((weights.get(normal(token.text), _VAGUE) for token in said), default=_VAGUE)
        if begin + 1 < end and kinds[begin + 1] == "name" and normal(tokens[begin].text) in lexicon.PERSONS:
            begin += 1
        if begin and normal(tokens[begin - 1].text) in _ORDERING:
            begin -= 1
        begin = _described_from(analysis, begin)
        forms, parts = _forms(analysis, begin, end, strong)
        negated = _negated_from(analysis, begin)
        if negated < begin:
            ends = [_excepted_end(analysis, form[1]) for form in forms if form[0] == begin]
            forms, parts = tuple((negated, stop) for stop in ends if stop - negated <= _PHRASE_MAX), ()
            weight = _DENIED
        if normal(tokens[begin].text) in called and (begin < 2 or kinds[begin - 2] != "name"):
            weight = _NEGATED
        if forms:
            yield _Note(forms, parts, weight)


def _is_year(analysis: Analysis, index: int) -> bool:
    """Return whether a year follows a name: Herb & Vi 1971."""
    return (
        index > 0
        and analysis.kinds[index - 1] == "name"
        and _YEAR.fullmatch(analysis.tokens[index].text) is not None
    )


def _is_named_clause(analysis: Analysis, index: int) -> bool:
    """Return whether a word is a noun with its verb (Tyler's off)."""
    word = normal(analysis.tokens[index].text)
    if analysis.kinds[index] != "clause" or not word.endswith("'s"):
        return False
    return word[:-2] not in lexicon.FUNCTION_WORDS and word not in lexicon.PRONOUNS | lexicon.SUBJECTS


def _described_from(analysis: Analysis, begin: int) -> int:
    """Return where `allergic to` begins in `I'm allergic to peanuts`, or `begin`."""
    tokens, kinds = analysis.tokens, analysis.kinds
    at = begin - 1
    while at > 0 and (kinds[at] == "det" or normal(tokens[at].text) in lexicon.POSSESSIVES):
        at -= 1
    adjective = at - 1
    if (
        adjective < 1
        or kinds[at] not in ("to", "prep")
        or kinds[adjective] not in ("adj", "noun", "mod", "verb")
    ):
        return begin
    if normal(tokens[adjective].text).endswith("ing"):
        return begin
    before = adjective - 1
    while before > 0 and kinds[before] == "adv":
        before -= 1
    subject = normal(tokens[before - 1].text) if before else ""
    own = normal(tokens[before].text) in ("i'm", "im") or (
        subject == "i" and normal(tokens[before].text) in ("am", "was")
    )
    return adjective if own else begin


def _negated_from(analysis: Analysis, begin: int) -> int:
    """Return where `no more` begins before a noun, or `begin`."""
    for index in range(begin - 1, max(-1, begin - 5), -1):
        word = normal(analysis.tokens[index].text)
        if word in _NEGATING:
            follows = analysis.kinds[index + 1] != "prep"
            return index if follows or not index or analysis.kinds[index - 1] == "break" else begin
        if analysis.kinds[index] not in ("det", "adv", "prep") and word not in lexicon.POSSESSIVES:
            break
    return begin


def _excepted_end(analysis: Analysis, end: int) -> int:
    """Return the end of an exception behind a denied noun (no fear except of the dark), or `end`."""
    tokens = analysis.tokens
    if end >= len(tokens) or normal(tokens[end].text) not in _EXCEPTING:
        return end
    stop = end + 1
    while stop < len(tokens) and tokens[stop].tag != "punct":
        stop += 1
    return stop


def _is_inner(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a mark is part of a name or a number (Mrs. Probert, $28, 7-11), or `to` of a range."""
    if normal(tokens[index].text) == "to" and 0 < index < len(tokens) - 1:
        return bool(_COUNT.fullmatch(tokens[index - 1].text) and _COUNT.match(tokens[index + 1].text))
    return (
        tokens[index].tag == "punct"
        and tokens[index].text in ".$€£%&/-"
        and 0 < index < len(tokens) - 1
        and (tokens[index - 1].text in _TITLES or tokens[index].text in "&/-")
        and tokens[index + 1].tag != "punct"
    )


def _forms(
    analysis: Analysis, begin: int, end: int, strong: Sequence[Candidate]
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Return the spans by which a noun phrase can be named, the longest first, and parts of it."""
    tokens, kinds = analysis.tokens, analysis.kinds
    head = begin
    for index in range(begin, end):
        if kinds[index] in ("to", "prep", "det"):
            head = index + 1
    forms = [(begin, _of_end(analysis, end)), (begin, end), (head, end)]
    if _is_year(analysis, end - 1):
        forms.append((head, end - 1))
    while head < end - 1 and kinds[head] in ("adj", "mod"):
        head += 1
        forms.append((head, end))
    parts: list[tuple[int, int]] = []
    for candidate in sorted(strong, key=lambda c: -c.weight):
        inside = [
            i
            for i in range(begin, end)
            if tokens[i].start < candidate.end and candidate.start < tokens[i].end
        ]
        if inside and not any(char.isdigit() for i in range(begin, end) for char in tokens[i].text):
            parts.append((inside[0], inside[-1] + 1))
    if kinds[end - 1] in ("noun", "name") and kinds[begin] != "num":
        parts.append((end - 1, end))
    if kinds[head] == "name" and tokens[head].text[0].isupper():
        parts.append((head, head + 1))
    return (
        tuple(dict.fromkeys(form for form in forms if _says_something(analysis, *form))),
        tuple(dict.fromkeys(part for part in parts if _says_something(analysis, *part))),
    )


def _of_end(analysis: Analysis, end: int) -> int:
    """Return the end of `of …` behind a noun, or `end`."""
    tokens, kinds = analysis.tokens, analysis.kinds
    if end >= len(tokens) or normal(tokens[end].text) != "of":
        return end
    at = end + 1
    while at < len(tokens) and (kinds[at] == "det" or normal(tokens[at].text) in lexicon.POSSESSIVES):
        at += 1
    stop = at
    while stop < len(tokens) and kinds[stop] in _RUN:
        stop += 1
    while stop > at and kinds[stop - 1] not in _HEADS:
        stop -= 1
    return stop if stop > at else end


def _says_something(analysis: Analysis, begin: int, end: int) -> bool:
    """Return whether a noun phrase names something, and is no title, number or vague noun alone."""
    if begin >= end or end - begin > _PHRASE_MAX:
        return False
    tokens, kinds = analysis.tokens, analysis.kinds
    for index in range(begin, end):
        token = tokens[index]
        word = normal(token.text).removesuffix("'s")
        if _ORDINAL.fullmatch(word) or kinds[index] == "num":
            counted = index + 1 < end and kinds[index + 1] in _HEADS
            if counted or (_EXACT.search(token.text) and not _has_unit(analysis, index, end)):
                return True
        elif kinds[index] in ("name", "time"):
            if token.text not in _TITLES and len(word) > 1:
                return True
        elif kinds[index] in _HEADS and word not in _NO_NOTES and len(word) > 1:
            return True
    return False


def _has_unit(analysis: Analysis, index: int, end: int) -> bool:
    """Return whether a noun that follows the phrase says what a number counts."""
    tokens = analysis.tokens
    return index + 1 == end < len(tokens) and tokens[end].tag == "word" and analysis.kinds[end] in _RUN


def shortest(text: str, fits: Fits) -> str:
    """Return what is left of a text of which no statement and no noun phrase fits.

    The result is the verbs and adjectives that fit, otherwise the shortest noun phrase or a short statement as a whole,
    which do not fit. It is "" for a long text without a noun.
    """
    analysis = analyse(text[:READ_MAX])

    def said_of(spans: Sequence[tuple[int, int]]) -> str:
        return ", ".join(_phrase(analysis.tokens, text, *span) for span in sorted(spans))

    named = [span for note in _notes(text, analysis) for span in (*note.forms, *note.parts)]
    if not named:
        single = [((index, index + 1),) for index in _words(analysis, only=True)]
        chosen = _fitting(analysis, single, [], lambda spans: fits(said_of(spans)))
        if chosen:
            return said_of(chosen)
    said = min((_phrase(analysis.tokens, text, *span) for span in named), key=len, default="")
    if 0 < len(said) <= _WORD_MAX:
        return said
    return text if len(text) <= _WHOLE_MAX else ""
