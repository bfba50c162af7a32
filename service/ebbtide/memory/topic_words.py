"""The subject of a question: topics, by aliases of slots and by the words with which people ask for them, and persons.

A topic that people ask for with the words of another one ("job" for the employer) weighs less, and so does one whose
values do not fit the question: "where" asks for places and organisations. "My sister" and 我哥 name a relative of the
user. The module is pure, and reads only the words of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from ebbtide.han import contains_han
from ebbtide.memory.slot_names import ALIASES, KIN, SLOTS, slot_of
from ebbtide.memory.subjects import INFORMAL, OTHER_PERSONS, RELATIVES
from ebbtide.memory.values import MAX_CHARS, normalised
from ebbtide.text_caches import text_cache

TASKS: Final = "task"
"""Stands for statements of the kind task, whatever their topic."""

_QUESTION_WORDS: Final = """
residence: live, lives, living, based, moved, 住, 住哪, 搬
occupation: work, profession, career, do for a living, do for work, 工作, 干什么, 做什么, 干什么的, 做什么的
employer: work, works, employer, company, job, 工作, 上班, 单位
workplace: work, office, 上班
education: study, studied, school, university, college, degree, 上学, 读书, 大学, 念
boss: boss, manager, supervisor, advisor, supervised, 老板, 导师, 领导
partner: partner, dating, married to, 老伴, 谈恋爱, 恋爱
marital_status: married, single, 结婚, 单身
language: speak, languages, language, 会说, 语言
native_language: languages, mother tongue, language, 母语, 语言
hometown: from, grew up, hometown, born, 哪里人, 老家, 出生
birthday: birthday, born, 生日
age: how old, age, 几岁, 多大
allergy: allergy, allergies, allergic, 过敏
medication: medicine, medication, pills, 药
diet: eat, diet, vegetarian, 吃
likes: like, likes, love, enjoy, favourite, 喜欢, 爱
dislikes: dislike, hate, avoid, 讨厌, 不喜欢
hobby: hobby, hobbies, free time, weekend, 爱好, 业余
pet: pet, pets, dog, cat, 宠物, 狗, 猫
vehicle: car, bike, van, drive, get around, 车
phone: phone, number, 电话, 手机
email: email, mail, 邮箱
name: called, name, who am i, who i am, 名字, 叫什么, 我是谁
habit: habit, habits, routine, routines, regularly, every day, every week, every month, every morning, every evening
habit: every monday, every tuesday, every wednesday, every thursday, every friday, every saturday, every sunday
habit: 习惯, 规律, 每天, 每周, 每个月, 每月
task: to do, to-do, todo, deadline, deadlines, tasks, remind, have to, need to, must, plan, plans
task: 待办, 没办, 要办, 要做, 提醒, 截止, 计划, 打算
"""
_ASKED_SHARE: Final = 0.9
"""Weight of a topic by the words of a question, relative to one by an alias."""
_UNFIT_SHARE: Final = 0.6
"""Weight of a topic whose values do not fit the question."""

_FITTING: Final = (
    (
        re.compile(
            r"\bwhere\b|\b(?:which|what) (?:city|town|country|company)\b|哪里|哪儿|在哪|哪家|哪个城市|什么地方"
        ),
        {"place", "organisation"},
    ),
    (re.compile(r"\bwho\b|谁|哪位"), {"person"}),
    (re.compile(r"\bwhen\b|什么时候|哪天|几号|哪年|几月"), {"date"}),
)
"""Question words, with the ranges of slots that they ask for."""

_OF_A_THING: Final = frozenset(["name", "age"])
"""Topics that a question about a pet means of the pet."""

_ANIMALS: Final = """
dog: dog, dogs, puppy, puppies, greyhound, labrador, poodle, husky, beagle, corgi, dachshund, spaniel, terrier, collie
dog: retriever, pug, bulldog, dalmatian, rottweiler, whippet, chihuahua, schnauzer, 狗, 犬, 柯基, 金毛, 泰迪, 哈士奇
dog: 拉布拉多, 边牧, 博美, 萨摩耶, 比熊
cat: cat, cats, kitten, kittens, siamese, sphynx, ragdoll, 猫, 英短, 美短
hamster: hamster, hamsters, 仓鼠
guinea pig: guinea pig, guinea pigs, 荷兰猪, 豚鼠
chinchilla: chinchilla, chinchillas, 龙猫
rabbit: rabbit, rabbits, bunny, bunnies, 兔
bird: bird, birds, parrot, parrots, budgie, budgies, canary, canaries, cockatiel, cockatiels, 鸟, 鹦鹉
fish: fish, goldfish, 鱼
turtle: turtle, turtles, tortoise, tortoises, 龟
horse: horse, horses, pony, ponies
snake: snake, snakes, 蛇
lizard: lizard, lizards, gecko, geckos, 蜥蜴, 守宫
hedgehog: hedgehog, hedgehogs, 刺猬
"""
_KEPT: Final = re.compile(r"\b(?:have|had|got|own|owned|keep|kept|called|names?|old)\b|[养有叫]|几岁|多大")
"""Words of a question for animals that means pets: do I have any dogs. Fear of snakes is another matter."""
_ANY_ANIMAL: Final = re.compile(r"\b(?:pets?|animals?)\b|宠物|动物")

_OWNED_PERSON: Final = re.compile(
    # A normalised text does not begin with "my" or 我的.
    r"(?:^|\b(?:my|our) )(?:(?:best|good|close|old|new|former|current|previous|next-door|upstairs) )?(WORDS)\b"
    r"|(?:^|我(?:们|家)?的?)(?:最好的|前|好|老|新|楼上的?|楼下的?|隔壁的?)?(HAN)".replace(
        "WORDS", "|".join(one for one in OTHER_PERSONS if not contains_han(one))
    ).replace("HAN", "|".join(filter(contains_han, OTHER_PERSONS)))
)
"""My boss, 我老板: the user's words for another person."""
_CAPITALISED: Final = r"[A-Z][a-zA-Z0-9À-ɏ-]{0,30}+(?: [A-Z][a-zA-Z0-9À-ɏ-]{0,30}+){0,3}+"
_NAMED: Final = re.compile(
    rf"\b(?:[Dd]oes|[Dd]id|[Ii]s|[Aa]re|[Ww]as|[Ww]ere|[Hh]as|[Hh]ad|[Cc]an|[Ww]ill|about"
    rf"|[Mm]y [a-z-]{{1,20}}+|我[\u4e00-\u9fff]{{1,6}}+)"
    rf" ?({_CAPITALISED})"
    rf"|\b({_CAPITALISED})'s\b|(?:^|[，。：, ])({_CAPITALISED}) ?(?=[\u4e00-\u9fff])"
)
"""A name where a question has a person or a thing that it is about."""
_NO_NAMES: Final = frozenset(
    [
        "i",
        "user",
        "users",
        "assistant",
        "what",
        "where",
        "who",
        "whom",
        "when",
        "how",
        "why",
        "which",
        "it",
        "that",
        "there",
        "here",
        "this",
        "he",
        "she",
        "let",
        "today",
        "tomorrow",
        "yesterday",
    ]
)
_SURNAMES: Final = (
    "王李张刘陈杨赵黄周吴徐孙胡朱林何郭罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜"
    "戴夏钟汪田任姜范姚谭廖邹熊陆郝孔崔邱秦顾侯邵孟龙段雷汤尹黎乔贺赖龚"
)
_GIVEN: Final = (
    "明红丽华强军芳娟敏静刚伟涛燕梅兰慧雪美玲霞英平杰宇云波斌辉鹏飞磊洋勇艳莉婷"
    "颖琳萍娜倩欣悦瑶佳怡琪月东亮健峰"
)
"""Characters of given names that follow 小 or 阿."""
_HAN_NAMED: Final = re.compile(
    rf"(?:^|[，。：, ]|请问|知道)([小老阿][{_SURNAMES}]|[小阿][{_GIVEN}]"
    rf"|(?!周[一二三四五六日末年])[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)"
    r"(?=住|在哪|在什么|对什么|对哪|在做|在干|是谁|是做|是哪|是什么|多大|几岁|今年|喜欢|做什么|干什么|叫|养|结婚"
    r"|的(?:电话|手机|生日|工作|邮箱|老家|家|职业|公司|年龄|地址|名字|住址))"
)
"""A Chinese name at the beginning of a clause: 小张, 小明, 王芳."""
_CLAUSE_END: Final = re.compile("[，。：；？！、,.:;?! ]")
_BESIDES: Final = re.compile(r"\b(?:to|for|with|from|by|than|as) (?:my|our)\b")
"""Words before a person whom a question names, but is not about: a present for my sister."""
_TELL: Final = re.compile(r"\b(?:tell|remind|show) me\b|告诉我|提醒我")

_OWNERS: Final = ("my ", "our ", "我的", "我们", "我家", "我", "")

_I: Final = frozenset(["i", "i'm", "i've"])
_I_ASK: Final = frozenset(["do", "am", "have", "did", "was", "can", "should"])
"""Verbs between a topic and the user who asks for it: what languages do I speak."""
_MY: Final = re.compile(
    r"(?:(?:current|present|new|old|own|home|mobile|work|private|personal|full|real|exact|first|last|main) ){0,2}"
)
"""Words between "my" and a topic."""
_MAX_BOUND_WORDS: Final = 5
_UNBOUND: Final = frozenset(
    ["that", "which", "who", "whose", "whom", "know", "knew", "met", "meet", "heard", "and"]
)
"""Words after which a clause is no longer about the user: do I know a person who lives in Porto."""
_OWN_HAN: Final = re.compile(r"我(?!们)(?:的)?([^我，。；：？！、,.:;?! 的认识]{1,10})")
"""A clause in Chinese about the user, up to the end of an attribute."""
_OF_THINGS: Final = frozenset(["name", "phone", "email", "birthday", "age"])
"""Topics that things have as well."""
_NOT_OF_USER: Final = frozenset([TASKS, "reminder", "goal"])
"""Topics of the user whose statements may have another subject, such as a task for Bob."""
_MAY_BE_OTHERS: Final = re.compile(
    r"\b(?:whose|anyone|anybody|someone|somebody|everyone|everybody|people|person|family|relatives?|both"
    r"|they|them|their|he|she|his|her|him|we|us|our|ours)\b"
    r"|\bwhom?\b(?! am i\b| (?:do|did) i (?:work|report)\b| (?:is|are|was|were) my\b|'s my\b)"
    r"|谁|哪位|他|她|我们|咱|大家|别人|家人|家里人|有人|某人"
)
"""Words of a question that may be about others than the user."""

RELATION_TOPICS: Final = ("kin", "relation", "relationship", "亲属", "关系")
"""Topics under which a relative may be stated, with the kind of relative as the value."""

_FIRST_PERSON: Final = re.compile(r"\b(?:i|me|my|mine|we|us|our|i'm|i've)\b|我|咱|俺")
_WORD_EDGE: Final = re.compile(r"[a-z0-9]|-[a-z]")
_PAST: Final = re.compile(
    r"\b(?:before|used to|use to|previously|formerly|earlier|first|last year|once|ago|was|were|did)\b"
    r"|以前|之前|原来|曾经|过去|当时|那时|第一年|从前"
)
_ONCE: Final = re.compile(
    r"\b(?:used? to|previously|formerly)\b|以前|曾经|从前|(?:之前|原来|过去)我?(?:都|是|住|在|做|用|养|叫|当)"
)
"""Words that ask only for an earlier time."""
_DID_I: Final = re.compile(r"\b(?:did|was|were) (?:i|we|my|our)\b")
_BEFORE: Final = re.compile(r"\b(?:before|earlier)\b")
"""Words that do so after `_DID_I`."""
_WHY: Final = re.compile(
    r"\b(?:why|because|reasons?|related|connect(?:s|ed|ion)?|caus(?:e|es|ed))\b|为什么|为何|原因|相关|有关|导致"
)
MAX_GENERAL_CHARS: Final = 80
"""Most characters of a question for everything about the user."""

_EVERYTHING: Final = re.compile(
    r"(?:\b(?:you|we) (?:(?:already|still|now|have|do) )?"
    r"(?:know|remember|recall|learned|learnt|stored|saved|noted|have)"
    r"|\b(?:is|are) (?:known|stored|remembered|saved)|\b(?:everything|anything|all|facts))"
    r"(?: so far| already)? (?:about|on) (?:me|myself|the user|user)(?: so far| already| now| by now| yet| at all)?"
    r"|who am i|(?:please )?(?:tell me about|describe|summari[sz]e) (?:me|myself|the user|user)"
)
"""The end of a question for everything that is known about the user."""
_EVERYTHING_HAN: Final = re.compile(
    r"(?:你|您|我们|都|还|已经|目前|现在|请|告诉我|关于(?:我|用户)的?|对(?:我|用户)|,| ){0,6}"
    r"(?:(?:我|用户)的(?:情况|信息)你?)?"
    r"(?:有|都|还){0,2}(?:知道|了解|记得|记住了?|掌握|存了|保存了){1,2}[了的]?"
    r"(?:关于)?(?:(?:我|用户)的?)?(?:多少|哪些|些?什么|一切|所有)(?:关于(?:我|用户)的?)?"
    r"(?:事情|事|信息|情况|东西|内容|了解)?(?:呢|吗|啊)?"
    r"|(?:你|您)?对(?:我|用户)有(?:多少|哪些|什么)了解|我是谁|(?:请)?(?:介绍|描述|总结)一下(?:我|用户)"
    r"|(?:说说|告诉我)你(?:知道|了解|记得)的(?:我|用户)"
)
"""The same in Chinese, as a whole question that names the user."""
_USER_HAN: Final = re.compile("我(?!们)|用户")


@dataclass(frozen=True, slots=True)
class Asked:
    """The topics and persons of a question."""

    text: str
    """The question, normalised, without the words for relatives."""
    topics: Mapping[str, float]
    """The weight of each slot that it names."""
    relatives: frozenset[str]
    """The relatives of the user that it names: slots of relatives, or other words for them."""
    is_in_first_person: bool
    """Whether the user speaks of himself, other than as the owner of a relative."""
    persons: frozenset[str] = frozenset()
    """The other persons of the user that it names, such as the boss."""
    named: frozenset[str] = frozenset()
    """The words of the names in it."""
    is_about_others: bool = False
    """Whether it names another person, and the user speaks of himself only as the owner of a person."""
    own_topics: frozenset[str] = frozenset()
    """The topics that it asks of the user alone: where do I live, my phone number."""
    animals: frozenset[str] = frozenset()
    """The kinds of pets that it asks for, if it asks for no other pets."""


@text_cache(256)
def asked(question: str) -> Asked:
    """Return what a question is about."""
    text, relatives = normalised(question), set[str]()
    for word, relative in _relatives():
        for owner in _OWNERS if word in text else ():
            # Without an owner, only Chinese names the user's relatives, with two characters or more.
            is_named = owner or (contains_han(word) and len(word) > 1 and word not in INFORMAL)
            if is_named and (rest := _cut(owner + word, text)) is not None:
                relatives.add(relative)
                text = rest
    topics = dict(_topics_in(text))
    if len(topics) > 1:
        topics.pop("name", None)
    animals = animals_in(text)
    if animals and topics.keys() <= _OF_A_THING and _KEPT.search(text):
        topics["pet"] = _ASKED_SHARE
    if "pet" in topics:
        topics = {slot: weight for slot, weight in topics.items() if slot not in _OF_A_THING}
    fitting = [ranges for words, ranges in _FITTING if words.search(text)]
    if fitting:
        allowed = set[str]().union(*fitting)
        for slot in topics:
            if slot in SLOTS and slot_of(slot).range not in allowed:
                topics[slot] *= _UNFIT_SHARE
    topics |= {one: 1.0 for one in relatives if one == "partner"}
    persons = frozenset(OTHER_PERSONS[found[1] or found[2]] for found in _OWNED_PERSON.finditer(text))
    named = frozenset(_named(question))
    rest = _TELL.sub(" ", _OWNED_PERSON.sub(" ", text))
    is_about_others = (
        bool(relatives or persons or named)
        and _FIRST_PERSON.search(rest) is None
        and _BESIDES.search(normalised(question)) is None
    )
    is_in_first_person = _FIRST_PERSON.search(text) is not None
    may_be_others = relatives or persons or named or _MAY_BE_OTHERS.search(text) or _names_a_person(text)
    own_topics = frozenset() if may_be_others else frozenset(_own_topics(question, text)) & topics.keys()
    return Asked(
        text,
        topics,
        frozenset(relatives),
        is_in_first_person,
        persons,
        named,
        is_about_others,
        own_topics,
        frozenset() if _ANY_ANIMAL.search(text) else animals,
    )


def _names_a_person(text: str) -> bool:
    """Return whether a text has a word for a relative or another person, of any owner."""
    return any(
        word in text and _cut(word, text) is not None
        for word in (*RELATIVES, *OTHER_PERSONS)
        if len(word) > 1 and word not in INFORMAL
    )


def _own_topics(question: str, text: str) -> Iterator[str]:
    """Yield the topics that a question without another person asks of the user."""
    # A normalised text does not begin with "my" or 我的.
    if question.strip().casefold().startswith("my "):
        text = f"my {text}"
    elif question.strip().startswith("我的"):
        text = f"我的{text}"
    words = text.split()
    for at, word in enumerate(words):
        if word in _I:
            for slot, _ in _topics_in(" ".join(_clause(words[at + 1 :]))):
                if slot not in _OF_THINGS | _NOT_OF_USER:
                    yield slot
            if at and (verb := words[at - 1]) in _I_ASK:
                asked_for = " ".join(words[max(0, at - 1 - _MAX_BOUND_WORDS) : at - 1])
                for slot, _ in _topics_in(asked_for):
                    if slot not in _NOT_OF_USER and (verb == "am" or slot not in _OF_THINGS):
                        yield slot
        elif word == "my":
            owned = " ".join(_clause(words[at + 1 :]))
            owned = owned[_MY.match(owned).end() :]  # type: ignore[union-attr]
            for name, slots in _words():
                if owned == name or owned.startswith(f"{name} "):
                    yield from (slot for slot in slots if slot not in _NOT_OF_USER)
                    break
    for found in _OWN_HAN.finditer(text):
        yield from (slot for slot, _ in _topics_in(found[1]) if slot not in _NOT_OF_USER)


def _clause(words: Sequence[str]) -> Iterator[str]:
    """Yield the words after "I" or "my", up to one that begins a clause about others."""
    for word in words[:_MAX_BOUND_WORDS]:
        if word in _UNBOUND:
            return
        yield word


def _named(question: str) -> Iterator[str]:
    """Yield the words of the names of persons or things that a question is about, normalised."""
    text = question[:MAX_CHARS].replace("’", "'")
    found = [one[1] or one[2] or one[3] for one in _NAMED.finditer(text)]
    text = _OWNED_PERSON.sub("，", normalised(text))
    found += [one[1] for one in _HAN_NAMED.finditer(text)]
    for name in found:
        yield from (word for word in normalised(name).split() if word not in _NO_NAMES)


def mentions(words: str, asked_: Asked) -> bool:
    """Return whether a text mentions a person whom a question names: by name, or by relation if there is no name."""
    text = normalised(words)
    if asked_.named:
        return any(_cut(name, text) is not None for name in asked_.named)
    wanted = asked_.relatives | asked_.persons
    listed = (*_relatives(), *OTHER_PERSONS.items())
    return any(
        whom in wanted and word not in INFORMAL and word in text and _cut(word, text) is not None
        for word, whom in listed
    )


def asks_for_the_past(question: str) -> bool:
    """Return whether the words of a question ask for an earlier time."""
    return _PAST.search(normalised(question)) is not None


def asks_only_for_the_past(question: str) -> bool:
    """Return whether the words of a question ask for nothing but an earlier time: where did I live before?"""
    text = normalised(question)
    did = _DID_I.search(text)
    return _ONCE.search(text) is not None or (did is not None and _BEFORE.search(text, did.end()) is not None)


def asks_for_everything(question: str) -> bool:
    """Return whether a question asks for everything that is known about the user."""
    text = normalised(question)
    if len(text) > MAX_GENERAL_CHARS:
        return False
    if contains_han(text):
        return _USER_HAN.search(text) is not None and _EVERYTHING_HAN.fullmatch(text) is not None
    found = _EVERYTHING.search(text)
    return found is not None and found.end() == len(text)


def asks_why(question: str) -> bool:
    """Return whether a question asks for reasons, or for what is related."""
    return _WHY.search(normalised(question)) is not None


@text_cache(4096)
def animals_in(text: str) -> frozenset[str]:
    """Return the kinds of pets that a text names: a poodle is a dog."""
    found, left = set[str](), normalised(text)
    for word, kind in _animal_words():
        if word in left and (rest := _cut(word, left)) is not None:
            found.add(kind)
            left = rest
    return frozenset(found)


@text_cache(4096)
def topics_of_value(value: str) -> frozenset[str]:
    """Return the slots that a value names: a cargo bike is a vehicle."""
    return frozenset(slot for slot, _ in _topics_in(normalised(value)))


def are_same_relative(stated: str, named: str) -> bool:
    """Return whether the words of a statement state the relative that a question names."""
    found = RELATIVES.get(normalised(stated))
    if found is None:
        return False
    families = {
        "parents": ("mother", "father"),
        "child": ("son", "daughter"),
        "grandchild": ("grandson", "granddaughter"),
    }
    return (
        found == named
        or found in families.get(named, ())
        or found.removeprefix("elder_").removeprefix("younger_") == named
        or named.removeprefix("elder_").removeprefix("younger_") == found
    )


def names(words: str, asked_: Asked) -> bool:
    """Return whether a question contains a name. One of a single Chinese character begins a clause."""
    return names_normalised(normalised(words), asked_)


def names_normalised(name: str, asked_: Asked) -> bool:
    """Return whether a question contains a name that is normalised already."""
    text = asked_.text
    if name not in text:
        return False
    if len(name) == 1 and contains_han(name):
        return any(clause.lstrip().startswith(name) for clause in _CLAUSE_END.split(text))
    return _cut(name, text) is not None


def _topics_in(text: str) -> Iterator[tuple[str, float]]:
    """Yield the slots that a text names, with their weights. Words within longer ones do not count."""
    found: dict[str, float] = {}
    for word, slots in _words():
        if word in text and (rest := _cut(word, text)) is not None:
            for slot, weight in slots.items():
                found[slot] = max(weight, found.get(slot, 0.0))
            text = rest
    yield from found.items()


@cache
def _words() -> tuple[tuple[str, Mapping[str, float]], ...]:
    """Return (words, weight of each slot that they name), the longest words first."""
    found: dict[str, dict[str, float]] = {}
    for slot, word in _listed(_QUESTION_WORDS):
        found.setdefault(word, {})[slot] = _ASKED_SHARE
    for alias, slot in ALIASES.items():
        if slot not in KIN:
            found.setdefault(alias, {})[slot] = 1.0
    return tuple(sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0])))


@cache
def _relatives() -> tuple[tuple[str, str], ...]:
    """Return (word, relative), the longest words first."""
    return tuple(sorted(RELATIVES.items(), key=lambda pair: (-len(pair[0]), pair)))


@cache
def _animal_words() -> tuple[tuple[str, str], ...]:
    """Return (word, kind of pet), the longest words first."""
    words = ((word, kind) for kind, word in _listed(_ANIMALS))
    return tuple(sorted(words, key=lambda pair: (-len(pair[0]), pair)))


def _listed(lines: str) -> Iterator[tuple[str, str]]:
    for line in lines.strip().splitlines():
        slot, _, words = line.partition(": ")
        for word in words.split(", "):
            yield slot, normalised(word)


def _cut(words: str, text: str) -> str | None:
    """Return a text without some words, whole words where they are Latin; None if they do not occur."""
    parts, at, is_han = [], 0, contains_han(words)
    begin = text.find(words)
    while begin >= 0:
        end = begin + len(words)
        is_inside = (begin and _WORD_EDGE.match(text[begin - 1])) or _WORD_EDGE.match(text[end : end + 2])
        if is_han or not is_inside:
            parts.append(text[at:begin])
            at = end
        begin = text.find(words, end)
    return ("，" if is_han else " ").join([*parts, text[at:]]) if parts else None
