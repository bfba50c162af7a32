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
from ebbtide.language.builtin.word_lists import words
from ebbtide.language.builtin.words_chinese import (
    ATTRIBUTIVE_VERBS,
    KIN,
    NO_END,
    NOUN_TAGS,
    ORGANISATIONS,
    STOPPED,
    TIME_FILLERS,
)

_UNITS = words(
    "人 岁 周 天 年 月 个月 小时 分钟 块 元 公斤 斤 公里 米 厘米 次 页 本 万 千 岁 层 楼 号 度 倍 平米 名 位"
)

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
    if len(run) == 1 and (said in TIME_FILLERS or run[0].tag in ("date", "num") or len(said) < 2):
        return []
    if all(token.text in TIME_FILLERS for token in run) or len(said) > 20:
        return []
    return [Candidate(said, start, end, "time", 0.9)]


def organisations(text: str, tokens: Sequence[Token]) -> list[Candidate]:
    """Find names of companies, schools and the like by their endings, back to the nearest
    function word.
    """
    found: list[Candidate] = []
    for index, token in enumerate(tokens):
        if not token.text.endswith(tuple(ORGANISATIONS)) or token.tag in ("word", "punct"):
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
    if token.text in ATTRIBUTIVE_VERBS:
        return True
    return (
        len(token.text) == 1
        and is_han(token.text)
        and token.tag in ("v", "a", "zg", "vg", "ag", "tg", "g")
        and token.text not in NO_END
    )
