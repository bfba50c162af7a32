"""Names of entities, and names of links (memory model, sections 1 and 4b).

An entity is identified by its key: its name without case, quotes, plural and possessive. Every link gets a name from a
closed list, by rules that read the memory around the entity's name. A language model may choose another name of the
list, or a short noun.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Final, Literal

from ebbtide.han import contains_han

Locale = Literal["zh", "en"]

# --- names and keys of entities ----------------------------------------------------------------------------

MAX_KEY_CHARS: Final = 30
MIN_HAN_CHARS: Final = 2
MIN_CHARS: Final = 3
MAX_READ_CHARS: Final = 256
"""A longer text is no name and is not normalised."""

_OUTER = " 《》〈〉「」『』【】“”‘’\"'()[].,;:!?。、"
_WHITE_SPACE = re.compile(r"\s+")
_LAST_LATIN_WORD = re.compile(r"[a-z\u00df-\u024f]+(?=[^a-z\u00df-\u024f]*$)")
_MARK = re.compile(r"\[[a-z_]+(?:[ :#-][0-9a-z]+)?\]")
"""A mark that redaction leaves, such as `[email]` or `[person 3f2a]`."""

_NO_NAMES = """
i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
ourselves they them their theirs themselves this that these those who whom whose which what someone somebody anyone
anybody everyone everybody nobody something anything everything nothing one ones
我 你 您 他 她 它 我们 你们 您们 他们 她们 它们 咱们 咱 自己 大家 别人 人家 这 那 这个 那个 这些 那些 这里 那里 谁 什么
哪里 哪个 某人
user assistant system 用户 助手 系统
"""
_NEVER_NAMES = frozenset(_NO_NAMES.split())
"""Pronouns and roles."""


def entity_key(text: str) -> str:
    """Return a text normalised as the key of an entity; empty if it is too long for one."""
    if len(text) > MAX_READ_CHARS:
        return ""
    key = _trimmed(unicodedata.normalize("NFKC", text).casefold())
    if key.endswith(("'s", "’s")):
        key = _trimmed(key[:-2])
    return key if contains_han(key) else _LAST_LATIN_WORD.sub(_singular, key)


def _trimmed(text: str) -> str:
    return _WHITE_SPACE.sub(" ", text).strip(_OUTER)


def _singular(word: re.Match[str]) -> str:
    text = word[0]
    if len(text) > 4 and text.endswith("ies"):
        return f"{text[:-3]}y"
    is_plural = len(text) > 3 and text.endswith("s") and not text.endswith(("ss", "us", "is"))
    return text[:-1] if is_plural else text


def is_name(text: str) -> bool:
    """Return whether a keyword can name an entity."""
    key = entity_key(text)
    if not key or len(key) > MAX_KEY_CHARS or key in _NEVER_NAMES or _MARK.search(text.casefold()):
        return False
    if not any(character.isalpha() for character in key):
        return False
    if len(key) >= (MIN_HAN_CHARS if contains_han(key) else MIN_CHARS):
        return True
    shown = _trimmed(unicodedata.normalize("NFKC", text))
    return len(key) == MIN_HAN_CHARS and all(c.isupper() or c.isdigit() for c in shown)


def names_of(keywords: Sequence[str], most: int) -> dict[str, str]:
    """Return the names among the first `most` keywords that are names, by key, in order."""
    found: dict[str, str] = {}
    for keyword in [keyword for keyword in keywords if is_name(keyword)][:most]:
        found.setdefault(entity_key(keyword), _WHITE_SPACE.sub(" ", keyword).strip(_OUTER))
    return found


def is_contained(key: str, wanted: str) -> bool:
    """Return whether the key of an entity contains a normalised keyword.

    A keyword with a Han character may be anywhere. Other keywords match whole words only.
    """
    if contains_han(wanted):
        return wanted in key
    place = key.find(wanted)
    while place >= 0:
        end = place + len(wanted)
        if not (place and _joins(key[place - 1])) and not (end < len(key) and _joins(key[end])):
            return True
        place = key.find(wanted, place + 1)
    return False


def _joins(character: str) -> bool:
    """Return whether a character next to a word is part of the same word: a Latin letter or a digit."""
    if character.isascii():
        return character.isalnum()
    return character.isdigit() or unicodedata.name(character, "").startswith("LATIN ")


# --- names of links ----------------------------------------------------------------------------------------

BELONGS, ABOUT, INVOLVES, DISCUSSES, MENTIONS, AFTER, BEFORE = range(7)
LINK_NAMES: Final[dict[Locale, tuple[str, ...]]] = {
    "zh": ("属于", "关于", "涉及", "讨论", "提到", "之后", "之前"),
    "en": ("belongs to", "about", "involves", "discusses", "mentions", "after", "before"),
}
"""The closed list of names, by locale. The last two are between memories only."""

NEIGHBOUR_NAMES: Final[dict[Locale, tuple[str, str]]] = {"zh": ("下文", "上文"), "en": ("next", "previous")}
"""Names of the links to the next and to the previous neighbour."""

MAX_NOUN_HAN: Final = 4
MAX_NOUN_WORDS: Final = 2

_TALK = re.compile(
    r"讨论|商量|开会|聊|谈|评审|\bdiscuss(?:es|ed|ing)?\b|\btalk(?:s|ed|ing)? (?:about|with)\b|\bmeetings?\b"
    r"|\bdebat(?:e|es|ed|ing)\b|\breview(?:s|ed|ing)?\b"
)
_NEEDS = re.compile(
    r"(?:需要|影响|采用|使用|用|改|支持|\b(?:with|us(?:e|es|ed|ing)|need(?:s|ed|ing)?|for|involv(?:e|es|ed|ing)))"
    r"\s*(?:(?<=\s)(?:an?|the)\s+)?$"
)
_PART_OF = re.compile(
    r"(?:属于\s*|\b(?:parts?|members?) of\s+(?:(?:an?|the)\s+)?|\bbelong(?:s|ed|ing)? to\s+(?:(?:an?|the)\s+)?)$"
)
_OWNED = re.compile(r"\s*(?:的|['’]s\b)")
_CONTEXT_CHARS: Final = 32


def entity_link_name(content: str, name: str, *, is_first: bool, locale: Locale) -> str:
    """Return the name of the links between a memory and an entity. `is_first`: it is the memory's first keyword."""
    folded, wanted = content.casefold(), name.casefold()
    place = folded.find(wanted)
    before = folded[max(0, place - _CONTEXT_CHARS) : place] if place >= 0 else ""
    names = LINK_NAMES[locale]
    if place >= 0 and (_OWNED.match(folded, place + len(wanted)) or _PART_OF.search(before)):
        return names[BELONGS]
    if _TALK.search(folded):
        return names[DISCUSSES]
    if is_first:
        return names[ABOUT]
    return names[INVOLVES if _NEEDS.search(before) else MENTIONS]


def memory_link_names(
    common: Collection[str], first_keys: Collection[str], locale: Locale
) -> tuple[str, str]:
    """Return the names of the links from the earlier to the later memory, and back.

    `common` are the keys of the entities that both are linked with, `first_keys` those of their first keywords.
    """
    names = LINK_NAMES[locale]
    if not common:
        return names[AFTER], names[BEFORE]
    name = names[INVOLVES if set(common).isdisjoint(first_keys) else ABOUT]
    return name, name


def accepted_link_name(answer: str) -> str:
    """Return a language model's name of a link if it is allowed, else an empty string."""
    name = _WHITE_SPACE.sub(" ", answer).strip()
    if name.casefold() in _ALLOWED:
        return name
    if contains_han(name):
        return name if len(name) <= MAX_NOUN_HAN else ""
    is_noun = len(name.split(" ")) <= MAX_NOUN_WORDS and any(character.isalpha() for character in name)
    return name if is_noun else ""


_ALLOWED = frozenset(name for names in LINK_NAMES.values() for name in names[:AFTER])
