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


_RELATED: Final = KIN | {"partner", "boss"}
"""The slots whose words name a person of the owner, such as "my wife"."""


_OTHER_WORDS: Final = {
    word: slot
    for slot, words in {
        "mother": "mummy mommy momma mama 妈 老妈 妈咪 娘",
        "father": "daddy papa 爸 老爸 爹",
        "elder_sister": "big-sister elder-sister 姐 大姐 老姐",
        "younger_sister": "baby-sister 妹 小妹 老妹",
        "elder_brother": "big-brother elder-brother 哥 大哥 老哥",
        "younger_brother": "baby-brother 弟 小弟 老弟",
        "daughter": "闺女",
        "grandmother": "granny gran nana",
        "grandfather": "granddad grandad gramps",
        "partner": "hubby gf bf 女友 男友 媳妇 爱人 老伴 太太",
    }.items()
    for word in words.split()
}
"""Words for a person of the owner that are no topic, with the slot that they mean. A hyphen may be a space."""


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
    """Return the slot of the words for a person of the owner, such as mother for "mum" and 妈."""
    return _OTHER_WORDS.get(words.replace(" ", "-")) or canonical(words)


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
            return f"{speaker if owner == USER else owner}'s {kin.replace('_', ' ')}"
    name = " ".join(words.split())
    return name if is_entity(name, entity_key(name)) else None
