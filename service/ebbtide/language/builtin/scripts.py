"""Scripts: which writing system a character or a text belongs to, told from Unicode ranges alone.

The rule guarded here: every other module of the built-in model asks this one whether a text is
written without spaces (Han, Kana), so that one message is never taken for Chinese in one place
and English in another. Width is the common measure of length: a Han character says about as much
as two and a half Latin ones.

Deliberately not here: words of any language, and anything that needs a dictionary.
"""

from __future__ import annotations

import re
import unicodedata

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"

# One Han character in chat carries about as much as this many Latin ones (characters per word, 5.5
# with the space, over characters per Chinese word, 1.6, and Chinese uses somewhat more words).
DENSE_WIDTH = 2.5

_DENSE = re.compile(f"[{HAN}{KANA}]")
_HAN_ONLY = re.compile(f"[{HAN}]+")
_KANA = re.compile(f"[{KANA}]")
_WORD = re.compile(r"[^\W_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")

_ZWJ = "\u200d"


def has_word(text: str) -> bool:
    """Tell whether a text holds any letter, digit or ideograph, that is: anything to remember."""
    return _WORD.search(text) is not None


def dense_count(text: str) -> int:
    """Count the Han and Kana characters."""
    return 0 if text.isascii() else len(_DENSE.findall(text))


def has_han(text: str) -> bool:
    """Tell whether a text holds any Han character."""
    return not text.isascii() and _HAN_ONLY.search(text) is not None


def is_han(text: str) -> bool:
    """Tell whether a text consists of Han characters only."""
    return not text.isascii() and _HAN_ONLY.fullmatch(text) is not None


def width(text: str) -> float:
    """Measure how much a text says, in Latin characters."""
    return len(text) + (DENSE_WIDTH - 1) * dense_count(text)


def is_dense(text: str) -> bool:
    """Tell whether a text reads as Chinese or Japanese rather than as a language with spaces.

    Chinese speech that names a product or two in Latin letters is still Chinese; four Latin letters
    to the Han character is the point where the Han words are the guests.
    """
    count = dense_count(text)
    return count > 0 and count * 4 >= len(_LATIN.findall(text))


def is_japanese(text: str) -> bool:
    """Tell whether Kana is frequent enough that Chinese word lists would only do harm."""
    kana = 0 if text.isascii() else len(_KANA.findall(text))
    return kana > 0 and kana * 6 >= dense_count(text)


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def splits_cluster(text: str, index: int) -> bool:
    """Tell whether cutting before `index` would tear a character a reader sees as one."""
    if not 0 < index < len(text):
        return False
    char, before = text[index], text[index - 1]
    if before == _ZWJ or char == _ZWJ or (before == "\r" and char == "\n"):
        return True
    if char >= "\u0300" and (unicodedata.category(char)[0] == "M" or "\U0001f3fb" <= char <= "\U0001f3ff"):
        return True
    if "\u1160" <= char <= "\u11ff" and "\u1100" <= before <= "\u11ff":
        return True
    if "\U000e0020" <= char <= "\U000e007f":
        return True
    if _is_regional(char) and _is_regional(before):
        run = index
        while run > 0 and index - run < 64 and _is_regional(text[run - 1]):
            run -= 1
        return (index - run) % 2 == 1
    return False


def cluster_cut(text: str, low: int, high: int) -> int:
    """Return the largest cut in (low, high] that tears no cluster, or `high` where there is none.

    Looks back 40 characters at most: a longer cluster is nothing a person wrote, and the search has
    to stay linear on a wall of combining marks.
    """
    for index in range(high, max(low, high - 40), -1):
        if not splits_cluster(text, index):
            return index
    return high
