"""Decide whether a clause names its own subject.

In Chinese, a noun before the first verb is a subject unless a preposition governs it. In English, a clause that begins
with a verb or a relative word has none. In case of doubt a clause has a subject.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_english
from ebbtide.language.builtin.scripts import is_han
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import word_list, words

_SUBJECT_TAGS = words("n nr ns nt nz nw nrt nrfg vn r title an x nrf j l num m word code path")
_NO_SUBJECT = word_list("chinese_no_subjects")
# English clauses that begin like this describe the preceding clause.
_RELATIVE = word_list("english_relatives")
# Prepositions that set a topic without governing the subject.
_TOPIC = words("除了 至于 关于")


def has_subject(tokens: Sequence[Token]) -> bool:
    """Return whether a clause names a person or thing before its first verb, or is an English order."""
    governed = dense = False
    for index, token in enumerate(tokens):
        if token.tag == "word" and not dense:
            return _has_english_subject(token)
        dense = dense or is_han(token.text)
        if _is_predicate(tokens, index):
            return False
        if token.tag == "p":
            governed = token.text not in _TOPIC
        elif token.tag in _SUBJECT_TAGS and token.text not in _NO_SUBJECT:
            outside = token.tag == "r" and tokens[index - 1].tag != "p"
            if not governed or outside:
                return True
    return not any(token.tag in ("v", "d", "p") for token in tokens)


def _is_predicate(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word is the verb of its clause: by its tag, by 了 after it, or an activity noun at the end."""
    token = tokens[index]
    if index + 1 < len(tokens) and tokens[index + 1].text in ("了", "过", "着"):
        return True
    if token.tag in ("v", "vd", "ul") or token.text in ("是", "有"):
        return True
    return token.tag == "vn" and all(after.tag in ("punct", "ul", "y") for after in tokens[index + 1 :])


def _has_english_subject(first: Token) -> bool:
    lower = first.text.casefold()
    if lower in words_english.BASE_VERBS:
        return True
    return lower not in _RELATIVE and lower not in words_english.VERBS and lower not in words_english.GERUNDS
