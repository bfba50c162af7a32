"""Names of what statements are about: the user, the assistant, their relatives, and everything else by its name.

"I", "me", 我 and 用户 are one entity in both languages, and so are "my sister" and 我姐妹.
"""

from __future__ import annotations

from typing import Final

from ebbtide.entity_names import entity_key, is_entity
from ebbtide.memory.slot_names import KIN, canonical

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


def subject_name(words: str, speaker: str = USER) -> str | None:
    """Return the name of the entity that words mean; None if they are no name of 2-30 characters.

    `speaker` is the name of the entity that "I" means.
    """
    plain = " ".join(words.split()).casefold().replace("’", "'")
    if plain in _USER_WORDS:
        return speaker
    if plain in _ASSISTANT_WORDS:
        return ASSISTANT
    for prefix, owner in _OWNERS.items():
        if plain.startswith(prefix) and (kin := canonical(plain.removeprefix(prefix))) in _RELATED:
            return f"{speaker if owner == USER else owner}'s {kin.replace('_', ' ')}"
    name = " ".join(words.split())
    return name if is_entity(name, entity_key(name)) else None
