"""Names of entities and their keys (memory model, section 1).

An entity is identified by its key: its name without case, outer quotes and punctuation, plural and possessive.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import islice
from typing import Final

from ebbtide.han import contains_han
from ebbtide.normalisation import is_hidden, nfkc
from ebbtide.text_caches import text_cache

MAX_NAME_CHARS: Final = 30
"""Most characters of a key that is read from a text."""
MAX_KEY_CHARS: Final = 200
"""Most characters of a key that a caller gives."""
MIN_SHORT_CHARS: Final = 2
"""Fewest characters of a key with Han, or of a name in capitals and digits."""
MIN_CHARS: Final = 3
MAX_READ_CHARS: Final = 256
"""A longer text is no name and is not normalised."""

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


def plain_name(text: str) -> str:
    """Return a name normalised except for case and plural."""
    name = _trimmed(nfkc(text))
    if name.isalnum():
        return name
    return _WHITE_SPACE.sub(" ", _trimmed(_POSSESSIVE.sub("", name)))


@text_cache(1024)
def entity_key(text: str) -> str:
    """Return a text normalised as the key of an entity; empty if it is too long for one."""
    if len(text) > MAX_READ_CHARS:
        return ""
    key = plain_name(text).casefold()
    return key if contains_han(key) else _with_singular(key)


def _with_singular(key: str) -> str:
    """Return a key with the plural of its last Latin word folded."""
    begin, end = last_word(key)
    return key[:begin] + singular(key[begin:end]) + key[end:]


def last_word(text: str) -> tuple[int, int]:
    """Return where the last Latin word of a text begins and ends."""
    end = len(text)
    while end and not is_latin(text[end - 1]):
        end -= 1
    begin = end
    while begin and is_latin(text[begin - 1]):
        begin -= 1
    return begin, end


def singular(word: str) -> str:
    """Return a casefolded Latin word with its plural folded: cats and cat are equal, and so are cities and city."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def word_forms(word: str) -> list[str]:
    """Return the forms of a casefolded Latin word that `singular` regards as equal."""
    stem = singular(word)
    forms = [stem, f"{stem}s", f"{stem[:-1]}ies" if stem.endswith("y") else stem]
    return [form for form in dict.fromkeys(forms) if singular(form) == stem]


def is_latin(character: str) -> bool:
    """Return whether a character is a Latin letter."""
    if character.isascii():
        return character.isalpha()
    return character.isalpha() and unicodedata.name(character, "").startswith("LATIN ")


_INDEFINITE = [
    f"{begin}{end}" for begin in ("some", "any", "every", "no") for end in ("one", "body", "thing")
]
_NEVER_NAMES = frozenset(entity_key(word) for word in (*_NO_NAMES.split(), *_INDEFINITE))


def is_name(text: str, key: str) -> bool:
    """Return whether a keyword, normalised as `key`, can name an entity."""
    if (
        (not text.isprintable() and any(map(is_hidden, text)))
        or key in _NEVER_NAMES
        or _NUMBER.fullmatch(key)
        or _REDACTED.fullmatch(text.strip())
    ):
        return False
    may_be_short = contains_han(key) or all(
        c.isupper() or c.isdigit() for c in plain_name(text[:MAX_READ_CHARS])
    )
    return (MIN_SHORT_CHARS if may_be_short else MIN_CHARS) <= len(key) <= MAX_NAME_CHARS


def is_entity(name: str, key: str) -> bool:
    """Return whether an entity can have this name and key: the key is that of the name, or the name itself.

    A name of one character is a letter or a digit, and no pronoun.
    """
    return (
        0 < len(key) <= MAX_KEY_CHARS
        and (len(key) > 1 or (key.isalnum() and key not in _NEVER_NAMES))
        and key in (name, entity_key(name))
        and not any(map(is_hidden, name))
    )


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
        if not any(character.isdigit() or is_latin(character) for character in neighbours):
            break
        place = text.find(word, place + 1)
    return place
