"""Name the links of a memory from a closed list, by the words of its text.

The first rule that fits gives the name. `docs/memory-model.md` defines the list and the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

Locale = Literal["zh", "en"]

BELONGS_TO, ABOUT, INVOLVES, DISCUSSES, MENTIONS = range(5)
AFTER, BEFORE = range(2)

MEMORY_ENTITY_NAMES: dict[Locale, tuple[str, ...]] = {
    "zh": ("属于", "关于", "涉及", "讨论", "提到"),
    "en": ("belongs to", "about", "involves", "discusses", "mentions"),
}
MEMORY_MEMORY_NAMES: dict[Locale, tuple[str, ...]] = {"zh": ("之后", "之前"), "en": ("after", "before")}

_TALK = re.compile(
    r"讨论|商量|开会|聊|谈|评审"
    r"|\b(?:discuss(?:es|ed|ing|ions?)?|talk(?:s|ed|ing)?\s(?:to|about|with)|meetings?|met\swith"
    r"|debat(?:e|es|ed|ing)|review(?:s|ed|ing))\b",
    re.IGNORECASE,
)
_POSSESSED = re.compile(r"[”’」』》\"]?的(?=\w)|['’]s?\b\s?(?=\w)", re.IGNORECASE)
_OWNER_AHEAD = re.compile(
    r"(?:属于|\b(?:part|parts|members?|belongs?|belonged)\s(?:of|to)\s(?:the\s|an?\s|our\s|my\s)?)[“‘「『《\"]?\Z",
    re.IGNORECASE,
)
_USED_AHEAD = re.compile(
    r"(?:(?:需要|影响|采用|使用|用|改|支持)[了过到成]?(?:一个|一款|一位)?"
    r"|\b(?:with|us(?:e|es|ed|ing)|need(?:s|ed|ing)?|for|involv(?:e|es|ed|ing))\s(?:the\s|an?\s)?)[“‘「『《\"]?\Z",
    re.IGNORECASE,
)
# The longest wording before an entity that a rule reads.
_AHEAD_CHARS = 40


def entity_relation(text: str, keywords: Sequence[str], entity: str, locale: Locale) -> str:
    """Return the name of the links between a memory and an entity."""
    return MEMORY_ENTITY_NAMES[locale][_entity_rule(text, keywords, entity)]


def memory_relation(own: Sequence[str], other: Sequence[str], common: Iterable[str], locale: Locale) -> str:
    """Return the name of the link from a memory to an earlier one in focus.

    `own` and `other` are their keywords, and `common` the names of the entities that both have. Without a common
    entity the link from the later memory is named 之前, and the one back 之后: see `reverse_relation`.
    """
    shared = {name.casefold() for name in common}
    if not shared:
        return MEMORY_MEMORY_NAMES[locale][BEFORE]
    first = {words[0].casefold() for words in (own, other) if words}
    return MEMORY_ENTITY_NAMES[locale][ABOUT if first & shared else INVOLVES]


def reverse_relation(name: str, locale: Locale) -> str:
    """Return the name of the link in the other direction."""
    names = MEMORY_MEMORY_NAMES[locale]
    return names[AFTER] if name == names[BEFORE] else name


def _entity_rule(text: str, keywords: Sequence[str], entity: str) -> int:
    begin = _find(text, entity)
    end = begin + len(entity)
    ahead = text[max(0, begin - _AHEAD_CHARS) : begin] if begin >= 0 else ""
    if begin >= 0 and (_POSSESSED.match(text, end) or _OWNER_AHEAD.search(ahead)):
        return BELONGS_TO
    if _TALK.search(text):
        return DISCUSSES
    if keywords and keywords[0].casefold() == entity.casefold():
        return ABOUT
    return INVOLVES if _USED_AHEAD.search(ahead) else MENTIONS


def _find(text: str, entity: str) -> int:
    """Return the first occurrence of an entity as a whole word, or -1."""
    folded, name = text.casefold(), entity.casefold()
    if len(folded) != len(text):
        folded, name = text, entity
    at = folded.find(name)
    while at >= 0:
        before, after = folded[at - 1 : at], folded[at + len(name) : at + len(name) + 1]
        if not (_is_latin(before) and _is_latin(name[:1])) and not (
            _is_latin(after) and _is_latin(name[-1:])
        ):
            return at
        at = folded.find(name, at + 1)
    return -1


def _is_latin(char: str) -> bool:
    return char.isascii() and char.isalnum()
