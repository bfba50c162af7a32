"""Shorten an English text: whole statements while one fits, otherwise a list of names and noun phrases.

The parts of the first content are ranked once. A shortening takes them from what is left, in rank order, as far as they
fit. No word is cut, and a subject is never left out while its verb is kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.english_notes import (
    HALF,
    STARTS,
    TRIES,
    WHOLE_MAX,
    Fits,
    is_filled,
    is_list,
    notes,
)
from ebbtide.language.builtin.english_ranking import (
    is_dropped_intention,
    is_worth_keeping,
    order_of,
    worths_of,
)
from ebbtide.language.builtin.english_statements import Analysis, analyse
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.tokens import Token, tokenize

_MARKS = frozenset(",;:—–")
# The best statement is kept if it fills this share of the room.
_BEST = 0.4
# A list that fills half of the room replaces a statement that fills less.
_POOR = 0.35
# Longer texts are tried less often.
_MANY = 200


def shortened(present: str, first: str, fits: Fits) -> str:
    """Return statements of a text that fit, or a list if no statement fits or the list fills much more of the room.

    `first` is the first content, of which `present` is left. The result is "" if neither a statement nor a noun fits.
    """
    is_notes = present != first and is_list(present)
    stated = "" if is_notes else select(first, present, fits)
    if stated and is_filled(stated, fits, _POOR):
        return stated
    listed = notes(present, fits, first)
    is_full = bool(listed) and is_filled(listed, fits, HALF)
    if stated:
        return listed if is_full else stated
    asking = not listed or not is_filled(listed, fits, _BEST)
    other = "" if is_notes or is_full else select(first, present, fits, telling=False, asking=asking)
    if other and is_filled(other, fits, HALF):
        return other
    listed = notes(present, fits, first, verbal=True)
    is_short = bool(other) and not is_filled(other, fits, _POOR)
    return listed or ("" if is_short and len(present) <= WHOLE_MAX else other)


def select(text: str, present: str, fits: Fits, *, telling: bool = True, asking: bool = False) -> str:
    """Return the statements of `text` that fit and that `present` still contains, or "" if none fits.

    If `telling`, the result does not consist of a statement that names nothing, and unless `asking`, of a question.
    """
    analysis = analyse(text)
    available = _available(analysis, present) if present != text else frozenset(range(len(analysis.parts)))
    if available is None:
        return select(present, present, fits, telling=telling, asking=asking)

    def is_eligible(number: int) -> bool:
        if telling:
            return is_worth_keeping(text, number)
        return not _is_greeting(analysis, number) and (asking or not analysis.statements[number].asks)

    def joined(chosen: Sequence[int]) -> str:
        return render(analysis, chosen, fits)

    order = [part for part in order_of(text) if part in available]
    cores = [part for part in order if analysis.parts[part].parent < 0]
    cores = [core for core in cores if is_eligible(analysis.parts[core].statement)]
    best = ""
    beginnings = [-1] if order and order[0] in cores else []
    for core in [*beginnings, *cores[: STARTS * _MANY // max(_MANY, len(order)) + 1]]:
        chosen = _filled(analysis, order, core, lambda parts: fits(joined(parts)))
        if not chosen:
            continue
        said = joined(chosen)
        is_best = chosen[0] == order[0] and not worths_of(text)[analysis.parts[order[0]].statement].is_hollow
        if said and fits(said) and is_filled(said, fits, _BEST if is_best else HALF):
            return said
        best = best or said
    return best


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
    tries = TRIES * _MANY // max(_MANY, len(order))
    for part in [part for part in order if part not in kept][:tries] if chosen else []:
        if _may_add(analysis, part, kept) and fit([*chosen, part]):
            chosen.append(part)
            kept.add(part)
    return chosen


def _unsound(analysis: Analysis, chosen: set[int]) -> set[int]:
    """Return the chosen statements that say something else without those that are not chosen.

    These are dropped intentions without the contrast, and statements whose pronoun would refer to the wrong statement.
    """
    kept = sorted({analysis.parts[part].statement for part in chosen})
    unsound: set[int] = set()
    following = -1
    for number in reversed(kept):
        if following != number + 1 and is_dropped_intention(analysis, number):
            unsound.add(number)
        else:
            following = number
    before = -1
    for number in kept:
        if 0 <= before < analysis.statements[number].refers:
            unsound.add(number)
        else:
            before = number
    return unsound


def _may_add(analysis: Analysis, part: int, kept: set[int]) -> bool:
    """Return whether a part or statement can join those that are kept: what it depends on is kept."""
    parent, needs = analysis.parts[part].parent, analysis.statements[analysis.parts[part].statement].needs
    if parent >= 0:
        return parent in kept
    if _unsound(analysis, kept | {part}):
        return False
    return needs < 0 or any(
        analysis.parts[other].parent < 0 and analysis.parts[other].statement == needs for other in kept
    )


def _available(analysis: Analysis, present: str) -> frozenset[int] | None:
    """Return the parts that a shortening still contains; None if it does not consist of parts."""
    required = [normal(token.text) for token in tokenize(present) if token.tag != "punct"]
    own = [index for index, token in enumerate(analysis.tokens) if token.tag != "punct"]
    for backwards in (False, True):
        rest = iter(reversed(own) if backwards else own)
        matched: set[int] = set()
        for word in reversed(required) if backwards else required:
            index = next((index for index in rest if normal(analysis.tokens[index].text) == word), -1)
            if index < 0:
                return None
            matched.add(index)
        kept = _covered(analysis, matched)
        said = render(analysis, kept, lambda said: True)
        if [normal(token.text) for token in tokenize(said) if token.tag != "punct"] == required:
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


def _is_greeting(analysis: Analysis, number: int) -> bool:
    """Return whether a fragment begins with a greeting, congratulations or thanks."""
    statement = analysis.statements[number]
    return statement.fragment and normal(analysis.tokens[statement.begin].text) in lexicon.OPENERS


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
