"""Names of companies, schools and events, which the segmenter splits into several words.

A name reaches back from its ending (有限公司, 大学) to the nearest function word.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin.scripts import is_han
from ebbtide.language.builtin.tokens import Candidate, Token
from ebbtide.language.builtin.word_lists import word_list
from ebbtide.language.builtin.words_chinese import (
    ATTRIBUTIVE_VERBS,
    KIN,
    NO_END,
    NOUN_TAGS,
    ORGANISATIONS,
    STOPPED,
)

_ENDINGS = tuple(ORGANISATIONS)
# Purposes of a gathering, and words that follow the word for a gathering.
_GATHERINGS = word_list("chinese_gatherings")
_BEHIND_EVENT = word_list("chinese_behind_events")


def _is_event(tokens: Sequence[Token], index: int) -> bool:
    """Return whether 会 is a gathering (读书分享会的时间) and not the modal verb."""
    if tokens[index].text != "会" or not index:
        return False
    before = tokens[index - 1]
    if before.end != tokens[index].start or before.text not in _GATHERINGS:
        return False
    return (
        index + 1 == len(tokens)
        or tokens[index + 1].tag == "punct"
        or tokens[index + 1].text in _BEHIND_EVENT
    )


def organisations(text: str, tokens: Sequence[Token]) -> list[Candidate]:
    """Return the names of companies, schools and events, which reach from their ending back to the nearest function
    word.
    """
    found: list[Candidate] = []
    for index, token in enumerate(tokens):
        named = token.text.endswith(_ENDINGS) and token.tag not in ("word", "punct")
        if not named and not _is_event(tokens, index):
            continue
        first = index
        while first > 0 and _may_name(tokens[first - 1], tokens[first], token.end):
            first -= 1
        start = tokens[first].start
        if first < index and token.end - start >= 4:
            found.append(Candidate(text[start : token.end], start, token.end, "name", 2.5))
    return found


def _may_name(token: Token, after: Token, end: int) -> bool:
    if token.end != after.start or end - token.start > 14 or token.text in KIN or token.text in STOPPED:
        return False
    if token.tag in NOUN_TAGS or (token.tag in ("x", "ng", "nrfg", "vn", "b") and is_han(token.text)):
        return True
    if token.text in ATTRIBUTIVE_VERBS or token.text in _GATHERINGS or token.text in ("年终", "年度"):
        return True
    return (
        len(token.text) == 1
        and is_han(token.text)
        and token.tag in ("v", "a", "zg", "vg", "ag", "tg", "g")
        and token.text not in NO_END
    )
