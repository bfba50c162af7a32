"""Find the words that a Chinese clause can lose and still say the same, or less, but nothing else.

Verb, object and complement stay together, and so do negations, hedges, 把, 被, 让, 比 and the particles of aspect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ebbtide.language.builtin import words_chinese
from ebbtide.language.builtin.chinese_clauses import Clause
from ebbtide.language.builtin.negation import holds_negation, is_negation
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import word_list, words

# A longer clause is a list or lacks its punctuation.
_WORDS_MAX = 60
LIGHT, MODIFIER, STRONG = range(3)


class Reduction(NamedTuple):
    """Words [begin, end) of a clause that can be left out, and how much is lost with them."""

    begin: int
    end: int
    level: int


_PARTICLES = words("啊 呀 啦 哦 噢 哟 哈 呗 喔 哎")
_INTENSIFIERS = words("非常 特别 十分 挺 真的 相当 极其 实在 其实 确实 的确 居然 竟然 简直 反正 严重")
_AUXILIARY = words("是 会 有 能 要 想 让 在 被 把")
_GRADED = words("a v vn i l d")
_PAST = words(
    "今天 昨天 前天 昨晚 今早 刚才 刚刚 最近 近来 当时 那天 这几天 前几天 上周 上个月 早上 上午 中午 下午 晚上 傍晚 凌晨 夜里 "
    "天天 每天 每天晚上 每天早上"
)
_TIME_TAGS = words("t date")
_OWNERS = words("我 我们 咱们 俺")
_PLACE_TAGS = words("n ns nt nz nr nrt s f word code j vn")
_NOUN_TAGS = words("n ns nt nz nr nrt s j word code vn nw ng")
_ATTRIBUTE_TAGS = words("n ns nt nz s f b j word code zg")
_GOVERNORS = words("把 给 对 跟 和 被 比")
_CLASSIFIERS = word_list("chinese_classifiers")
_DEADLINES = words("之前 以前 前")


def reductions(clause: Clause) -> list[Reduction]:
    """Return what can be left out of a clause. The parts do not overlap, except that one may contain another."""
    tokens = clause.tokens
    if len(tokens) > _WORDS_MAX:
        return []
    found = [Reduction(0, clause.body, LIGHT)] if clause.body < len(tokens) else []
    end = len(tokens)
    while end > clause.body + 1 and tokens[end - 1].text in _PARTICLES:
        end -= 1
    questions = any(token.text.startswith("不是") for token in tokens)
    if end < len(tokens) and not questions:
        found.append(Reduction(end, len(tokens), LIGHT))
    found += _owners(tokens, clause.body)
    found += _times(tokens, clause.body, end)
    for index in range(clause.body, end):
        found += _modifiers(tokens, index, clause.body, end)
        found += _phrases(tokens, index, clause.body, end)
    return [reduction for reduction in found if reduction.begin < reduction.end]


def _owners(tokens: Sequence[Token], body: int) -> Iterator[Reduction]:
    """Yield 我 and 我的 before a noun, and the word that says who a named person is: 我的妹妹克拉拉."""
    rest = tokens[body:]
    if len(rest) < 3:
        return
    if rest[0].text in _OWNERS:
        if rest[1].text == "的" and rest[2].tag in _NOUN_TAGS and len(rest[2].text) > 1:
            yield Reduction(body, body + 2, LIGHT)
        elif rest[1].text in ("家", "这边", "那边") and len(rest) > 3 and rest[2].tag[0] == "n":
            yield Reduction(body, body + 2, LIGHT)
        elif rest[1].text in words_chinese.KIN:
            yield Reduction(body, body + 1, LIGHT)
    if (
        len(rest) > 4
        and rest[0].text == "这个"
        and rest[1].tag in ("n", "v", "vn")
        and rest[2].tag in ("b", "n")
    ):
        # 这个需求优先级没定
        if holds_negation(rest[3:]):
            yield Reduction(body, body + 2, LIGHT)
    if rest[0].text in ("这", "那") and rest[1].text in _CLASSIFIERS and rest[2].tag[0] == "n":
        yield Reduction(body, body + 2, STRONG)
    elif (
        rest[0].text[0] in "这那" and len(rest[0].text) == 2 and rest[0].tag == "r" and rest[1].tag[0] == "n"
    ):
        yield Reduction(body, body + 1, STRONG)
    kin = next(
        (at for at in range(body, min(body + 3, len(tokens) - 1)) if tokens[at].text in words_chinese.KIN), -1
    )
    if kin >= 0 and tokens[kin + 1].tag in ("nr", "nrt") and len(tokens[kin + 1].text) > 1:
        yield Reduction(body, kin + 1, STRONG)
    if rest[0].tag in _NOUN_TAGS and rest[1].text in _OWNERS and rest[2].tag in ("p", "v"):
        # The object comes first: 数据库我们迁到了…
        yield Reduction(body + 1, body + 2, STRONG)
    attribute = next(
        (at for at in range(body + 1, min(body + 5, len(tokens) - 2)) if tokens[at].text == "的"), -1
    )
    if attribute >= 0 and tokens[attribute + 2].text in _OWNERS and tokens[attribute + 1].tag in _NOUN_TAGS:
        yield Reduction(attribute + 2, attribute + 3, STRONG)


def _times(tokens: Sequence[Token], body: int, end: int) -> Iterator[Reduction]:
    """Yield a time that says little, at the start of a clause or behind its subject. An exact or coming time stays."""
    index = body
    while index < end:
        if not _is_time(tokens[index]):
            index += 1
            continue
        stop = index
        while stop < end and _is_time(tokens[stop]):
            stop += 1
        before = tokens[index - 1] if index > body else None
        free = (
            before is None or before.tag in ("r", "n", "nr", "nrt", "zg") or before.text in words_chinese.KIN
        )
        vague = all(token.text in _PAST for token in tokens[index:stop])
        if free and vague and stop + 1 < end and tokens[stop].tag not in ("uj", "f", "punct", "m", "n", "nr"):
            if tokens[stop].text not in ("是", "就", "才", "的"):
                yield Reduction(index, stop, MODIFIER)
        if free and tokens[stop - 1].text == "今年" and stop < end and tokens[stop].text.endswith("岁"):
            yield Reduction(index, stop, LIGHT)
        event = tokens[stop] if stop < end else None
        if event is not None and event.text in words_chinese.ACTIVITIES and stop + 1 < end and index == body:
            if tokens[stop + 1].text in ("差点", "差点儿"):
                yield Reduction(index, stop + 1, MODIFIER)
        index = stop


def _is_time(token: Token) -> bool:
    return token.tag in _TIME_TAGS or token.text in words_chinese.TIME_FILLERS


def _modifiers(tokens: Sequence[Token], index: int, body: int, end: int) -> Iterator[Reduction]:
    """Yield a word that only stresses, and a number that only says that there is one."""
    token = tokens[index]
    after = tokens[index + 1] if index + 1 < end else None
    before = tokens[index - 1] if index > body else None
    if after is None:
        return
    denied = before is not None and (is_negation(before) or before.text in ("最", "更", "是"))
    if (
        token.text in _INTENSIFIERS
        and not denied
        and after.tag in _GRADED
        and not is_negation(after)
        and after.text not in _AUXILIARY
    ):
        yield Reduction(index, index + 1, LIGHT)
    if token.text == "还" and after.text in ("没", "没有") and before is not None and before.tag != "d":
        yield Reduction(index, index + 1, LIGHT)
    counts_one = token.text == "一" and after.text in _CLASSIFIERS
    joined = token.text[0] == "一" and token.text[1:] in _CLASSIFIERS and token.tag == "m"
    stop = index + 2 if counts_one else index + 1
    if (
        (counts_one or joined)
        and before is not None
        and (before.tag in ("v", "ug") or before.text in ("了", "过"))
    ):
        if stop < end and stop + 2 >= end and tokens[stop].tag[0] == "n" and len(tokens[stop].text) > 1:
            yield Reduction(index, stop, MODIFIER)


def _phrases(tokens: Sequence[Token], index: int, body: int, end: int) -> Iterator[Reduction]:
    """Yield phrases of place and source, attributes, and a pair of nouns that describes a third one."""
    token = tokens[index]
    before = tokens[index - 1] if index > body else None
    if token.text in ("在", "从") and token.tag == "p":
        yield from _place(tokens, index, body, end)
        return
    if token.text == "的" and index + 1 < end:
        yield from _attribute(tokens, index, body, end)
    if token.text in ("和", "与", "及") and before is not None and index + 2 < end and index > body + 1:
        pair = before.tag in _NOUN_TAGS and tokens[index + 1].tag in _NOUN_TAGS
        described = tokens[index + 2].tag in ("n", "nz", "m") and len(tokens[index + 2].text) > 1
        if pair and described and tokens[index - 2].tag == "v" and index + 3 < end:
            yield Reduction(index - 1, index + 2, MODIFIER)
    if (
        token.text == "的"
        and index + 3 < end
        and tokens[index + 1].text == "名字"
        and tokens[index + 2].text == "叫"
    ):
        yield Reduction(index, index + 2, STRONG)
    if (
        token.text == "是"
        and index + 2 < end
        and tokens[index + 1].text == "在"
        and tokens[index + 2].tag == "date"
    ):
        yield Reduction(index, index + 2, STRONG)
    if token.text == "需要" and before is not None and before.text in ("提到", "提出"):
        yield Reduction(index, index + 1, STRONG)
    if token.text == "要" and index + 3 < end and tokens[index + 1].text == "在":
        if tokens[index + 2].tag in _TIME_TAGS and tokens[index + 3].text in _DEADLINES:
            yield Reduction(index, index + 2, STRONG)
    is_allergy = token.text == "对" and tokens[end - 1].text == "过敏" and not holds_negation(tokens)
    if is_allergy and index == body + 1 and tokens[body].tag == "r":
        yield Reduction(body, body + 1, STRONG)


def _place(tokens: Sequence[Token], index: int, body: int, end: int) -> Iterator[Reduction]:
    """Yield 在 or 从 with its noun before a verb: 我妈妈在厦门开花店."""
    before = tokens[index - 1] if index > body else None
    if before is not None and before.tag not in (*_NOUN_TAGS, "r", "t") and not _is_time(before):
        return
    if tokens[end - 1].text == "的":
        return
    stop = index + 1
    while stop < end and (
        tokens[stop].tag in _PLACE_TAGS
        or tokens[stop].tag == "num"
        or tokens[stop].text in ("的", "里", "上")
    ):
        stop += 1
    if (
        stop == index + 1
        or stop + 1 >= end
        or tokens[stop].tag not in ("v", "vi")
        or tokens[stop - 1].text == "的"
    ):
        return
    if any(token.text in ("的", "是", "有") for token in tokens[stop:end]):
        return
    if tokens[index].text == "从":
        if tokens[stop].text.endswith(("到", "成", "至")):
            yield Reduction(index, stop, STRONG)
        return
    yield Reduction(index, stop, MODIFIER)
    if stop > index + 3 and tokens[index + 2].text == "的" and tokens[index + 1].tag in ("ns", "nr", "nrt"):
        yield Reduction(index + 2, stop, LIGHT)


def _attribute(tokens: Sequence[Token], index: int, body: int, end: int) -> Iterator[Reduction]:
    """Yield the noun or adjective before 的 where the next noun says enough: 前端组的张伟."""
    head = tokens[index + 1]
    if head.tag not in _NOUN_TAGS or len(head.text) < 2 or head.text in words_chinese.STOPPED:
        return
    if head.text[0] in "一几" or is_negation(head):
        return
    begin = index
    while begin > body and (
        tokens[begin - 1].tag in _ATTRIBUTE_TAGS or tokens[begin - 1].text in words_chinese.ATTRIBUTIVE_VERBS
    ):
        begin -= 1
    if begin == index:
        return
    attribute = tokens[begin:index]
    person = any(
        token.text in words_chinese.KIN or token.text in words_chinese.PRONOUNS for token in attribute
    )
    if person or holds_negation(attribute):
        return
    before = tokens[begin - 1] if begin > body else None
    if before is None and index + 2 < end:
        yield Reduction(body, index + 1, MODIFIER)
    elif before is not None and before.text in _GOVERNORS and before.tag == "p":
        yield Reduction(begin, index + 1, MODIFIER)
