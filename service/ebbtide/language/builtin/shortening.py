"""Shorten a text with its own words, in their order.

The words of the first content are ranked once. A shortening is the longest beginning of this order that fits, so each
one takes its words from the one before. A negation is never dropped from its clause, and a condition stays with its
consequence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.levels import PREDICATE, Word
from ebbtide.language.builtin.ranking import Ranking, ranked
from ebbtide.language.builtin.scripts import cluster_cut, has_word, is_dense
from ebbtide.language.builtin.tokens import Token, tokenize
from ebbtide.language.builtin.trimming import trim, trim_end, without_dangling_words, without_end_mark

_SENTENCE_ENDS = "。！？!?."


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
    if not source or longest_beginning(source, _within(len(body))) != body:
        source = body
    return longest_beginning(source, _within(target)) or _cut_hard(body or text, target)


def longest_beginning(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest beginning of the ranked words of a text that fits, or ""."""
    if fits(text):
        return text
    ranking = ranked(text)
    count = bisect_left(
        ranking.lengths, True, key=lambda length: not fits(_joined(text, ranking, length, fits))
    )
    result = _joined(text, ranking, ranking.lengths[count - 1], fits) if count else ""
    return result if _names_something(result) else ""


def _names_something(text: str) -> bool:
    """Return whether a text has more than one word, or a word that is no pronoun, article or auxiliary."""
    if not has_word(text):
        return False
    tokens = [token for token in tokenize(text[:40]) if token.tag != "punct"]
    return len(tokens) != 1 or not _says_nothing(tokens[0])


def _says_nothing(token: Token) -> bool:
    word = normal(token.text)
    return word in words_english.EMPTY_WORDS or word in words_chinese.PRONOUNS


def _within(target: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= target


def _joined(text: str, ranking: Ranking, count: int, fits: Callable[[str], bool]) -> str:
    """Join the first words of the ranking in the order of the text, and repair the punctuation between them.

    The mark that closes a sentence is kept if it fits.
    """
    kept = sorted(ranking.order[:count])
    while len(kept) > 1 and _dangles(text, ranking.words[kept[-1]].token):
        kept.pop()
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
        ended = "".join([*pieces, closing if closing in _SENTENCE_ENDS and not is_list else ""])
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
    """Cut a text without a beginning that fits: to its best noun, its first word, or characters."""
    fitting = [c for c in candidates(body) if len(c.text) <= target and has_word(c.text)]
    if fitting:
        return max(fitting, key=lambda c: (c.kind != "weak", c.weight, -c.start)).text
    for token in tokenize(body[:2000]):
        if token.end - token.start <= target and has_word(token.text):
            return token.text
    piece = body[: cluster_cut(body, 0, min(target, len(body)))]
    return without_end_mark(piece) or trim(piece) or piece
