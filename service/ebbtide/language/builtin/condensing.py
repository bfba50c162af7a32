"""Shorten a clause by dropping dispensable words.

Only words that do not affect the truth are dropped: intensifiers, particles, demonstratives, and last articles and the
copula between a name and its value. Negations, modals, numbers and parts of noun phrases stay. Words are dropped one at
a time until the clause fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.excerpts import is_negation
from ebbtide.language.builtin.tokens import Candidate, Token
from ebbtide.language.builtin.word_lists import words

_PARTICLES = words("呢 啊 吧 呀 啦 嘛 哦 哈 噢 哟")
_POINTERS = words("那个 这个 那 这 该 那些 这些 那位 这位 那款 这款 一个 一位 一名 一款 位 个 名")
_ARTICLES = words("the a an my your our his her its their this that these those some")
_EVALUATIVE = words("amazing awesome wonderful great nice lovely beautiful fantastic incredible gorgeous")
_HAN_TAGS_BEFORE_VALUE = words("n nr ns nt nz vn ng an l s t x")
_TIMELY = words("今年 今天 现在 目前 都 已经 正在 刚刚 刚才 将要 将")
_LEVELS = 3


def condense(text: str, tokens: Sequence[Token], found: Sequence[Candidate], chars_max: int) -> str | None:
    """Return the clause in at most `chars_max` characters, or None if it cannot be shortened that much."""
    size = tokens[-1].end - tokens[0].start if tokens else 0
    if not tokens or size > 3 * chars_max + 20:
        return None
    spans = [(c.start, c.end) for c in found if c.kind not in ("weak", "kin")]
    dropped: set[int] = set()
    for level in range(1, _LEVELS + 1):
        for index in range(len(tokens) - 1, -1, -1):
            if size <= chars_max:
                break
            token = tokens[index]
            if index in dropped or _is_part(token, spans) or is_negation(token):
                continue
            if _spare_level(tokens, index, dropped) == level:
                dropped.add(index)
                size -= len(token.text) + _gap_before(tokens, index)
    if size > chars_max:
        return None
    words = _joined(text, tokens, dropped)
    return words if len(words) <= chars_max else None


def _gap_before(tokens: Sequence[Token], index: int) -> int:
    return tokens[index].start - tokens[index - 1].end if index else 0


def _is_part(token: Token, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= token.start and token.end <= end for start, end in spans)


def _spare_level(tokens: Sequence[Token], index: int, dropped: set[int]) -> int:
    """Return how easily a word can be dropped: 1 first, 2 next, 3 last, 0 never."""
    token = tokens[index]
    if token.tag == "word":
        return _spare_english(tokens, index)
    text = token.text
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if text in _PARTICLES or (text == "了" and after is None):
        return 1
    if text in words_chinese.DROPPABLE and text not in words_chinese.CAREFUL:
        return 1 if after is not None and after.text not in ("的", "地") else 0
    if text in _POINTERS and after is not None and after.tag != "punct":
        return 2
    if _is_own(tokens, index):
        return 2
    if text in _TIMELY and after is not None and after.tag != "punct":
        return 3
    before = tokens[index - 1] if index else None
    if text == "的":
        return 3 if after is None or _may_lose_of(before, after) else 0
    if text in ("是", "在", "位于") and before is not None and after is not None:
        named = before.tag in _HAN_TAGS_BEFORE_VALUE or before.text in ("是", "的")
        return 3 if named and after.tag not in ("punct", "v") else 0
    return 0


def _is_own(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word is the 我 or 我的 before something that belongs to the speaker."""
    text = tokens[index].text
    ahead = tokens[index + 1] if index + 1 < len(tokens) else None
    if ahead is None or index > 1:
        return False
    if text == "的":
        return index == 1 and tokens[0].text in ("我", "我们")
    if index or text not in ("我", "我们"):
        return False
    return ahead.tag in ("n", "nr", "s") or ahead.text == "的"


def _may_lose_of(before: Token | None, after: Token) -> bool:
    """Return whether a 的 can be dropped: between two nouns, but not after a verb or an adjective."""
    nouns = ("n", "nr", "ns", "nt", "nz", "word", "code", "r", "vn", "t", "s")
    return before is not None and before.tag in nouns and after.tag in nouns


def _spare_english(tokens: Sequence[Token], index: int) -> int:
    lower = tokens[index].text.casefold()
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    followed = after is not None and after.tag == "word" and after.text.casefold() not in words_english.NO_END
    if lower in _EVALUATIVE:
        return 1 if followed and index > 0 else 0
    if lower in words_english.DROPPABLE:
        return 1 if followed and lower not in ("just", "bit", "even") else 0
    if lower in _ARTICLES:
        return 3 if followed and index > 0 and tokens[index - 1].tag == "word" else 0
    return 0


def _joined(text: str, tokens: Sequence[Token], dropped: set[int]) -> str:
    parts: list[str] = []
    for index, token in enumerate(tokens):
        if index in dropped:
            continue
        if parts and token.start > tokens[index - 1].end:
            parts.append(" ")
        if len(parts) > 1 and parts[-2].casefold() in ("a", "an"):
            vowel = token.text[:1].casefold() in "aeio"
            parts[-2] = parts[-2][0] + ("n" if vowel else "")
        parts.append(token.text)
    return "".join(parts)
