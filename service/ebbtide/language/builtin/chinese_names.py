"""Chinese names, dates and amounts: what several words of the segmenter make only together.

The rule guarded here: the name of a company or a school reaches back from its ending (有限公司,
大学) to the nearest function word; 下周四 + 上午 + 九点 is one date, 三百 + 人 one amount.

Deliberately not here: common nouns (chinese_nouns.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ebbtide.language.builtin.scripts import is_han
from ebbtide.language.builtin.tokens import Candidate, Token
from ebbtide.language.builtin.word_lists import word_list, words
from ebbtide.language.builtin.words_chinese import (
    ATTRIBUTIVE_VERBS,
    KIN,
    NO_END,
    NOUN_TAGS,
    ORGANISATIONS,
    STOPPED,
    TIME_FILLERS,
)

_UNITS = word_list("chinese_measure_words")

_ENDINGS = tuple(ORGANISATIONS)
# What people gather for, and what stands behind the word for a gathering.
_GATHERINGS = words(
    "分享 交流 研讨 发布 招聘 阅享 鉴赏 品鉴 表彰 庆祝 推介 展览 观影 读书 交友 见面 欢送 说明 宣讲 "
    "家长 茶话 纪念"
)
_BEHIND_EVENT = words("的 是 在 于 上 后 前 结束 开始 将 定")

_VAGUE_NUMBERS = words("一 几 半 两 一两 一个 两个 几个 这个 每 数 多 第一 好几 一些")

_DATE_STARTS = words("下 上 每 每周 每天 每月 每年 本 大")

_DATE_ENDS = ("点", "号", "日", "月", "点半", "分", "点钟", "年")


def dates_and_amounts(text: str, tokens: Sequence[Token]) -> list[Candidate]:
    """Join 下周四 + 上午 + 九点 into a date, 三百 + 人 into an amount."""
    found: list[Candidate] = []
    run: list[Token] = []
    for token in [*tokens, Token("", -1, -1, "end")]:
        if (run and run[-1].end != token.start) or not _is_of_date(token, run):
            found.extend(_date_of(text, run))
            run = []
        if _is_of_date(token, run):
            run.append(token)
    for number, unit in itertools.pairwise(tokens):
        amount = number.tag == "m" and number.end == unit.start and unit.text in _UNITS
        if amount and number.text not in _VAGUE_NUMBERS:
            found.append(Candidate(number.text + unit.text, number.start, unit.end, "number", 0.8))
    return found


def _is_of_date(token: Token, run: list[Token]) -> bool:
    if token.tag == "t" or token.text in _DATE_STARTS or token.tag == "date":
        return True
    return (token.text.endswith(_DATE_ENDS) and token.tag in ("m", "num")) or (bool(run) and token.tag == "m")


def _date_of(text: str, run: list[Token]) -> list[Candidate]:
    if not run or not any(token.tag == "t" or token.tag in ("m", "num") for token in run):
        return []
    start, end = run[0].start, run[-1].end
    said = text[start:end]
    if len(run) == 1 and (_only_points(said) or run[0].tag in ("date", "num") or len(said) < 2):
        return []
    if all(token.text in TIME_FILLERS for token in run) or len(said) > 20:
        return []
    return [Candidate(said, start, end, "time", 0.9)]


def _only_points(said: str) -> bool:
    """Tell whether a time word dates nothing: 昨天, 昨天晚上."""
    return said in STOPPED or any(
        said[:at] in TIME_FILLERS and said[at:] in TIME_FILLERS for at in range(1, len(said))
    )


def _is_event(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a 会 is a gathering (读书分享会的时间) and not the modal."""
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
    """Find names of companies, schools and the like by their endings, back to the nearest
    function word.
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
