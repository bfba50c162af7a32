"""Normalised keys, names, and where a name occurs (1, 6)."""

from __future__ import annotations

import re
import unicodedata

from tests.support.oracle import has_han, one_space

OUTER = "《》〈〉「」『』【】“”‘’\"'()[].,;:!?。、"

# 1: "pronouns". CHOICE 1 (1): the page gives no list; these are personal, possessive, reflexive, demonstrative,
# interrogative and indefinite pronouns.
PRONOUNS = """
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
we us our ours ourselves they them their theirs themselves this that these those who whom whose which what
someone somebody something anyone anybody anything everyone everybody everything nobody nothing
我 你 您 他 她 它 我们 你们 您们 他们 她们 它们 咱 咱们 俺 俺们 自己 大家 人家 别人 谁 什么
这 那 哪 这个 那个 哪个 这些 那些 哪些 这里 那里 哪里 某人 彼此
"""
ROLE_WORDS = ["用户", "助手", "user", "assistant"]  # CHOICE 2 (1): these four only

# CHOICE 3 (1): decimal digits with separators, a sign or a per cent sign. With a unit it is a name (5000万, 12月15日).
BARE_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*\s?%?")

# CHOICE 4 (1): a redaction mark is a kind in square brackets, also with a keyed form after a colon.
REDACTION_MARK = re.compile(r"\[[a-z_]+(:[0-9a-f]+)?\]")


def without_outer(text: str) -> str:
    """Return the text without outer white space, quotes and punctuation (1)."""
    first, last = 0, len(text)
    while first < last and (text[first].isspace() or text[first] in OUTER):
        first += 1
    while last > first and (text[last - 1].isspace() or text[last - 1] in OUTER):
        last -= 1
    return text[first:last]


def plain(name: str) -> str:
    """Return the name normalised but for letter case and plural (1)."""
    text = without_outer(unicodedata.normalize("NFKC", name))
    # CHOICE 5 (1): the possessive is taken off at the end only, once, also with ’; the text before it is stripped too.
    text = without_outer(re.sub(r"['’][sS]$", "", text))
    return one_space(text)


def is_latin(character: str) -> bool:
    """Whether the character is a Latin letter."""
    return character.isalpha() and unicodedata.name(character, "").startswith("LATIN ")


def fold_plural(key: str) -> str:
    """Return the key with the plural of its last Latin word folded (1)."""
    if has_han(key):
        return key
    # CHOICE 6 (1): a Latin word is a run of Latin letters; the last one counts wherever it is (Windows 10 → window 10).
    end = len(key)
    while end and not is_latin(key[end - 1]):
        end -= 1
    start = end
    while start and is_latin(key[start - 1]):
        start -= 1
    word = key[start:end]
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return key[:start] + word + key[end:]


def normalise(name: str) -> str:
    """Return the key of a name (1)."""
    return fold_plural(plain(name).casefold())


DIRECTION_MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
NEVER_NAMES = {normalise(word) for word in [*PRONOUNS.split(), *ROLE_WORDS]}


def is_name(keyword: str) -> bool:
    """Whether a keyword is the name of an entity (1)."""
    key = normalise(keyword)
    # CHOICE 54 (1): a name is shown on one line: it has no control character, line break or direction mark.
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in DIRECTION_MARKS for c in keyword):
        return False
    if key in NEVER_NAMES or BARE_NUMBER.fullmatch(key) or REDACTION_MARK.fullmatch(keyword.strip()):
        return False
    # CHOICE 7 (1): "Han" = the key contains a Han character. Capitals are those of the name as said.
    is_short_allowed = has_han(key) or all(c.isupper() or c.isdigit() for c in plain(keyword))
    return (2 if is_short_allowed else 3) <= len(key) <= 30


def find_word(text: str, word: str) -> int:
    """Return where the word first occurs, or -1.

    A word with Han characters occurs as a substring, any other as a whole word: no Latin letter or digit is next
    to it (6, cue).
    """
    at = text.find(word)
    while at >= 0 and not has_han(word):
        before, after = text[:at][-1:], text[at + len(word) :][:1]
        if not any(c.isdigit() or is_latin(c) for c in before + after):
            break
        at = text.find(word, at + 1)
    return at


def names_key(keyword: str, key: str) -> bool:
    """Whether a keyword names the entity of this key (6, cue a)."""
    wanted = normalise(keyword)
    # CHOICE 8 (6): a keyword whose normalised form is empty names no entity.
    return bool(wanted) and find_word(key, wanted) >= 0
