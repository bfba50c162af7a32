"""Find the words that a Chinese clause can lose and still say the same, or less, but nothing else.

Verb, object and complement stay together, and so do negations, hedges, 把, 被, 让, 比 and the particles of aspect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
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
_PAST = word_list("chinese_vague_times")
_TIME_TAGS = words("t date")
_OWNERS = words("我 我们 咱们 俺")
_PLACE_TAGS = words("num n ns nt nz nr nrt s f word code j vn")
_NOUN_TAGS = words("n ns nt nz nr nrt s j word code vn nw ng")
_ATTRIBUTE_TAGS = words("n ns nt nz s f b j word code zg")
_GOVERNORS = words("把 给 对 跟 和 被 比")
_CLASSIFIERS = word_list("chinese_classifiers")
_POINTERS = words("这个 那个 这只 那只 这位 那位 这些 那些")
# A word of these kinds belongs to the time before it.
_AFTER_NO_TIME = words("uj f punct m n nr")
_DEADLINES = words("之前 以前 前")


def reductions(clause: Clause) -> list[Reduction]:
    """Return what can be left out of a clause. The parts do not overlap, except that one may contain another."""
    tokens = clause.tokens
    if len(tokens) > _WORDS_MAX:
        return []
    body, end = clause.body, len(tokens)
    while end > body + 1 and tokens[end - 1].text in _PARTICLES:
        end -= 1
    found = [Reduction(0, body, LIGHT)] if body < len(tokens) else []
    # With its particle, 不是 asks for agreement; without it, it denies.
    if end < len(tokens) and not any(token.text.startswith("不是") for token in tokens):
        found.append(Reduction(end, len(tokens), LIGHT))
    inner = tokens[body:end]
    for index in range(len(inner)):
        for part in _at(inner, index):
            found.append(Reduction(part.begin + body, part.end + body, part.level))
    return [part for part in found if part.begin < part.end]


def _at(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield what can be left out from a word on."""
    if index == 0:
        yield from _openings(tokens)
    if _is_time(tokens[index]) and not (index and _is_time(tokens[index - 1])):
        yield from _times(tokens, index)
    if tokens[index].text in ("在", "从") and tokens[index].tag == "p":
        yield from _place(tokens, index)
    elif tokens[index].text == "的":
        yield from _attribute(tokens, index)
    elif index and (tokens[index].text in _POINTERS or tokens[index].text in ("这", "那")):
        yield from _pointer(tokens, index)
    yield from _stress(tokens, index)
    yield from _one(tokens, index)
    yield from _pair(tokens, index)
    yield from _fixed(tokens, index)


def _openings(tokens: Sequence[Token]) -> Iterator[Reduction]:
    """Yield 我, 我的, 我家 and 这个 before a noun, and the word that says who a named person is: 我的妹妹克拉拉."""
    if len(tokens) < 3:
        return
    first, second, third = tokens[:3]
    if first.text in _OWNERS:
        owned = second.text == "的" and third.tag in _NOUN_TAGS and len(third.text) > 1
        if owned or (second.text in ("家", "这边", "那边") and third.tag[0] == "n" and len(tokens) > 3):
            yield Reduction(0, 2, LIGHT)
        elif second.text in words_chinese.KIN:
            yield Reduction(0, 1, LIGHT)
    elif first.text == "这个" and second.tag in ("n", "v", "vn") and third.tag in ("b", "n"):
        # 这个需求优先级没定
        yield Reduction(0, 2 if holds_negation(tokens[3:]) else 0, LIGHT)
    elif first.text in ("这", "那") and second.text in _CLASSIFIERS and third.tag[0] == "n":
        yield Reduction(0, 2, STRONG)
    elif first.text in _POINTERS and second.tag[0] == "n":
        yield Reduction(0, 1, STRONG)
    for index, (token, after) in enumerate(pairwise(tokens[:4])):
        named = after.tag in ("nr", "nrt") or (after.tag == "ng" and after.text[0] in "小阿老")
        if token.text in words_chinese.KIN and named and len(after.text) > 1:
            yield Reduction(0, index + 1, STRONG)
            break
    topic = next((index for index, token in enumerate(tokens[:7]) if token.text in _OWNERS and index), 0)
    if topic and topic + 1 < len(tokens) and tokens[topic - 1].tag in _NOUN_TAGS:
        before = [token.text for token in tokens[:topic]]
        if (topic == 1 and tokens[2].tag in ("p", "v")) or "的" in before[:-1]:
            # The object comes first: 数据库我们迁到了…
            yield Reduction(topic, topic + 1, STRONG)


def _pointer(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield 那个 and 那套 between a description and its noun: 你上回问的那套茶具我找到了."""
    stop = index + 1
    if len(tokens[index].text) == 1:
        if stop == len(tokens) or tokens[stop].text not in _CLASSIFIERS:
            return
        stop += 1
    described = tokens[index - 1].text == "的" or tokens[index - 1].tag == "f"
    if described and stop + 1 < len(tokens) and tokens[stop].tag[0] == "n" and len(tokens[stop].text) > 1:
        yield Reduction(index, stop, STRONG)


def _times(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield a time that says little, at the start of a clause or behind its subject. An exact or coming time stays."""
    stop = next((at for at in range(index, len(tokens)) if not _is_time(tokens[at])), len(tokens))
    before = tokens[index - 1] if index else None
    if stop == len(tokens) or not (
        before is None or before.tag in ("r", "n", "nr", "nrt", "zg") or before.text in words_chinese.KIN
    ):
        return
    after = tokens[stop]
    if tokens[stop - 1].text == "今年" and after.text.endswith("岁"):
        yield Reduction(index, stop, LIGHT)
    if stop + 1 == len(tokens):
        return
    if index == 0 and after.text in words_chinese.ACTIVITIES and tokens[stop + 1].text.startswith("差点"):
        # 上次打针差点休克
        yield Reduction(0, stop + 1, MODIFIER)
    vague = all(token.text in _PAST for token in tokens[index:stop])
    if vague and after.tag not in _AFTER_NO_TIME and after.text not in ("是", "就", "才", "的"):
        yield Reduction(index, stop, MODIFIER)


def _is_time(token: Token) -> bool:
    return token.tag in _TIME_TAGS or token.text in words_chinese.TIME_FILLERS


def _stress(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield a word that only stresses the next one: 非常, 真的; 还 before 没."""
    if index + 1 == len(tokens):
        return
    token, after = tokens[index], tokens[index + 1]
    before = tokens[index - 1] if index else None
    if token.text == "还" and after.text in ("没", "没有") and before is not None and before.tag != "d":
        yield Reduction(index, index + 1, LIGHT)
    stressed = after.tag in _GRADED and after.text not in _AUXILIARY and not is_negation(after)
    denied = before is not None and (is_negation(before) or before.text in ("最", "更", "是"))
    if token.text in _INTENSIFIERS and stressed and not denied:
        yield Reduction(index, index + 1, LIGHT)


def _one(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield 一 and its classifier between a verb and its object: 开了一家花店."""
    if not index or tokens[index].text[0] != "一":
        return
    counted = tokens[index].text[1:] or (tokens[index + 1].text if index + 1 < len(tokens) else "")
    stop = index + (1 if len(tokens[index].text) > 1 else 2)
    before = tokens[index - 1]
    if counted not in _CLASSIFIERS or not (before.tag in ("v", "ug") or before.text in ("了", "过")):
        return
    if stop < len(tokens) <= stop + 2 and tokens[stop].tag[0] == "n" and len(tokens[stop].text) > 1:
        yield Reduction(index, stop, MODIFIER)


def _pair(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield two nouns that describe a third one: 支持微信和支付宝第三方登录."""
    if tokens[index].text not in ("和", "与", "及") or not 1 < index < len(tokens) - 3:
        return
    verb, one, _, other, head = tokens[index - 2 : index + 3]
    described = head.tag in ("n", "nz", "m") and len(head.text) > 1
    if described and verb.tag == "v" and one.tag in _NOUN_TAGS and other.tag in _NOUN_TAGS:
        yield Reduction(index - 1, index + 2, MODIFIER)


def _fixed(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield words that certain expressions can do without when room is short."""
    said = [token.text for token in tokens[index : index + 4]]
    dated = len(said) > 2 and said[1] == "在" and tokens[index + 2].tag in _TIME_TAGS
    if (
        said[:3] == ["的", "名字", "叫"]
        or (said[0] == "是" and dated and tokens[index + 2].tag == "date")
        or (said[0] == "要" and dated and said[3:] and said[3] in _DEADLINES)
    ):
        yield Reduction(index, index + 2, STRONG)
    elif said[0] == "需要" and index and tokens[index - 1].text in ("提到", "提出"):
        yield Reduction(index, index + 1, STRONG)
    elif said[0] == "对" and index == 1 and tokens[0].tag == "r" and tokens[-1].text == "过敏":
        yield Reduction(0, 0 if holds_negation(tokens) else 1, STRONG)


def _place(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield 在 or 从 with its noun before a verb: 我妈妈在厦门开花店."""
    before = tokens[index - 1] if index else None
    if before is not None and before.tag not in (*_NOUN_TAGS, "r", "t") and not _is_time(before):
        return
    stop = index + 1
    while stop < len(tokens) and (tokens[stop].tag in _PLACE_TAGS or tokens[stop].text in ("的", "里", "上")):
        stop += 1
    if stop == index + 1 or stop + 1 >= len(tokens) or tokens[stop - 1].text == "的":
        return
    if tokens[stop].tag not in ("v", "vi") or any(t.text in ("的", "是", "有") for t in tokens[stop:]):
        return
    if tokens[index].text == "从":
        if tokens[stop].text.endswith(("到", "成", "至")):
            yield Reduction(index, stop, STRONG)
        return
    # A named place may be what a statement differs by from the next one.
    named = any(token.tag in ("ns", "nr", "nrt", "nz") for token in tokens[index:stop])
    yield Reduction(index, stop, STRONG if named else MODIFIER)
    if stop > index + 3 and tokens[index + 2].text == "的" and tokens[index + 1].tag in ("ns", "nr", "nrt"):
        yield Reduction(index + 2, stop, LIGHT)


def _attribute(tokens: Sequence[Token], index: int) -> Iterator[Reduction]:
    """Yield the noun or adjective before 的 where the next noun says enough: 前端组的张伟."""
    if index + 1 == len(tokens):
        return
    head = tokens[index + 1]
    if head.tag not in _NOUN_TAGS or len(head.text) < 2 or head.text in words_chinese.STOPPED:
        return
    begin = index
    while begin and (
        tokens[begin - 1].tag in _ATTRIBUTE_TAGS or tokens[begin - 1].text in words_chinese.ATTRIBUTIVE_VERBS
    ):
        begin -= 1
    attribute = tokens[begin:index]
    if any(
        t.text in words_chinese.KIN | words_chinese.PRONOUNS or is_negation(t) for t in [*attribute, head]
    ):
        return
    before = tokens[begin - 1] if begin else None
    governed = before is not None and before.text in _GOVERNORS and before.tag == "p"
    if attribute and (governed or (before is None and index + 2 < len(tokens))):
        yield Reduction(begin, index + 1, MODIFIER)
