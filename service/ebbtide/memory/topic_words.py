"""Which topics a question is about, by the aliases of slots and by the words with which people ask for them."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from ebbtide.han import contains_han
from ebbtide.memory.slot_names import ALIASES, KIN
from ebbtide.memory.subjects import USER
from ebbtide.memory.values import normalised

TASKS: Final = "task"
"""Stands for statements of the kind task, whatever their topic."""

_QUESTION_WORDS: Final = """
residence: live, lives, living, based, moved, 住, 住哪, 搬
occupation: work, job, profession, career, do for a living, do for work, 工作, 干什么, 做什么
employer: work, works, employer, company, job, 工作, 上班, 单位
workplace: work, office, 上班
education: study, studied, school, university, college, degree, 上学, 读书, 大学, 念
boss: boss, manager, supervisor, advisor, supervised, 老板, 导师, 领导
partner: partner, dating, married to, husband, wife, girlfriend, boyfriend, 男朋友, 女朋友, 老公, 老婆, 对象
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
vehicle: car, bike, drive, get around, 车
phone: phone, number, 电话, 手机
email: email, mail, 邮箱
name: called, name, 名字, 叫什么
task: to do, to-do, todo, deadline, deadlines, tasks, remind, still have to, plan, plans
task: 待办, 没办, 要做, 提醒, 截止, 计划, 打算
"""

_WORD_EDGE: Final = re.compile(r"[a-z0-9]")
_PAST: Final = re.compile(
    r"\b(?:before|used to|use to|previously|formerly|earlier|first|last year|once|ago|was|were|did)\b"
    r"|以前|之前|原来|曾经|过去|当时|那时|第一年|从前"
)


@cache
def _words() -> tuple[tuple[str, str], ...]:
    """Return (words, slot), the longest words first."""
    found = {(alias, slot) for alias, slot in ALIASES.items()}
    for line in _QUESTION_WORDS.strip().splitlines():
        slot, _, words = line.partition(": ")
        found |= {(normalised(word), slot) for word in words.split(", ")}
    return tuple(sorted(found, key=lambda pair: (-len(pair[0]), pair)))


def topics_of(question: str) -> tuple[set[str], str | None]:
    """Return the slots that a question is about, and the relative of the user whom it names, if it names one."""
    text, relative = normalised(question), None
    for alias, slot in _words():
        if slot in KIN:
            for owner in ("my ", "我的", "我"):
                if relative is None and _occurs(owner + alias, text):
                    relative = f"{USER}'s {slot.replace('_', ' ')}"
                    text = text.replace(owner + alias, " ")
    return {slot for alias, slot in _words() if _occurs(alias, text)}, relative


def asks_for_the_past(question: str) -> bool:
    """Return whether the words of a question ask for an earlier time."""
    return _PAST.search(normalised(question)) is not None


def _occurs(words: str, text: str) -> bool:
    """Return whether words occur in a text, as whole words where they are Latin."""
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        is_whole = contains_han(words) or not (
            (at and _WORD_EDGE.match(text[at - 1])) or (end < len(text) and _WORD_EDGE.match(text[end]))
        )
        if is_whole:
            return True
        at = text.find(words, at + 1)
    return False
