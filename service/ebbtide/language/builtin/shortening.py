"""Shorten a text with its own words, in their order.

The words of the first content are ranked once. A shortening is the longest beginning of this order that fits, so each
one takes its words from the one before. A negation is never dropped from its clause, and a condition stays with its
consequence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from ebbtide.language.builtin import english_shortening as english
from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.candidates import READ_MAX, candidates
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.levels import DETAIL, PREDICATE, Word
from ebbtide.language.builtin.ranking import Ranking, ranked
from ebbtide.language.builtin.scripts import HAN, HANGUL, KANA, cluster_cut, has_word, is_dense
from ebbtide.language.builtin.tokens import Token, tokenize
from ebbtide.language.builtin.trimming import trim, trim_end, without_dangling_words, without_end_mark
from ebbtide.language.builtin.word_lists import word_list

_FOREIGN = re.compile(f"[{HAN}{KANA}{HANGUL}]")
_SENTENCE_ENDS = "。！？!?."
_REPORTS = word_list("reporting_ends")
_SAYING = frozenset('：:，,“"')
_REPORT_WORDS = 3


def shorten(text: str, target: int, first: str = "") -> str:
    """Return `text` in at most `target` characters.

    `first` is the first content of the memory. If `text` is a shortening of it, the ranking of `first` decides;
    otherwise that of `text`.
    """
    if target <= 0:
        return ""
    if len(text) <= target:
        return text
    body = text.strip()
    source = first.strip()
    if is_english(source or body):
        said = english.shortened(body, source or body, _within(target)) or english.shortest(body)
        return said or _cut_hard(body or text, target)
    if not source or longest_beginning(source, _within(len(body))) != body:
        source = body
    shortened = longest_beginning(source, _within(target))
    if source != body and not _is_taken_from(shortened, body):
        shortened = longest_beginning(body, _within(target))
    return shortened or _cut_hard(body or text, target)


def is_english(text: str) -> bool:
    """Return whether a text has letters, but none of Chinese, Japanese or Korean."""
    return _FOREIGN.search(text) is None and has_word(text)


def _is_taken_from(part: str, whole: str) -> bool:
    """Return whether the words of a shortening occur in a text in this order."""
    rest = iter([token.text for token in tokenize(whole)])
    return all(token.text in rest for token in tokenize(part) if token.tag != "punct")


def longest_beginning(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest beginning of the ranked words of a text that fits, or ""."""
    if fits(text):
        return text
    if is_english(text):
        return english.shortened(text, text, fits)
    ranking = ranked(text)

    def joined(count: int) -> str:
        return _joined(text, ranking, sorted(ranking.order[:count]), fits)

    found = bisect_left(ranking.lengths, True, key=lambda count: not fits(joined(count)))
    count = ranking.lengths[found - 1] if found else 0
    result = joined(count)
    return result if _names_something(result) else ""


def _names_something(text: str) -> bool:
    """Return whether a text has more than one word, or a word that is no function word, verb or adjective."""
    if not has_word(text):
        return False
    tokens = [token for token in tokenize(text[:40]) if token.tag != "punct"]
    return len(tokens) != 1 or not _says_nothing(tokens[0])


def _says_nothing(token: Token) -> bool:
    word = normal(token.text)
    if token.text.isdigit() or word in words_english.EMPTY_WORDS or word in words_chinese.PRONOUNS:
        return True
    return token.text.islower() and (
        word in words_english.VERBS or word in words_english.ADJECTIVES or word in words_english.ADVERBS
    )


def _within(target: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= target


def _joined(text: str, ranking: Ranking, kept: list[int], fits: Callable[[str], bool]) -> str:
    """Join words in the order of the text, and repair the punctuation between them.

    The mark that closes a sentence is kept if it fits.
    """
    while len(kept) > 1 and _dangles(text, ranking.words[kept[-1]].token):
        kept.pop()
    kept = _without_lone_words(ranking, _without_empty_report(text, ranking, kept))
    dense = is_dense(text[:400])
    pieces: list[str] = []
    complete: dict[int, bool] = {}
    is_list = False
    for index in kept:
        word = ranking.words[index]
        complete[word.unit] = complete.get(word.unit, False) or word.level == PREDICATE
    for index, after in pairwise(kept):
        word, following = ranking.words[index], ranking.words[after]
        pieces.append(word.token.text)
        gap = text[word.token.end : following.token.start]
        if after == index + 1:
            pieces.append(gap)
        elif word.unit == following.unit:
            dropped = ranking.words[index + 1 : after]
            listed = any(other.level == PREDICATE for other in dropped)
            is_list = is_list or listed
            pieces.append(
                ("、" if dense else ", ")
                if listed
                else _inner_mark(gap, dense and not _are_latin(word, following))
            )
        elif not complete[word.unit] and ranking.units[following.unit].host == word.unit:
            pieces.append("" if dense else " ")
        else:
            pieces.append(_outer_mark(gap, dense))
    if kept:
        pieces.append(ranking.words[kept[-1]].token.text)
        end = ranking.words[kept[-1]].token.end
        closing = text[end : end + 1]
        ended = "".join(
            [*pieces, closing if closing in _SENTENCE_ENDS and not is_list and len(kept) > 1 else ""]
        )
        if fits(ended):
            return without_dangling_words(trim_end(ended))
    return without_dangling_words(trim_end("".join(pieces)))


def _dangles(text: str, token: Token) -> bool:
    """Return whether a word cannot end a text from which the following words were dropped."""
    after = text[token.end : token.end + 12].strip()
    if not after or not after[0].isalnum():
        return False
    word = normal(token.text)
    if word in words_english.PREPOSITIONS and after.split(" ")[0].casefold() in words_english.PREPOSITIONS:
        # The particle of a verb: the passport runs out on Friday.
        return False
    return token.text in words_chinese.NO_END or word in words_english.NO_END


def _without_lone_words(ranking: Ranking, kept: list[int]) -> list[int]:
    """Drop what is left of later clauses that lost their predicate, or all words but one."""
    if not kept:
        return kept
    best = ranking.words[ranking.order[0]].unit
    sizes = Counter(word.unit for word in ranking.words if word.level <= DETAIL)
    predicates = {word.unit for word in ranking.words if word.level == PREDICATE}
    counts = Counter(ranking.words[index].unit for index in kept)
    stated = {ranking.words[index].unit for index in kept if ranking.words[index].level == PREDICATE}
    whole = {best} | {unit for unit in counts if unit in stated or unit not in predicates}
    whole = {unit for unit in whole if unit == best or counts[unit] > 1 or sizes[unit] == 1}
    whole |= {ranking.units[unit].host for unit in whole}
    return [index for index in kept if ranking.words[index].unit in whole]


def _without_empty_report(text: str, ranking: Ranking, kept: list[int]) -> list[int]:
    """Drop a last clause that names only the speaker of a report (他说：)."""
    last = ranking.words[kept[-1]] if kept else None
    if (
        last is None
        or normal(last.token.text) not in _REPORTS
        or text[last.token.end : last.token.end + 1] not in _SAYING
    ):
        return kept
    own = [
        index
        for index in kept
        if (ranking.words[index].unit, ranking.words[index].part) == (last.unit, last.part)
    ]
    return kept[: -len(own)] if len(own) < len(kept) and len(own) <= _REPORT_WORDS else kept


def _inner_mark(gap: str, dense: bool) -> str:
    """Return what separates two words of one clause whose modifiers between them were dropped."""
    if any(mark in gap for mark in "，,；;：:、"):
        return "，" if dense else ", "
    return "" if dense else " "


def _are_latin(word: Word, following: Word) -> bool:
    return word.token.text[-1].isascii() and following.token.text[0].isascii()


def _outer_mark(gap: str, dense: bool) -> str:
    """Return what separates two clauses: the end of the sentence between them, otherwise a comma."""
    end = next((mark for mark in gap if mark in _SENTENCE_ENDS), "")
    if end:
        return end if dense else f"{end} "
    return "，" if dense else ", "


def _cut_hard(body: str, target: int) -> str:
    """Cut a text without a beginning that fits: to its best noun, else behind the last word that fits."""
    fitting = [c for c in candidates(body) if len(c.text) <= target and has_word(c.text) and c.kind != "weak"]
    if fitting:
        return max(fitting, key=lambda c: (c.weight, -c.start)).text
    names = [(c.start, c.end) for c in candidates(body) if c.kind != "weak"]
    words = [token for token in tokenize(body[:READ_MAX]) if 1 < len(token.text) <= target]
    part = next(
        (token for token in words if any(a <= token.start and token.end <= b for a, b in names)), None
    )
    if part is not None and not _says_nothing(part):
        return part.text
    tokens = [token for token in tokenize(body[: target + 1]) if token.end <= target]
    whole = list(tokens)
    while len(tokens) > 1 and normal(tokens[-1].text) in words_english.NO_END:
        tokens.pop()
    tokens = whole if len(tokens) == 1 and _says_nothing(tokens[0]) else tokens
    end = tokens[-1].end if tokens else cluster_cut(body, 0, min(target, len(body)))
    piece = body[:end]
    return without_end_mark(piece) or trim(piece) or piece
