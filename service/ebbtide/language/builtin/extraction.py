"""Extraction of statements by closed rules: what a user says about himself and his relatives, in English and Chinese.

A rule matches a whole form of words, such as "I live in …" or 我对…过敏. Precision comes first: a sentence that asks,
guesses, wishes, plans, reports, quotes or sets a condition gives no statement, and an object with a pronoun is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ebbtide.han import contains_han

MAX_STATEMENTS: Final = 4
"""Most statements of one message."""

MAX_CHARS: Final = 4_000
MAX_OBJECT_CHARS: Final = 40

Kind = Literal["fact", "preference", "relation", "task"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """A statement in a message, with its sentence as a range of characters."""

    offset: int
    length: int
    slot: str
    object: str
    kind: Kind = "fact"
    negated: bool = False


_SENTENCE: Final = re.compile(r"[^.!?;。！？；\n]{2,300}[.!?;。！？；\n]?")
_UNSAID_EN: Final = re.compile(
    r"\b(?:if|unless|maybe|perhaps|probably|possibly|might|could|would|should|think|guess|suppose|wish|hope|want"
    r"|wanted|planning|plan|going to|gonna|used to|said|says|told|tells|heard|according|dream|dreamt|pretend|imagine"
    r"|almost|nearly|never mind|joking|kidding|as if|like to|love to|supposed|someday|thinking|considering)\b"
)
_UNSAID_ZH: Final = re.compile(
    r"如果|要是|假如|可能|也许|大概|好像|似乎|想要|想去|希望|打算|计划|准备|据说|听说|他说|她说|曾经|以前|要不|吗|呢|是不是|难道"
    r"|梦|假装|差点|开玩笑|应该|觉得|以为|万一|谁|什么|哪|怎么|多少|几"
)
_MAY: Final = re.compile(r"\bmay\b")
"""The verb; the month begins with a capital."""
_QUOTES: Final = re.compile(r"[\"“”«»「」『』]")
_PRONOUN: Final = re.compile(
    r"\b(?:i|me|my|mine|you|your|he|him|his|she|her|it|its|we|us|our|they|them|their|this|that|these|those|there|here"
    r"|what|which|who|something|anything|everything|someone|one|ones|lot|bit)\b|[我你您他她它咱这那啥]|自己|大家|东西|事情"
)
_STOP_EN: Final = re.compile(
    r",|\s(?:and|but|because|so|since|for|with|near|in|on|at|last|this|next|now|when|where|which|that|who|while|if|as"
    r"|to|from|by|after|before|until|though|these|right|again|already|currently|together|too|anymore|than|not|until"
    r"|about|over|during|every|just|only|also|then|or|five|ten|outside|close)\b"
)
_STOP_ZH: Final = re.compile(
    r"[，、,：:（(]|和|跟|但|因为|所以|不过|而且|的时候|之后|以后|附近|已经|很久|快|了|呀|啊|吧|呢|哦|啦"
)

_PROFESSION_WORDS: Final = """
    teacher nurse doctor engineer lawyer architect accountant chef cook carpenter electrician plumber midwife vet
    pharmacist dentist journalist writer author photographer designer developer programmer scientist researcher
    professor librarian musician cellist violinist pianist painter baker farmer pilot driver paramedic firefighter
    police translator economist analyst consultant manager student surgeon therapist psychologist barber hairdresser
    tailor mechanic welder gardener biologist chemist physicist mathematician historian actor actress editor
"""
_PROFESSIONS: Final = frozenset(_PROFESSION_WORDS.split())
_PROFESSIONS_ZH: Final = re.compile(
    r"(?:.{0,6})(?:老师|教师|护士|医生|工程师|律师|建筑师|会计|厨师|木匠|电工|程序员|记者|作家|摄影师|设计师|科学家|研究员|教授|司机"
    r"|飞行员|消防员|警察|翻译|分析师|顾问|经理|学生|店员|销售|农民|工人|演员|编辑|药剂师|兽医|理发师|调度员|安全员)"
)

_KIN_EN: Final = {
    "wife": "partner",
    "husband": "partner",
    "girlfriend": "partner",
    "boyfriend": "partner",
    "partner": "partner",
    "mother": "mother",
    "mum": "mother",
    "mom": "mother",
    "father": "father",
    "dad": "father",
    "sister": "sister",
    "brother": "brother",
    "son": "son",
    "daughter": "daughter",
    "boss": "boss",
    "dog": "pet",
    "cat": "pet",
}
_KIN_ZH: Final = {
    "妻子": "partner",
    "老婆": "partner",
    "丈夫": "partner",
    "老公": "partner",
    "女朋友": "partner",
    "男朋友": "partner",
    "妈妈": "mother",
    "母亲": "mother",
    "爸爸": "father",
    "父亲": "father",
    "姐姐": "elder_sister",
    "妹妹": "younger_sister",
    "哥哥": "elder_brother",
    "弟弟": "younger_brother",
    "儿子": "son",
    "女儿": "daughter",
    "老板": "boss",
    "狗": "pet",
    "猫": "pet",
}

_I: Final = r"(?<![\w'])i"
_BEGIN: Final = r"(?:^\s{0,3}|[,;] |(?:and|but) )i(?![\w'])"
_AM: Final = r"(?:'m| am)"
_SOON: Final = r"(?: (?:just|recently|finally|now|currently|also|really|still|have|'ve))?+"
_VERB_OBJECT: Final = r" (?P<object>[\w][^.!?;]{0,80})"
_RULES_EN: Final = tuple(
    (re.compile(pattern), slot, kind)
    for pattern, slot, kind in (
        (rf"{_I}(?:'ve)?{_SOON} (?:live|am living|'m living) in{_VERB_OBJECT}", "residence", "fact"),
        (
            rf"(?<![\w'])(?:i|we)(?:'ve)?{_SOON}{_SOON} (?:moved|relocated) to{_VERB_OBJECT}",
            "residence",
            "fact",
        ),
        (rf"{_I}{_AM}{_SOON} based in{_VERB_OBJECT}", "residence", "fact"),
        (rf"(?<![\w'])my home is in{_VERB_OBJECT}", "residence", "fact"),
        (rf"{_I}(?:{_AM}| come) (?:originally )?from{_VERB_OBJECT}", "hometown", "fact"),
        (rf"{_I} grew up in{_VERB_OBJECT}", "hometown", "fact"),
        (rf"{_I}{_SOON} work (?:for|at){_VERB_OBJECT}", "employer", "fact"),
        (rf"{_I}{_SOON} work as an?{_VERB_OBJECT}", "occupation", "fact"),
        (rf"{_I}{_AM}{_SOON} an?(?P<profession>{_VERB_OBJECT})", "occupation", "fact"),
        (rf"(?<![\w'])my birthday is(?: on)?(?: the)?{_VERB_OBJECT}", "birthday", "fact"),
        (rf"{_I}{_AM} (?P<object>\d{{1,3}}) years old", "age", "fact"),
        (rf"(?<![\w'])my name is{_VERB_OBJECT}", "name", "fact"),
        (rf"{_I}{_AM}{_SOON} allergic to{_VERB_OBJECT}", "allergy", "fact"),
        (rf"{_I}{_AM}{_SOON} (?P<denied>not) allergic to{_VERB_OBJECT}", "allergy", "fact"),
        (rf"{_I}{_SOON} speak{_VERB_OBJECT}", "language", "fact"),
        (rf"{_I}{_AM}{_SOON} (?:an? )?(?P<object>vegetarian|vegan)\b", "diet", "fact"),
        (rf"{_I}{_AM}{_SOON} (?P<object>married|divorced|engaged)\b(?! to)", "marital_status", "fact"),
        (rf"{_BEGIN}{_SOON} (?:like|love|enjoy){_VERB_OBJECT}", "likes", "preference"),
        (
            rf"{_BEGIN}{_SOON} (?:hate|dislike|can't stand|cannot stand|don't like){_VERB_OBJECT}",
            "likes-",
            "preference",
        ),
        (
            r"(?<![\w'])my favou?rite (?P<thing>(?!thing|part|one)[a-z]{3,20}) is (?P<object>[\w][^.!?;]{0,60})",
            "favourite:",
            "preference",
        ),
        (
            r"(?<![\w'])my (?P<kin>[a-z]{3,10})(?:'s name is| is (?:called|named))(?P<object> [\w][^.!?;]{0,40})",
            "",
            "relation",
        ),
        (r"(?<![\w'])my (?:phone|mobile)(?: number)? is (?P<object>[+\d][\d -]{4,20})", "phone", "fact"),
        (rf"(?:^\s{{0,3}}|[,;] |please |you )remind me to{_VERB_OBJECT}", "reminder", "task"),
    )
)
_TIME_ZH: Final = (
    r"(?:现在|目前|如今|刚|刚刚|已经|今年|去年|上个?月|上周|昨天|最近|[一二三四五六七八九十]{1,2}月){0,2}+"
)
_BEGIN_ZH: Final = r"(?:^\s{0,3}|[，,；])"
_REST_ZH: Final = r"(?P<object>[^，。！？；,.!?;\s]{1,30})"
_RULES_ZH: Final = tuple(
    (re.compile(pattern), slot, kind)
    for pattern, slot, kind in (
        (rf"我们?{_TIME_ZH}(?:就)?住在{_REST_ZH}", "residence", "fact"),
        (rf"我们?{_TIME_ZH}搬(?:到|去|来)了?{_REST_ZH}", "residence", "fact"),
        (rf"我(?:的)?老家(?:是|在){_REST_ZH}", "hometown", "fact"),
        (rf"我来自{_REST_ZH}", "hometown", "fact"),
        (rf"我{_TIME_ZH}在(?P<object>[^，。！？；,.!?;\s]{{1,20}}?)(?:上班|工作)", "employer", "fact"),
        (
            rf"我{_TIME_ZH}是(?:一名|一个|一位|名|个)?(?P<profession>(?P<object>[^，。！？；,.!?;\s]{{2,12}}))",
            "occupation",
            "fact",
        ),
        (rf"我的?(?:职业|工作)是{_REST_ZH}", "occupation", "fact"),
        (rf"我的?生日是{_REST_ZH}", "birthday", "fact"),
        (r"我今年(?P<object>\d{1,3}|[一二三四五六七八九十]{1,4})岁", "age", "fact"),
        (rf"我(?:的名字)?叫{_REST_ZH}", "name", "fact"),
        (rf"我的名字是{_REST_ZH}", "name", "fact"),
        (
            r"我(?P<denied>不)?对(?P<object>[^，。！？；,.!?;\s]{1,12}?)(?P<denied2>不)?过敏",
            "allergy",
            "fact",
        ),
        (rf"我会说{_REST_ZH}", "language", "fact"),
        (r"我(?:一直|现在)?(?:吃(?P<object>素))", "diet", "fact"),
        (r"我(?P<object>离婚|结婚|订婚)了", "marital_status", "fact"),
        (
            rf"{_BEGIN_ZH}我(?:很|最|特别|非常|超|挺|真的很)?(?:喜欢|爱)(?![的用在是]){_REST_ZH}",
            "likes",
            "preference",
        ),
        (
            rf"{_BEGIN_ZH}我(?:很|最|特别|非常)?(?:不喜欢|讨厌|不爱)(?![的用在是]){_REST_ZH}",
            "likes-",
            "preference",
        ),
        (rf"我的?(?P<kin>[^，。！？；,.!?;\s的叫]{{1,3}})(?:叫|的名字是|名叫){_REST_ZH}", "", "relation"),
        (r"我的?(?:手机号|手机|电话)(?:号码?)?是(?P<object>[\d -]{5,20})", "phone", "fact"),
        (rf"提醒我{_REST_ZH}", "reminder", "task"),
    )
)


def extract(text: str) -> list[Extracted]:
    """Return the statements in a message of a user, at most four, in order. Linear in the text's length."""
    found: list[Extracted] = []
    for sentence in _SENTENCE.finditer(text[:MAX_CHARS]):
        for one in _in_sentence(sentence.group(), sentence.start()):
            if len(found) < MAX_STATEMENTS and all(
                (one.slot, one.object) != (e.slot, e.object) for e in found
            ):
                found.append(one)
    return found


Unsaid = Literal["", "question", "quotation", "unsaid"]


def why_unsaid(sentence: str, *, is_reminder: bool = False) -> Unsaid:
    """Return why a sentence states nothing; empty if it states something.

    `unsaid` covers guesses, wishes, plans, reports, conditions and the past. A reminder may contain such words.
    """
    if sentence.rstrip()[-1:] in ("?", "？"):
        return "question"
    if _QUOTES.search(sentence):
        return "quotation"
    if is_reminder:
        return ""
    unsaid = _UNSAID_ZH if contains_han(sentence) else _UNSAID_EN
    return "unsaid" if unsaid.search(_folded(sentence)) or _MAY.search(sentence) else ""


def asks_for_reminder(sentence: str) -> bool:
    """Return whether a sentence asks to be reminded of something."""
    folded = _folded(sentence)
    return any(slot == "reminder" and rule.search(folded) for rule, slot, _ in (*_RULES_EN, *_RULES_ZH))


def contains_pronoun(text: str) -> bool:
    """Return whether a value contains a pronoun or another word that names nothing."""
    return _PRONOUN.search(_folded(text)) is not None


def _folded(text: str) -> str:
    return text.casefold().replace("’", "'")


def _in_sentence(sentence: str, begin: int) -> Iterator[Extracted]:
    is_unsaid = why_unsaid(sentence)
    if is_unsaid in ("question", "quotation"):
        return
    is_chinese, folded = contains_han(sentence), _folded(sentence)
    if len(folded) != len(sentence):
        return
    lead = len(sentence) - len(sentence.lstrip())
    length = len(sentence.strip().rstrip(".!;。！；"))
    for pattern, slot, kind in _RULES_ZH if is_chinese else _RULES_EN:
        match = pattern.search(folded)
        is_reminder = slot == "reminder"
        if match is None or (is_unsaid and not is_reminder):
            continue
        groups = match.groupdict()
        place = match.start("object")
        said = sentence[place : match.end("object")]
        value = said.strip() if is_reminder else _trimmed(said, is_chinese=is_chinese)
        name = _slot_of(slot, groups, is_chinese=is_chinese)
        if not name or not _is_value(value, said, name, kind, groups, is_chinese=is_chinese):
            continue
        is_denied = slot == "likes-" or bool(groups.get("denied") or groups.get("denied2"))
        yield Extracted(begin + lead, length, name, value, kind, is_denied)  # type: ignore[arg-type]


def _slot_of(slot: str, groups: dict[str, str | None], *, is_chinese: bool) -> str:
    if slot == "favourite:":
        return f"favourite:{groups['thing']}"
    if slot:
        return slot.removesuffix("-")
    return (_KIN_ZH if is_chinese else _KIN_EN).get(groups["kin"] or "", "")


def _trimmed(said: str, *, is_chinese: bool) -> str:
    """Return the object up to the end of its clause."""
    said = said.strip()
    stop = (_STOP_ZH if is_chinese else _STOP_EN).search(said if is_chinese else said.casefold())
    value = said[: stop.start()] if stop and stop.start() else "" if stop else said
    return value.strip(" ,.，。、'\"")


_HINTS: Final = (
    "the ",
    "to ",
    "how",
    "when",
    "being",
    "having",
    "all ",
    "also ",
    "not ",
    "getting ",
    "going",
    "my ",
)
_CLAUSE_ENDS_EN: Final = re.compile(r"\s?(?:,|and\b|but\b|because\b|so\b|too\b|or\b)")
_CLAUSE_ENDS_ZH: Final = re.compile(r"[，、,]|和|跟|但|因为|所以|不过|而且")


def _is_whole_preference(value: str, said: str, *, is_chinese: bool) -> bool:
    """Return whether a liked thing ends where its clause ends, so that nothing is cut off from it."""
    rest = said.strip()[len(value) :].lstrip(" .'\"")
    if is_chinese:
        ends = not rest or _CLAUSE_ENDS_ZH.match(rest) is not None
        return ends and len(value) <= 10 and not value.endswith(("的", "地"))
    ends = not rest or _CLAUSE_ENDS_EN.match(rest) is not None
    return ends and len(value.split(" ")) <= 4 and not value.startswith(_HINTS)


def _is_value(
    value: str, said: str, slot: str, kind: str, groups: dict[str, str | None], *, is_chinese: bool
) -> bool:
    """Return whether an object is whole: short, without pronouns, a name where a name belongs."""
    folded = value.casefold()
    if not value or len(value) > (120 if kind == "task" else MAX_OBJECT_CHARS):
        return False
    if kind != "task" and _PRONOUN.search(folded):
        return False
    if kind == "preference" and not _is_whole_preference(folded, said.casefold(), is_chinese=is_chinese):
        return False
    if slot in ("residence", "hometown", "employer", "name") and not is_chinese:
        # Names begin with a capital; "in a small flat" is no place that can be looked up.
        return value[:1].isupper() or value[:1].isdigit()
    if groups.get("profession"):
        if is_chinese:
            return _PROFESSIONS_ZH.fullmatch(value) is not None
        return folded.split(" ")[-1].rstrip("s") in _PROFESSIONS
    return True
