"""Name the relation of two texts by a noun that they share.

A name has 2-4 Han characters or 1-2 words and is the most specific noun that both texts use. Texts that share only
pronouns, numbers, times or commonplaces have no relation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.keywords import stem
from ebbtide.language.builtin.scripts import is_han
from ebbtide.language.builtin.tokens import Candidate, search_words
from ebbtide.language.builtin.word_lists import word_list, words
from ebbtide.language.builtin.words_chinese import KIN, PRONOUNS, TIME_FILLERS, VAGUE_NOUNS
from ebbtide.language.builtin.words_english import EMPTY_ALONE, WEAK_NOUNS
from ebbtide.language.builtin.words_english import VAGUE_NOUNS as VAGUE_ENGLISH

_NAME_MAX = 32
_HAN_MIN, _HAN_MAX = 2, 4
_WORDS_MAX = 2
_KINDS = frozenset(("name", "title", "code", "noun", "kin"))
_STOPPED = PRONOUNS | TIME_FILLERS | VAGUE_NOUNS
# Nouns of less weight do not connect two texts, except for persons and a few plain things.
_SPECIFIC = 1.0
_INFORMATIVE = (KIN - words("朋友 同事 同学")) | words(
    "电影 音乐 孩子 老师 学校 客户 老板 会议 生日 产品 系统 猫 狗 车 书 歌 鱼 茶 酒 花 画 trip kid kids"
)
# Attributes of anything are no relation.
_ANYTHING_HAS = word_list("common_attributes")
# A single letter is not a name.
_LATIN_MIN = 2
_EMPTY = VAGUE_ENGLISH | EMPTY_ALONE | (WEAK_NOUNS - _INFORMATIVE) | _ANYTHING_HAS
_UNNAMING = _STOPPED | _ANYTHING_HAS

_Names = dict[str, tuple[float, str]]


def relate(node: str, focuses: Sequence[str]) -> list[str]:
    """Return the relation of `node` to each focus, or "" if they share no specific noun."""
    return relate_many([(node, focuses)])[0]


def relate_many(questions: Iterable[tuple[str, Sequence[str]]]) -> list[list[str]]:
    """Relate each node to its focuses. A text that occurs several times is read once."""
    read: dict[str, _Names] = {}

    def names(text: str) -> _Names:
        if text not in read:
            read[text] = _names(text)
        return read[text]

    return [[_best_shared(names(node), names(focus)) for focus in focuses] for node, focuses in questions]


def _best_shared(own: _Names, other: _Names) -> str:
    best: tuple[float, str] | None = None
    for key, (weight, name) in own.items():
        if key not in other:
            continue
        score = min(weight, other[key][0]) + 0.02 * len(name)
        if best is None or score > best[0]:
            best = (score, name)
    return best[1] if best else ""


def _names(text: str) -> _Names:
    """Return the possible names in a text by their folded form, in order."""
    names: _Names = {}
    for candidate in candidates(text):
        if candidate.kind not in _KINDS or (
            candidate.weight < _SPECIFIC and candidate.text not in _INFORMATIVE
        ):
            continue
        for weight, name in _forms(candidate):
            key = " ".join(stem(word) for word in name.split(" "))
            if key not in names or names[key][0] < weight:
                names[key] = (weight, name)
    return names


def _forms(candidate: Candidate) -> list[tuple[float, str]]:
    """Return the forms of a noun phrase that are short enough for a name: the whole first, then its parts."""
    text = candidate.text.strip("《》")
    if is_han(text):
        forms = [(candidate.weight, text)] if _HAN_MIN <= len(text) <= _HAN_MAX else []
        if len(text) > 3:
            parts = [word for word in search_words(text) if _HAN_MIN <= len(word) <= _HAN_MAX]
            forms += [(candidate.weight * 0.6, word) for word in parts if word != text]
        return [(weight, name) for weight, name in forms if name not in _UNNAMING]
    parts = text.split()
    forms = []
    if len(parts) <= _WORDS_MAX:
        forms.append((candidate.weight, text))
    if len(parts) == 3:
        forms.append((candidate.weight * 0.8, " ".join(parts[1:])))
    if len(parts) > 1:
        forms += [(candidate.weight * 0.55, word) for word in parts]
    return [(weight, name) for weight, name in forms if _is_name(name)]


def _is_name(name: str) -> bool:
    if not _LATIN_MIN <= len(name) <= _NAME_MAX or "\n" in name:
        return False
    if name.casefold() in _EMPTY or name in _STOPPED:
        return False
    return name[0].isalpha() or any(char.isalpha() for char in name)
