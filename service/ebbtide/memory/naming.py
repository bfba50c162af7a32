"""Names of links (memory model, section 4b).

Every link gets a name from a closed list, by rules that read the memory around the entity's name. A language model may
choose another name of the list, or a short noun.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain
from typing import Final, Literal

from ebbtide.entity_names import find_word, plain_name
from ebbtide.han import contains_han
from ebbtide.normalisation import nfkc
from ebbtide.text_caches import text_cache

Locale = Literal["zh", "en"]

BELONGS, ABOUT, INVOLVES, DISCUSSES, MENTIONS, AFTER, BEFORE = range(7)
LINK_NAMES: Final[dict[Locale, tuple[str, ...]]] = {
    "zh": ("属于", "关于", "涉及", "讨论", "提到", "之后", "之前"),
    "en": ("belongs to", "about", "involves", "discusses", "mentions", "after", "before"),
}
"""The closed list of names, by locale. The last two are between memories only."""

NEIGHBOUR_NAMES: Final[dict[Locale, tuple[str, str]]] = {"zh": ("下文", "上文"), "en": ("next", "previous")}
"""Names of the links to the next and to the previous neighbour."""

STATEMENT_LINKS: Final = (
    *("causes", "caused_by", "supports", "contradicts", "references", "based_on", "related"),
)
"""Names of the links between statements."""

CLOSED_NAMES: Final = frozenset(
    {"", *chain.from_iterable((*LINK_NAMES.values(), *NEIGHBOUR_NAMES.values(), STATEMENT_LINKS))}
)
"""The names that reveal nothing about the memories at their ends."""

MAX_NOUN_HAN: Final = 4
MAX_NOUN_WORDS: Final = 2

_WHITE_SPACE = re.compile(r"\s+")
_TALK = re.compile(
    r"讨论|商量|开会|聊|谈|评审|\bdiscuss(?:es|ed|ing)?\b|\btalk(?:s|ed|ing)? (?:about|with)\b|\bmeetings?\b"
    r"|\bdebat(?:e|es|ed|ing)\b|\breview(?:s|ed|ing)?\b"
)
_NEEDS = re.compile(
    r"(?:需要|影响|采用|使用|用|改|支持) ?$"
    r"|\b(?:with|us(?:e|es|ed|ing)|need(?:s|ed|ing)?|for|involv(?:e|es|ed|ing)) (?:(?:an?|the) )?$"
)
_PART_OF = re.compile(r"属于 ?$|\b(?:parts?|members?) of (?:(?:an?|the) )?$")
_OWNED = re.compile(r"的|['’]s\b")
_CONTEXT_CHARS: Final = 64
"""Characters before a name that are read."""


def entity_link_name(content: str, name: str, *, is_first: bool, locale: Locale) -> str:
    """Return the name of the links between a memory and an entity, by the first occurrence of its name.

    `is_first`: the name is the memory's first keyword.
    """
    text, speaks_of_talk = _read(content)
    plain = plain_name(name).casefold()
    place = find_word(text, plain) if plain else -1
    before = text[max(0, place - _CONTEXT_CHARS) : max(0, place)]
    names = LINK_NAMES[locale]
    if place >= 0 and (_OWNED.match(text, place + len(plain)) or _PART_OF.search(before)):
        return names[BELONGS]
    if speaks_of_talk:
        return names[DISCUSSES]
    if is_first:
        return names[ABOUT]
    return names[INVOLVES if _NEEDS.search(before) else MENTIONS]


@text_cache(1)
def _read(content: str) -> tuple[str, bool]:
    """Return a content normalised, and whether it has a verb of talk. The links of a memory are named in turn."""
    text = _WHITE_SPACE.sub(" ", nfkc(content).casefold())
    return text, _TALK.search(text) is not None


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


def accepted_link_name(answer: str, locale: Locale) -> str:
    """Return a language model's name of a link, if it is one of the list or a short noun, else an empty string."""
    name = answer.strip()
    place = _PLACES.get(name.casefold())
    if place is not None:
        return LINK_NAMES[locale][place] if place < AFTER else ""
    if all(map(contains_han, name)):
        return name if len(name) <= MAX_NOUN_HAN else ""
    words = name.split()
    is_noun = len(words) <= MAX_NOUN_WORDS and all(map(_WORD.fullmatch, words)) and not contains_han(name)
    return " ".join(words) if is_noun else ""


_WORD = re.compile(r"[^\W\d_]+([-'][^\W\d_]+)*")
_PLACES = {
    **{name: place for names in NEIGHBOUR_NAMES.values() for place, name in enumerate(names, AFTER)},
    **{name: place for names in LINK_NAMES.values() for place, name in enumerate(names)},
}
"""The place of each name in the closed list; names that state only an order are from `AFTER` on."""
