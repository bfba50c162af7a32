"""Find the best excerpt of a clause that is too long.

An excerpt never begins or ends inside a word or noun phrase, and never omits a negation of its clause: "does not ship
on Monday" must not become "ship on Monday".
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.tokens import Candidate, Token
from ebbtide.language.builtin.word_lists import words

# An English excerpt never begins with these, because they depend on the preceding words.
_NEVER_FIRST = (
    words_english.PREPOSITIONS
    | words_english.CONJUNCTIONS
    | words_english.AUXILIARIES
    | words_english.ADVERBS
    | frozenset(("me", "him", "us", "them", "to", "what", "which", "who", "whose"))
)
_CONDITION_WORDS = words("if unless until 如果 要是 除非 假如 倘若 万一 只要 只有")
_NEAR = words("the a an this these those to")
# Words that begin like a negation but are not one.
_POSITIVE = words(
    "不错 不过 不仅 不但 不断 不久 不管 不论 不如 不妨 不禁 不愧 不同 没错 没事 "
    "未来 无论 无数 无比 无线 差不多"
)
# A clause is never longer; reading on would only take time.
_TOKENS_MAX = 160


def is_negation(token: Token) -> bool:
    """Return whether a word negates its clause."""
    text = token.text.replace("’", "'").casefold()
    if text in words_chinese.NEGATIONS or text in words_english.NEGATIONS:
        return True
    return text[0] in "不没未" and text not in _POSITIVE and token.tag not in ("punct", "word")


def holds_negation(tokens: Sequence[Token]) -> bool:
    """Return whether any of the words is a negation."""
    return any(is_negation(token) for token in tokens)


def is_condition_word(token: Token) -> bool:
    """Return whether a word introduces a condition."""
    return token.text.casefold() in _CONDITION_WORDS


def is_verb(token: Token) -> bool:
    """Return whether a word can be the verb of a statement."""
    if token.tag == "word":
        lower = token.text.replace("’", "'").casefold()
        return (
            lower in words_english.VERBS
            or lower in words_english.AUXILIARIES
            or ("'" in lower and lower in words_english.SUBJECTS)
        )
    return token.tag in ("v", "vi", "vn", "vd", "a") and token.text != "的"


def excerpt(
    tokens: Sequence[Token],
    found: Sequence[Candidate],
    chars_max: int,
    words_max: int,
    whole_start: bool = False,
    strict: bool = True,
) -> tuple[int, int] | None:
    """Return the bounds of the most informative excerpt within the limits, or None.

    With `whole_start` the excerpt must begin at the start of the clause. Without `strict` it may end at a noun that is
    the subject of the following words. A clause with an inner condition is not cut. If the clause contains a negation,
    the excerpt reaches from before the negation to the end.
    """
    tokens = tokens[:_TOKENS_MAX]
    if not tokens or any(map(is_condition_word, tokens[1:])):
        return None
    inside = [c for c in found if tokens[0].start <= c.start and c.end <= tokens[-1].end]
    bound = _bound_starts(tokens, inside)
    ends = {c.end for c in inside if c.kind != "weak" or c.weight <= 0.2} | {tokens[-1].end}
    negations = [index for index, token in enumerate(tokens) if is_negation(token)]
    best: tuple[float, int, int] | None = None
    for first in range(len(tokens)):
        if first in bound or (first and (whole_start or not _may_begin(tokens, first))):
            continue
        last = _last_fitting(tokens, first, chars_max, words_max, ends, strict)
        if last is None or (negations and (negations[0] < first or last < len(tokens) - 1)):
            continue
        start, end = tokens[first].start, tokens[last].end
        score = _score(inside, start, end, first == 0, last == len(tokens) - 1)
        score += 1.2 * (end - start) / chars_max
        if best is None or score > best[0]:
            best = (score, start, end)
    return None if best is None else best[1:]


def _bound_starts(tokens: Sequence[Token], found: Sequence[Candidate]) -> set[int]:
    """Return the indices of the words inside a noun phrase. No excerpt starts there."""
    spans = [(c.start, c.end) for c in found if c.kind != "weak"]
    bound: set[int] = set()
    at = 0
    for index, token in enumerate(tokens):
        while at < len(spans) and spans[at][1] <= token.start:
            at += 1
        if at < len(spans) and spans[at][0] < token.start < spans[at][1]:
            bound.add(index)
    return bound


def _last_fitting(
    tokens: Sequence[Token],
    first: int,
    chars_max: int,
    words_max: int,
    ends: set[int],
    strict: bool,
) -> int | None:
    last = None
    words = 0
    for index in range(first, len(tokens)):
        token = tokens[index]
        words += token.tag != "punct"
        if token.end - tokens[first].start > chars_max or words > words_max:
            break
        if token.end in ends and _may_end(token, tokens, index, first, strict):
            last = index
    return last


def _may_begin(tokens: Sequence[Token], index: int) -> bool:
    token, before = tokens[index], tokens[index - 1]
    if token.tag == "r" and before.tag != "punct":
        return False
    if before.text in ("和", "与", "及", "、", "以及", "或", "或者"):
        return False
    if before.end == token.start and before.tag[0] in "nbm" and token.tag[0] in "nq" and before.tag != "num":
        return False
    lower = token.text.replace("’", "'").casefold()
    if token.tag == "punct" or (token.tag == "x" and len(token.text) == 1):
        return token.text in '《“「"$#@'
    if token.tag == "word":
        led = before.text.casefold()
        if lower in words_english.SUBJECTS and led in words_english.AUXILIARIES:
            return False
        if led.replace("’", "'") in words_english.SUBJECTS and lower not in words_english.GERUNDS:
            return False
        inside = led in words_english.ADJECTIVES or led in words_english.POSSESSIVES or led in _NEAR
        if inside or (led in words_english.AUXILIARIES and lower in words_english.VERBS):
            return False
        return lower not in _NEVER_FIRST
    return token.text not in words_chinese.NO_START


def _may_end(token: Token, tokens: Sequence[Token], index: int, first: int, strict: bool) -> bool:
    if token.tag == "punct":
        return token.text in "》”」％%"
    if index + 1 < len(tokens) and tokens[index + 1].text in "’'》”」%":
        return False
    if index + 1 < len(tokens) and tokens[index + 1].text in ("的", "了", "过", "着", "们", "得"):
        return False
    if strict and index + 1 < len(tokens) and _is_subject_of(tokens, index, first):
        return False
    if token.tag == "word":
        return token.text.replace("’", "'").casefold() not in words_english.NO_END
    return token.text not in words_chinese.NO_END


def _is_subject_of(tokens: Sequence[Token], index: int, first: int) -> bool:
    """Return whether the following words make a statement about this word, so that the excerpt must not end here."""
    token, after = tokens[index], tokens[index + 1]
    lower = after.text.replace("’", "'").casefold()
    if after.tag == "word":
        if lower in words_english.AUXILIARIES or lower in words_english.GERUNDS or lower == "of":
            return True
        return lower in words_english.VERBS or lower.endswith("ed")
    if after.end - after.start and after.tag[0] == "n" and token.tag[0] == "n" and token.end == after.start:
        return after.tag != "num"
    if after.text in ("是", "在", "有", "会", "要", "能", "也", "都", "就", "将"):
        return True
    return after.tag[0] == "v" and not any(is_verb(other) for other in tokens[first:index])


def _score(found: Sequence[Candidate], start: int, end: int, at_start: bool, at_end: bool) -> float:
    score = sum(c.weight for c in found if start <= c.start and c.end <= end)
    return score + (3.0 if at_start else 0.0) + (0.3 if at_end else 0.0)
