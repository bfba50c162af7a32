"""Names of entities, and names of links (memory model, sections 1 and 4b).

An entity is identified by its key: its name without case, quotes, plural and possessive. Every link gets a name from a
closed list, by rules that read the memory around the entity's name. A language model may choose another name of the
list, or a short noun.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

from ebbtide.han import contains_han

Locale = Literal["zh", "en"]

# --- names and keys of entities ----------------------------------------------------------------------------

MAX_KEY_CHARS: Final = 30
MIN_SHORT_CHARS: Final = 2
"""Fewest characters of a key with Han, or of a name in capitals and digits."""
MIN_CHARS: Final = 3
MAX_READ_CHARS: Final = 256
"""A longer text is no name and is not normalised."""
_PIECE_CHARS: Final = 1024
"""Characters that are normalised together."""

_OUTER = frozenset("《》〈〉「」『』【】“”‘’\"'()[].,;:!?。、")
_WHITE_SPACE = re.compile(r"\s+")
_POSSESSIVE = re.compile(r"['’][sS]$")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*\s?%?")
_REDACTED = re.compile(r"\[[a-z_]++(?::[0-9a-f]++)?\]")
"""A mark that redaction leaves, such as `[email]` or `[person:3f2a]`."""

_NO_NAMES = """
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself we us our
ours ourselves they them their theirs themselves this that these those who whom whose which what
我 你 您 他 她 它 我们 你们 您们 他们 她们 它们 咱 咱们 俺 俺们 自己 大家 人家 别人 谁 什么 这 那 哪 这个 那个 哪个 这些
那些 哪些 这里 那里 哪里 某人 彼此
user assistant 用户 助手
"""
"""Pronouns and roles."""


def _trimmed(text: str) -> str:
    if text.isalnum():
        return text
    first, last = 0, len(text)
    while first < last and (text[first].isspace() or text[first] in _OUTER):
        first += 1
    while last > first and (text[last - 1].isspace() or text[last - 1] in _OUTER):
        last -= 1
    return text[first:last]


def _nfkc(text: str) -> str:
    """Return a text in normalisation form KC. Pieces bound the time: sorting a run of combining marks is quadratic."""
    pieces = range(0, len(text), _PIECE_CHARS)
    return "".join(unicodedata.normalize("NFKC", text[at : at + _PIECE_CHARS]) for at in pieces)


def _plain(text: str) -> str:
    """Return a name normalised except for case and plural."""
    name = _trimmed(_nfkc(text))
    if name.isalnum():
        return name
    return _WHITE_SPACE.sub(" ", _trimmed(_POSSESSIVE.sub("", name)))


@lru_cache(maxsize=1024)
def entity_key(text: str) -> str:
    """Return a text normalised as the key of an entity; empty if it is too long for one."""
    if len(text) > MAX_READ_CHARS:
        return ""
    key = _plain(text).casefold()
    return key if contains_han(key) else _with_singular(key)


def _with_singular(key: str) -> str:
    """Return a key with the plural of its last Latin word folded."""
    end = len(key)
    while end and not _is_latin(key[end - 1]):
        end -= 1
    begin = end
    while begin and _is_latin(key[begin - 1]):
        begin -= 1
    word = key[begin:end]
    if len(word) > 4 and word.endswith("ies"):
        word = f"{word[:-3]}y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return key[:begin] + word + key[end:]


def _is_latin(character: str) -> bool:
    if character.isascii():
        return character.isalpha()
    return character.isalpha() and unicodedata.name(character, "").startswith("LATIN ")


_INDEFINITE = [
    f"{begin}{end}" for begin in ("some", "any", "every", "no") for end in ("one", "body", "thing")
]
_NEVER_NAMES = frozenset(entity_key(word) for word in (*_NO_NAMES.split(), *_INDEFINITE))


def is_name(text: str, key: str) -> bool:
    """Return whether a keyword, normalised as `key`, can name an entity."""
    if key in _NEVER_NAMES or _NUMBER.fullmatch(key) or _REDACTED.fullmatch(text.strip()):
        return False
    may_be_short = contains_han(key) or all(c.isupper() or c.isdigit() for c in _plain(text[:MAX_READ_CHARS]))
    return (MIN_SHORT_CHARS if may_be_short else MIN_CHARS) <= len(key) <= MAX_KEY_CHARS


def names_of(keywords: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Return (key, name) of the first keywords that are names, at most `most`."""
    keyed = ((entity_key(keyword), keyword) for keyword in keywords) if most else ()
    return list(islice((pair for pair in keyed if is_name(pair[1], pair[0])), most))


def find_word(text: str, word: str) -> int:
    """Return where a word first occurs, or -1.

    A word with a Han character may be anywhere. Others match whole words only: no Latin letter or digit is next to
    them.
    """
    place = text.find(word)
    if contains_han(word):
        return place
    while place >= 0:
        end = place + len(word)
        neighbours = text[max(0, place - 1) : place] + text[end : end + 1]
        if not any(character.isdigit() or _is_latin(character) for character in neighbours):
            break
        place = text.find(word, place + 1)
    return place


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
    wanted = _plain(name).casefold()
    place = find_word(text, wanted) if wanted else -1
    before = text[max(0, place - _CONTEXT_CHARS) : max(0, place)]
    names = LINK_NAMES[locale]
    if place >= 0 and (_OWNED.match(text, place + len(wanted)) or _PART_OF.search(before)):
        return names[BELONGS]
    if speaks_of_talk:
        return names[DISCUSSES]
    if is_first:
        return names[ABOUT]
    return names[INVOLVES if _NEEDS.search(before) else MENTIONS]


@lru_cache(maxsize=1)
def _read(content: str) -> tuple[str, bool]:
    """Return a content normalised, and whether it has a verb of talk. The links of a memory are named in turn."""
    text = _WHITE_SPACE.sub(" ", _nfkc(content).casefold())
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
