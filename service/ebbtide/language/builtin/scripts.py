"""Detect writing systems from Unicode ranges.

All modules of the built-in model use these functions, so that a message is never Chinese in one place and English in
another. Width is the common measure of length: a Han character counts as two and a half Latin ones.
"""

from __future__ import annotations

import re
import unicodedata

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"

# Latin characters that carry as much information as one Han character in chat: 5.5 per English word with the
# space, 1.6 per Chinese word, and Chinese uses somewhat more words.
DENSE_WIDTH = 2.5

_DENSE = re.compile(f"[{HAN}{KANA}]")
_HAN_ONLY = re.compile(f"[{HAN}]+")
_KANA = re.compile(f"[{KANA}]")
_WORD = re.compile(r"[^\W_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")

_ZWJ = "\u200d"


def has_word(text: str) -> bool:
    """Return whether a text contains a letter, digit or ideograph."""
    return _WORD.search(text) is not None


def dense_count(text: str) -> int:
    """Return the number of Han and Kana characters."""
    return 0 if text.isascii() else len(_DENSE.findall(text))


def has_han(text: str) -> bool:
    """Return whether a text contains a Han character."""
    return not text.isascii() and _HAN_ONLY.search(text) is not None


def is_han(text: str) -> bool:
    """Return whether a text consists of Han characters only."""
    return not text.isascii() and _HAN_ONLY.fullmatch(text) is not None


def width(text: str) -> float:
    """Return the length of a text in Latin characters, with Han and Kana weighted."""
    return len(text) + (DENSE_WIDTH - 1) * dense_count(text)


def is_dense(text: str) -> bool:
    """Return whether a text reads as Chinese or Japanese rather than as a language with spaces.

    Chinese text may contain a few Latin names. With more than four Latin letters per Han character it counts as Latin.
    """
    count = dense_count(text)
    return count > 0 and count * 4 >= len(_LATIN.findall(text))


def is_japanese(text: str) -> bool:
    """Return whether Kana is so frequent that Chinese word lists would do harm."""
    kana = 0 if text.isascii() else len(_KANA.findall(text))
    return kana > 0 and kana * 6 >= dense_count(text)


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def splits_cluster(text: str, index: int) -> bool:
    """Return whether a cut before `index` would split a grapheme cluster."""
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
    """Return the last position in (low, high] that splits no grapheme cluster, or `high` if there is none.

    The search goes back 40 characters at most, so it stays linear on a run of combining marks.
    """
    for index in range(high, max(low, high - 40), -1):
        if not splits_cluster(text, index):
            return index
    return high
