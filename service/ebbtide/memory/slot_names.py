"""Slots: the named properties of which statements are made, with their aliases and cardinality (knowledge model).

A slot of cardinality `one` has one value at a time, one of cardinality `few` rarely more than one, and one of
cardinality `many` any number. A statement that is true now in a lasting slot is never forgotten. A topic that no slot
knows is a slot of its own, of cardinality `many`.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ebbtide.han import contains_han
from ebbtide.memory.values import normalised
from ebbtide.text_caches import text_cache

Cardinality = Literal["one", "few", "many"]
Range = Literal["text", "number", "date", "person", "organisation", "place", "language"]

FAVOURITE: Final = "favourite:"
MAX_SLOT_CHARS: Final = 64


class Slot(NamedTuple):
    """A slot: its name, how many values it has at a time, what the values are, and whether it is lasting."""

    name: str
    cardinality: Cardinality = "many"
    range: Range = "text"
    is_lasting: bool = False


_TABLE: Final = """
name               one  text          full name, is called, called, 名字, 姓名, 全名, 叫, 本名
birthday           one  date          date of birth, birth date, born on, 生日, 出生日期, 生于
gender             one  text          sex, 性别
age                one  number        years old, 年龄, 年纪, 岁数
residence          one  place         lives in, living in, home, address, current city, lives, moved to, moves to,
    relocated to, 住在, 居住地, 住址, 住处, 现居, 居住, 搬到, 搬去, 搬家到
hometown           one  place         home town, from, comes from, born in, birthplace, 家乡, 老家, 故乡,
    籍贯, 出生地, 来自
height             one  number        身高
native_language    one  language      mother tongue, first language, 母语
marital_status     one  text          marriage, relationship status, 婚姻状况, 婚姻, 婚否
employer           few  organisation  works for, works at, company, started working at, started working for,
    starts working at, 公司, 单位, 工作单位, 雇主, 就职于, 入职, 跳槽到
workplace          few  place         works in, office, place of work, 工作地点, 办公地点, 上班地点
occupation         few  text          job, profession, works as, job title, position, role, 职业, 工作, 职位, 岗位
education          few  text          degree, studies, school, university, 学历, 学校, 教育, 毕业院校, 专业
phone              few  text          phone number, telephone, mobile, mobile number, 电话, 手机, 手机号,
    电话号码, 联系电话
email              few  text          e-mail, mail address, email address, 邮箱, 电子邮箱, 邮件, 电子邮件
diet               few  text          eats, 饮食, 饮食习惯
partner            few  person        spouse, husband, wife, girlfriend, boyfriend, 伴侣, 配偶, 丈夫, 妻子, 老公, 老婆,
    男朋友, 女朋友, 对象
boss               few  person        manager, supervisor, 老板, 上司, 领导, 经理
allergy            many text          allergies, allergic to, is allergic to, 过敏, 对…过敏, 过敏原
medication         many text          medicine, takes, drug, medications, 药, 用药, 服药, 药物
pet                many text          pets, dog, cat, has a pet, 宠物, 狗, 猫
language           many language      languages, speaks, 语言, 会说, 说
mother             many person        mom, mum, 妈妈, 母亲
father             many person        dad, 爸爸, 父亲
sister             many person        sisters, 姐妹
elder_sister       many person        older sister, 姐姐
younger_sister     many person        little sister, 妹妹
brother            many person        brothers, 兄弟
elder_brother      many person        older brother, 哥哥
younger_brother    many person        little brother, 弟弟
son                many person        sons, 儿子
daughter           many person        daughters, 女儿
child              many person        children, kids, kid, 孩子, 小孩
grandmother        many person        grandma, 奶奶, 祖母
maternal_grandmother many person      外婆, 姥姥, 外祖母
grandfather        many person        grandpa, 爷爷, 祖父
maternal_grandfather many person      外公, 姥爷, 外祖父
uncle              many person        叔叔
elder_uncle        many person        伯伯, 大伯
maternal_uncle     many person        舅舅
aunt               many person        姑姑, 姑妈
maternal_aunt      many person        阿姨, 姨妈
cousin             many person        表哥, 表弟, 表姐, 表妹, 堂哥, 堂弟, 堂姐, 堂妹
friend             many person        friends, best friend, 朋友, 好友, 闺蜜
roommate           many person        roommates, flatmate, flatmates, housemate, 室友, 舍友
colleague          many person        coworker, co-worker, colleagues, 同事
hobby              many text          hobbies, interest, interests, 爱好, 兴趣, 业余爱好
likes              many text          like, loves, enjoys, 喜欢, 爱, 喜爱, 爱吃
dislikes           many text          hates, does not like, 不喜欢, 讨厌
skill              many text          skills, can, is good at, 技能, 擅长, 特长
vehicle            many text          car, drives, bike, 车, 汽车, 开的车
reminder           many text          to do, todo, task, remind me, 提醒, 待办, 任务
goal               many text          goals, wants to, plans to, 目标, 计划, 打算
health             many text          illness, condition, disease, 健康, 疾病, 病
"""

KIN: Final = frozenset(
    [
        "mother",
        "father",
        "sister",
        "elder_sister",
        "younger_sister",
        "brother",
        "elder_brother",
        "younger_brother",
        "son",
        "daughter",
        "child",
        "grandmother",
        "maternal_grandmother",
        "grandfather",
        "maternal_grandfather",
        "uncle",
        "elder_uncle",
        "maternal_uncle",
        "aunt",
        "maternal_aunt",
        "cousin",
    ]
)
"""The slots of relatives."""

_LASTING: Final = KIN | {"allergy", "medication", "pet", "language"}
"""The lasting slots of cardinality `many`. All slots of the other cardinalities are lasting."""

DATES: Final = frozenset({"birthday"})
"""The slots whose value is a date. It is not the time from which the statement is true."""

_FAVOURITES: Final = (FAVOURITE, "favorite:", "favourite ", "favorite ", "最喜欢的", "最爱的", "最喜欢")

_FAVOURITE_THINGS: Final = """
colour: color, colours, colors, 颜色
food: foods, 食物
film: films, movie, movies, 电影
book: books, 书, 书籍
music: 音乐
song: songs, 歌, 歌曲
sport: sports, 运动
season: seasons, 季节
animal: animals, 动物
drink: drinks, beverage, beverages, 饮料, 饮品
fruit: fruits, 水果
city: cities, 城市
place: places, 地方
team: teams, 球队
author: authors, writer, writers, 作家
singer: singers, 歌手
game: games, 游戏
"""
_THINGS: Final = {
    alias: thing
    for thing, _, aliases in (line.partition(": ") for line in _FAVOURITE_THINGS.strip().splitlines())
    for alias in aliases.split(", ")
}
"""From another word for a thing of which people have a favourite to its name in slots."""


def _read_table() -> tuple[dict[str, Slot], dict[str, str]]:
    slots: dict[str, Slot] = {}
    names: dict[str, str] = {}
    for line in _TABLE.replace(",\n   ", ",").strip().splitlines():
        name, cardinality, kind, aliases = line.split(None, 3)
        slots[name] = Slot(name, cardinality, kind, cardinality != "many" or name in _LASTING)  # type: ignore[arg-type]
        for alias in (name, name.replace("_", " "), *aliases.split(", ")):
            key = normalised(alias)
            assert names.setdefault(key, name) == name, f"{alias!r} is an alias of two slots"
    return slots, names


SLOTS, ALIASES = _read_table()
"""The slots by name; the slot of each alias, normalised."""


_CHINESE: Final = {"event": "事件", "appointment": "日程", "habit": "习惯"} | {
    name: alias for alias, name in reversed(ALIASES.items()) if contains_han(alias)
}
"""The first Chinese alias of each slot, and the Chinese names of the topics that rules give."""

_CHINESE_THINGS: Final = {thing: word for word, thing in reversed(_THINGS.items()) if contains_han(word)}


def label(name: str, language: Literal["en", "zh"]) -> str:
    """Return the words for a slot: its first alias in Chinese, else its name."""
    if language == "zh" and name.startswith(FAVOURITE):
        thing = name.removeprefix(FAVOURITE)
        return f"最喜欢的{_CHINESE_THINGS.get(thing, thing)}"
    words = _CHINESE.get(name, "") if language == "zh" else ""
    return words or name.replace("_", " ")


@text_cache(1024)
def canonical(topic: str) -> str:
    """Return the name of the slot of a topic in English or Chinese; the normalised topic if no slot has this alias.

    The result is empty if the topic has no word.
    """
    key = normalised(topic.replace("_", " "))
    if (spaced := key.replace("-", " ")) in ALIASES:
        key = spaced
    for prefix in ("", "my ", "我的", "has ", "is ", "有"):
        if key.startswith(prefix) and key.removeprefix(prefix) in ALIASES:
            return ALIASES[key.removeprefix(prefix)]
    own = key.removeprefix("my ").removeprefix("我")
    for words in _FAVOURITES:
        if own.startswith(words) and (thing := own.removeprefix(words).strip()):
            return (FAVOURITE + _THINGS.get(thing, thing))[:MAX_SLOT_CHARS]
    return key[:MAX_SLOT_CHARS]


def current_name(slot: str) -> str:
    """Return the name that a stored slot has now: the same, but for a favourite in other words."""
    return canonical(slot) if slot.startswith(FAVOURITE) else slot


@text_cache(4096)
def slot_of(name: str) -> Slot:
    """Return the slot of a canonical name. An unknown one has cardinality `many` and is not lasting."""
    known = SLOTS.get(name)
    if known is not None:
        return known
    if name.startswith(FAVOURITE):
        return Slot(name, "one", "text", True)
    return Slot(name)
