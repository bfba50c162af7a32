"""Read a Chinese text as clauses: its parts between commas, and in chats between spaces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ebbtide.language.builtin import words_chinese
from ebbtide.language.builtin.scripts import HAN, has_word, is_japanese
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.small_talk import CHINESE_WORDS, is_small_talk
from ebbtide.language.builtin.tokens import Token, tokenize
from ebbtide.language.builtin.word_lists import word_list, words

_COMMA = re.compile("[，；：,;:]+|—+|…+|[.]{3,}")
# In chats a space often separates clauses.
_SPACED = re.compile(rf"[{HAN}]\s++[{HAN}]")
_SPACE = re.compile(
    rf"[，；：,;:]+|—+|…+|[.]{{3,}}|(?<=[{HAN}A-Za-z0-9])\s++(?=[{HAN}])|(?<=[{HAN}])\s++(?=[A-Za-z0-9])"
)
_JAPANESE_COMMA = re.compile("[、，]")
_QUOTED = re.compile(
    r"“[^”]{1,60}”|「[^」]{1,60}」|『[^』]{1,60}』|（[^）]{1,60}）|\([^)]{1,60}\)|《[^》]{1,60}》"
)
_NUMBER_COMMA = re.compile(r"(?<=\d)[,:](?=\d)")
_EDGES = "，,、；;：:。.！!？?…~～—"

PERSONAL = words("我 我们 咱 咱们 俺 你 您 你们")
"""Pronouns that mean the speaker or the listener."""
THIRD = words("他 她 它 他们 她们 它们 其 人家 对方")
"""Pronouns that refer to another clause."""
SUBJECTS = words("n nr ns nt nz nw nrt nrfg vn r title an x nrf j word code path url s b zg ng")
"""Tags of words that can be a subject."""
TIMES = words_chinese.TIME_FILLERS | words("每天 天天 每晚 每周 每月 每年 那天 这天 哪天 一天")

_PREDICATES = words("v vi vd vq vg a ad i l")
_SKIPPED = words("d c t y e o date")
_NO_SUBJECT = word_list("chinese_no_subjects")
_CALLED = words_chinese.KIN | words(
    "哥 姐 爸 妈 师兄 师姐 师弟 师妹 老板 老师 各位 大家 宝贝 亲爱的 叔 姨 婶 嫂子 大哥 大姐"
)
# A longer clause has its subject before.
_READ = 30
# 结账的时候躲厕所: what precedes is a time.
_BOUNDS = words("时候 之后 以后 之前 以前")
_NAMES = words("n nr nrt nrfg ns nt nz")
_DEGREES = words("太 很 更 最 挺 真 非常 特别 比较")
_COMMAND = re.compile("[你这个可]{0,4}+(?:一定|千万)?要?(?:记住|记牢|别忘|不要忘|勿忘)")
# 我跟你坦白: the next clause is what is said.
_ANNOUNCEMENT = re.compile(
    "(?:我们?)?(?:也|先|再|要|想|得|就|只)?(?:[跟和同对向][你您](?:们|大家)?)"
    "(?:坦白|老实|确认|汇报|报告|说明|交代|商量|打听|说|讲|交个底|道歉)(?:一下|一声|一件事|件事|个事|个好消息|句实话|实话)?"
    "|讲笑.?|开个?玩笑.?"
)
_REPORT = re.compile(
    "(?:(?<![不没再])[说道讲问]|表示|回|告诉[我他她]们?|^(?:听说|据说|传说|据传|好像|可能|也许|大概|应该|估计))$"
)
_REPORT_MAX = 11


@dataclass
class Clause:
    """A clause [start, end) without its closing marks, and what it depends on.

    Whether a `doubtful` clause has its own subject is not certain. An `idle` clause says nothing.
    `needs` are the clauses without which this one is not kept. `lender` is the clause whose subject may replace the
    clauses that this one needs, or -1.
    """

    start: int
    end: int
    sentence: int
    tokens: list[Token]
    body: int = 0
    fragment: bool = False
    subject: bool = False
    doubtful: bool = False
    idle: bool = False
    needs: set[int] = field(default_factory=set)
    lender: int = -1

    @cached_property
    def said(self) -> str:
        """The words of the clause without spaces."""
        return "".join(token.text for token in self.tokens)

    @cached_property
    def rest(self) -> list[Token]:
        """The words of the clause without those that only connect it."""
        return self.tokens[self.body :]


def clauses_of(text: str) -> list[Clause]:
    """Return the clauses of a Chinese or Japanese text in order."""
    japanese = is_japanese(text)
    comma = _JAPANESE_COMMA if japanese else _SPACE if _SPACED.search(text) else _COMMA
    found: list[Clause] = []
    tokens = tokenize(text)
    at = 0
    for number, (start, end) in enumerate(sentence_spans(text)):
        for begin, stop in _pieces(text, start, end, comma):
            while at < len(tokens) and tokens[at].start < begin:
                at += 1
            first = at
            while at < len(tokens) and tokens[at].end <= stop:
                at += 1
            if first < at:
                found.append(Clause(begin, stop, number, tokens[first:at]))
    if japanese:
        return found
    for clause in found:
        _describe(clause)
    for index in range(len(found) - 1):
        found[index].idle = found[index].idle or _is_call(text, found, index)
    return found


def _is_call(text: str, clauses: list[Clause], index: int) -> bool:
    """Return whether a clause only calls a person, to whom the next clause speaks: 念初，我打算…"""
    clause, after = clauses[index], clauses[index + 1]
    leads = not index or clauses[index - 1].sentence != clause.sentence
    name = len(clause.tokens) == 1 and (clause.tokens[0].tag[:2] == "nr" or clause.tokens[0].text in _CALLED)
    return (
        leads and name and after.subject and not after.fragment and text.startswith(("，", "！"), clause.end)
    )


def _pieces(text: str, start: int, end: int, comma: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return the parts of a sentence between its commas, without marks at their ends."""
    closed = [match.span() for match in _QUOTED.finditer(text, start, end)]
    pieces: list[tuple[int, int]] = []
    at, quote = start, 0
    for match in comma.finditer(text, start, end):
        while quote < len(closed) and closed[quote][1] <= match.start():
            quote += 1
        if quote < len(closed) and closed[quote][0] < match.start():
            continue
        if _NUMBER_COMMA.match(text, match.start()):
            continue
        pieces.append((at, match.start()))
        at = match.end()
    pieces.append((at, end))
    stripped = (_strip(text, *piece) for piece in pieces)
    return [piece for piece in stripped if has_word(text[slice(*piece)])]


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] in _EDGES + "-"):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in _EDGES):
        end -= 1
    return start, end


def _describe(clause: Clause) -> None:
    """Find whether a clause is a fragment, has its own subject, or says nothing."""
    tokens = clause.tokens
    clause.body = opening_of(tokens)
    rest = clause.rest
    named = any(
        token.text in THIRD or (token.tag in _NAMES and token.text not in CHINESE_WORDS) for token in tokens
    )
    social = is_small_talk(tokens) and not named and not is_report(clause)
    said = "".join(token.text for token in rest)
    announces = _COMMAND.match(said) or _ANNOUNCEMENT.fullmatch(said)
    clause.idle = not rest or social or announces is not None
    clause.fragment = not any(_is_predicate(rest, index) for index in range(len(rest)))
    certain = _has_subject(rest)
    clause.subject = certain or _has_described_subject(rest)
    # 看病花了一千多: the subject may be the one who did it.
    active = (
        any(token.tag == "vn" for token in rest[:1])
        and len(rest) > 1
        and rest[1].tag == "v"
        and rest[1].text[0] not in "太很"
    )
    clause.doubtful = clause.subject and (active or not certain)


def opening_of(tokens: Sequence[Token]) -> int:
    """Return the number of words at the start of a clause that only connect it: 不过, 对了, 那."""
    index = 0
    while index < len(tokens):
        text = tokens[index].text
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if text in words_chinese.OPENERS or tokens[index].tag == "e":
            index += 1
        elif after is not None and text + after.text in words_chinese.OPENERS:
            index += 2
        elif (
            text in ("那", "可", "就", "而", "但")
            and after is not None
            and (
                after.text in PERSONAL | THIRD or after.tag in ("c", "d") or (after.text + "啊") in "就啊都啊"
            )
        ):
            index += 1
        else:
            break
    return index


def _is_predicate(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word is a verb or an adjective that says something of the subject."""
    token = tokens[index]
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if after is not None and after.text in ("了", "过", "着"):
        return True
    if token.text in ("是", "有", "没", "没有", "不是", "在"):
        return True
    if (index and tokens[index - 1].text in _DEGREES) or (token.text[0] in "太很" and len(token.text) == 2):
        return after is None or after.text != "的"
    if token.text in words_chinese.ATTRIBUTIVE_VERBS and after is not None and after.tag[0] == "n":
        return False
    if token.tag == "vn":
        return index > 0 and (after is None or after.tag in ("y", "punct"))
    if token.tag == "a":
        return after is None or after.tag not in ("n", "uj", "nr", "ns", "nz", "ng")
    return token.tag in _PREDICATES


def _has_subject(tokens: Sequence[Token]) -> bool:
    """Return whether a person or thing is named before the first verb, outside a prepositional phrase."""
    governed = False
    bounds = [index for index, token in enumerate(tokens[:_READ]) if token.text in _BOUNDS and index]
    if (
        bounds
        and bounds[-1] + 1 < len(tokens)
        and tokens[0].text not in PERSONAL
        and not any(token.tag == "p" for token in tokens[: bounds[-1]])
    ):
        # 结账的时候躲厕所
        tokens = tokens[bounds[-1] + 1 :]
    for index, token in enumerate(tokens):
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.text in words_chinese.PRONOUNS and token.text in PERSONAL | THIRD:
            if not governed or tokens[index - 1].tag != "p":
                return True
            continue
        if token.text in TIMES or token.text in _NO_SUBJECT or token.tag in _SKIPPED:
            continue
        if after is not None and after.tag == "f" and token.tag in ("n", "ns", "nz", "s"):
            # A place: 视频里一直看地板.
            continue
        if token.tag in ("m", "mq", "num"):
            if after is not None and after.tag[0] == "n" and not governed:
                return True
            continue
        if _is_predicate(tokens, index) and token.text != "在":
            return False
        if token.tag == "p" or token.text == "在":
            governed = True
        elif token.tag in SUBJECTS and not governed:
            return True
    return False


def _has_described_subject(tokens: Sequence[Token]) -> bool:
    """Return whether the subject may follow a relative clause: 卖豆腐的阿姨来了."""
    for index in range(1, min(len(tokens) - 2, _READ)):
        if tokens[index].text == "的" and tokens[index + 1].tag[0] == "n":
            return any(_is_predicate(tokens, at) for at in range(index + 2, len(tokens)))
    return False


def is_report(clause: Clause) -> bool:
    """Return whether a clause only says who said the next one, or that it is hearsay: 她说，"""
    return sum(len(token.text) for token in clause.tokens) <= _REPORT_MAX and bool(
        _REPORT.search(clause.said)
    )
