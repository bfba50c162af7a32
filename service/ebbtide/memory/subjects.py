"""Names of what statements are about: the user, the assistant, their relatives, and everything else by its name.

"I", "me", 我 and 用户 are one entity in both languages, and so are "my sister" and 我姐妹. The relation to the owner
may follow the name of a person: `Anna (colleague)`, 安娜（同事）. "My colleague Anna" and 我的同事安娜 are read so.
"""

from __future__ import annotations

import re
from typing import Final

from ebbtide.entity_names import MAX_READ_CHARS, entity_key, is_entity, plain_name
from ebbtide.han import contains_han
from ebbtide.memory.slot_names import ALIASES, KIN, SLOTS, canonical, label
from ebbtide.memory.values import MAX_CHARS, normalised
from ebbtide.normalisation import nfkc, simplified

USER: Final = "user"
ASSISTANT: Final = "assistant"

_USER_WORDS: Final = frozenset(
    ["i", "me", "my", "myself", "mine", "user", "the user", "我", "我自己", "本人", "俺", "咱", "用户"]
)
_ASSISTANT_WORDS: Final = frozenset(["you", "yourself", "assistant", "the assistant", "你", "您", "助手"])
_OWNERS: Final = {
    "my ": USER,
    "user's ": USER,
    "the user's ": USER,
    "your ": ASSISTANT,
    "我的": USER,
    "我": USER,
    "用户的": USER,
    "你的": ASSISTANT,
}


_INFORMAL: Final = """
mother: mummy, mommy, momma, mama, 老妈, 妈咪, 娘
father: daddy, papa, 老爸, 爹
elder_sister: big sister, big-sister, elder sister, elder-sister, 大姐, 老姐
younger_sister: baby sister, baby-sister, 小妹, 老妹
elder_brother: big brother, big-brother, elder brother, elder-brother, 大哥, 老哥
younger_brother: baby brother, baby-brother, 小弟, 老弟
daughter: 闺女
grandmother: granny, gran, nana
grandfather: granddad, grandad, gramps
partner: hubby, gf, bf, 太太
"""
_RELATIVES: Final = """
mother: 妈
father: 爸
elder_sister: 姐
younger_sister: 妹
elder_brother: 哥
younger_brother: 弟
partner: 爱人, 老伴
grandson: grandson, 孙子
granddaughter: granddaughter, 孙女
grandchild: grandchild, grandchildren, grandkid, grandkids, 孙辈
parents: parents, 父母, 爸妈
nephew: nephew, 侄子, 外甥
niece: niece, 侄女, 外甥女
former_partner: ex, ex-wife, ex-husband, ex-girlfriend, ex-boyfriend, 前任, 前妻, 前夫, 前女友, 前男友
mother_in_law: mother-in-law, mother in law, 配偶的母亲, 婆婆, 岳母, 丈母娘
father_in_law: father-in-law, father in law, 配偶的父亲, 公公, 岳父
sister_in_law: sister-in-law, sister in law, 嫂子, 弟媳, 小姨子
brother_in_law: brother-in-law, brother in law, 姐夫, 妹夫, 大舅子
daughter_in_law: daughter-in-law, daughter in law, 儿媳, 儿媳妇
son_in_law: son-in-law, son in law, 女婿
"""
_PERSONS: Final = """
partner: 女友, 男友, 媳妇
boss: boss, manager, supervisor, 老板, 上司, 领导, 经理, 主管, 导师
friend: friend, friends, buddy, buddies, mate, mates, 朋友, 好友, 闺蜜, 哥们
colleague: colleague, colleagues, coworker, coworkers, co-worker, co-workers, teammate, workmate, 同事
neighbour: neighbour, neighbours, neighbor, neighbors, 邻居
roommate: roommate, roommates, flatmate, flatmates, housemate, 室友, 舍友
classmate: classmate, classmates, 同学, 校友
teacher: teacher, professor, tutor, coach, trainer, 老师, 教授, 教练
doctor: doctor, physician, therapist, 医生, 大夫
dentist: dentist, 牙医
landlord: landlord, landlady, 房东
client: client, clients, customer, 客户
fiance: fiance, fiancé, fiancee, fiancée, 未婚夫, 未婚妻
stepmother: stepmother, 继母, 后妈
stepfather: stepfather, 继父, 后爸
aunt: 舅妈, 婶婶, 伯母
uncle: 姑父, 姨父, 伯父
"""


def _listed(lines: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines.strip().splitlines():
        relation, _, words = line.partition(": ")
        found |= dict.fromkeys(map(normalised, words.split(", ")), relation)
    return found


INFORMAL: Final = _listed(_INFORMAL)
"""From a word that also addresses others, so that it needs its owner before it, to the relative that it means."""

RELATIVES: Final = {
    **{word: slot for word, slot in ALIASES.items() if slot in KIN or slot == "partner"},
    **_listed(_RELATIVES),
    **INFORMAL,
}
"""From a word for a relative to the relation: a slot, or a relation that is none."""

OTHER_PERSONS: Final = _listed(_PERSONS)
"""From a word for another person of the owner to the relation. Such a word has its owner before it."""

_UNIQUE: Final = frozenset(
    [
        *("parents", "grandson", "granddaughter", "former_partner"),
        *("mother_in_law", "father_in_law", "daughter_in_law", "son_in_law"),
    ]
)
"""Relations that are no slots, of which an owner has one person, or several that are named together."""

_RELATED: Final = KIN | {"partner", "boss"} | _UNIQUE
"""The relations that, with their owner, name a person, such as "my wife"."""


SINGLE_KIN: Final = KIN - {
    *("child", "cousin", "aunt", "maternal_aunt"),
    *("uncle", "elder_uncle", "maternal_uncle"),
}
"""The relatives whom an owner may mean by the relation alone, such as "my sister"."""

PERSONS: Final = frozenset(slot.name for slot in SLOTS.values() if slot.range == "person")
"""The slots whose values are persons: the relations that may follow a name."""

_QUALIFIED: Final = re.compile(r"([^()（）]{1,64})[(（]([^()（）]{1,32})[)）]")
_CALLED: Final = {
    is_han: re.compile(
        "("
        + "|".join(sorted((one for one in words if ALIASES[one] in PERSONS), key=len, reverse=True))
        + ")"
        # A Chinese name follows at once, an English one begins with a capital letter.
        + (r"(?!的)(\w{2,4})" if is_han else r"\s((?-i:[A-Z])[\w'’.-]*(?:\s(?-i:[A-Z])[\w'’.-]*){0,3})"),
        re.IGNORECASE,
    )
    for is_han, words in (
        (True, [one for one in ALIASES if contains_han(one)]),
        (False, [one.replace("_", " ") for one in ALIASES if not contains_han(one) and "_" not in one]),
    )
}
"""A relation and the name after it, by whether the words are Chinese."""


def qualified(name: str, relation: str) -> str:
    """Return a name with the relation of a person after it."""
    plain, is_han = plain_name(name), contains_han(name)
    return f"{plain}（{label(relation, 'zh')}）" if is_han else f"{plain} ({label(relation, 'en')})"


def unqualified(name: str) -> tuple[str, str]:
    """Return a name without the relation after it, and that relation; empty if it has none."""
    found = _QUALIFIED.fullmatch(name.strip()) if len(name) <= MAX_READ_CHARS else None
    relation = "" if found is None else canonical(found[2])
    return (name, "") if found is None or relation not in PERSONS else (found[1].strip(), relation)


def _called(words: str) -> str | None:
    """Return the name of a person in words that have the relation before it, such as "colleague Anna"."""
    is_han = contains_han(words)
    found = _CALLED[is_han].fullmatch(words)
    if found is None or (is_han and canonical(found[2]) in SLOTS):
        return None
    return qualified(found[2], canonical(found[1]))


def _related(words: str) -> str:
    """Return the relation of the words for a person of the owner, such as mother for "mum" and 妈."""
    relation = RELATIVES.get(words) or OTHER_PERSONS.get(words, "")
    return relation if relation in _RELATED else canonical(words)


def relative_name(owner: str, relation: str) -> str:
    """Return the name of the entity of a relative that is known by the relation, such as "user's elder sister"."""
    return f"{owner}'s {relation.replace('_', ' ')}"


def relative_in(name: str) -> tuple[str, str]:
    """Return the owner and the relation in the name of a relative; empty for another name."""
    owner, _, words = name.rpartition("'s ")
    relation = words.replace(" ", "_")
    return (owner, relation) if owner and relation in SINGLE_KIN else ("", "")


_KIN_WORDS: Final = {
    is_han: "|".join(
        sorted(
            {word for word, one in RELATIVES.items() if one in SINGLE_KIN and contains_han(word) is is_han},
            key=lambda word: (-len(word), word),
        )
    )
    for is_han in (False, True)
}
_KIN_BEFORE: Final = re.compile(
    rf"(?:\b(?:my|our) (?P<kin>{_KIN_WORDS[False]})(?:'s name(?: is|'s)|'s called|,? (?:is )?(?:called|named)| is|,)? "
    rf"|我(?:们|家)?的?(?P<han>{_KIN_WORDS[True]})(?:的名字)?(?:叫做?|名叫|是|,)?)$"
)
"""The words for a relative before the name: "my sister is called", 我妹妹叫."""
_KIN_AFTER: Final = re.compile(
    rf"(?:,| is) (?:my|our) (?P<kin>{_KIN_WORDS[False]})\b|[,是]我(?:们|家)?的?(?P<han>{_KIN_WORDS[True]})"
)
_MAX_BEFORE: Final = 64


def names_relative(quote: str, relation: str, name: str) -> bool:
    """Return whether words name a relative of their speaker: "my sister Clara", "Clara, my sister", 我妹妹叫小红."""
    text, plain = (
        nfkc(one).casefold().translate(simplified()).replace("’", "'") for one in (quote[:MAX_CHARS], name)
    )
    begin = text.find(plain) if plain else -1
    while begin >= 0:
        end = begin + len(plain)
        found = (_KIN_BEFORE.search(text, max(0, begin - _MAX_BEFORE), begin), _KIN_AFTER.match(text, end))
        for match in filter(None, found):
            said = RELATIVES[match["kin"] or match["han"]]
            if said == relation or said.endswith(f"_{relation}"):
                return True
        begin = text.find(plain, end)
    return False


def relation_label(relation: str) -> str:
    """Return the first Chinese word for a relation, such as "mother in law"; empty for an unknown one."""
    name = relation.replace(" ", "_")
    if name in SLOTS:
        return label(name, "zh")
    return next((word for word, one in RELATIVES.items() if one == name and contains_han(word)), "")


def subject_name(words: str, speaker: str = USER) -> str | None:
    """Return the name of the entity that words mean; None if they are no name of 1-200 characters.

    `speaker` is the name of the entity that "I" means.
    """
    plain = " ".join(words.split()).casefold().replace("’", "'")
    if plain in _USER_WORDS:
        return speaker
    if plain in _ASSISTANT_WORDS:
        return ASSISTANT
    said = " ".join(words.split()).replace("’", "'")
    for prefix, owner in _OWNERS.items():
        if plain.startswith(prefix) and owner == USER and (name := _called(said[len(prefix) :])):
            return name if is_entity(name, entity_key(name)) else None
        if plain.startswith(prefix) and (kin := _related(plain.removeprefix(prefix))) in _RELATED:
            return relative_name(speaker if owner == USER else owner, kin)
    name = " ".join(words.split())
    return name if is_entity(name, entity_key(name)) else None
