"""Classify the words of an English text by what they do in their clause.

The classes are those of english_tags.py. In addition, an auxiliary is `aux`, and a contraction with a verb is `clause`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.english_tags import classify, context, normal
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import word_list, words

_CONTRACTED = words(
    "i'm im you're youre he's hes she's shes it's we're they're theyre that's thats there's theres who's"
    " what's here's where's how's i've ive you've youve we've weve they've theyve i'd you'd he'd she'd we'd they'd"
    " i'll you'll he'll she'll it'll we'll they'll that'll there'll that'd it'd there'd who'd who'll this'll"
)
_NUMERALS = word_list("english_number_words") - words("one and but so or yet oh yes no well ok okay") | words(
    "hundred thousand"
)
_NO_HEADS = words("same last worst first next other only main")
_STEMS = words("bring sing ring sting swing cling fling spring string")


def classes_of(text: str, tokens: Sequence[Token]) -> list[str]:
    """Return the class of each token."""
    kinds: list[str] = []
    previous = "start"
    for index, token in enumerate(tokens):
        lower = normal(token.text)
        kind = token.tag if token.tag in ("num", "date") else "break"
        if token.tag == "word":
            kind = classify(text, tokens, index, previous)
        elif token.tag in ("url", "path", "title", "digits"):
            kind = "code"
        before = kind
        if kind in ("det", "noun", "adj") and lower in _NUMERALS:
            kind = "num"
        if (token.text == "May" and index) or (lower in ("am", "pm") and kinds[-1:] in (["num"], ["time"])):
            kind, before = "time", "break"
        if lower == "longer" and index and normal(tokens[index - 1].text) == "no":
            kind = "adv"
        if kind == "verb" and lower.endswith("s") and lower in lexicon.AMBIGUOUS and "num" in kinds[-2:-1]:
            kind = "noun"
        if kind == "adj" and previous in ("noun", "name") and lower.endswith("ed"):
            kind = "verb"
        if kind == "adj" and _is_used_as_noun(tokens, index):
            kind = "noun"
        previous = context(token, kind)
        if kind == "date":
            kind = "time"
        elif lower in _CONTRACTED:
            kind = "clause"
            previous = "modal" if lower.endswith(("'d", "'ll")) else "adv"
        elif before != "break" and lower in lexicon.AUXILIARIES | lexicon.MODALS and lower != "please":
            kind = "aux"
        elif kind == "noun" and lower.endswith("'s") and _is_contracted(tokens, index):
            kind = "clause"
        kinds.append(kind)
    return kinds


def _is_used_as_noun(tokens: Sequence[Token], index: int) -> bool:
    """Return whether an adjective has an article and no noun: the dark."""
    word = normal(tokens[index].text)
    if not index or normal(tokens[index - 1].text) != "the" or word.endswith("est") or word in _NO_HEADS:
        return False
    after = normal(tokens[index + 1].text) if index + 1 < len(tokens) else "."
    return not after[0].isalnum() or after in lexicon.PREPOSITIONS or after in lexicon.CONJUNCTIONS


def _is_contracted(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a noun in 's is a subject with its verb (the starter's dead), and no owner."""
    after = normal(tokens[index + 1].text) if index + 1 < len(tokens) else ""
    behind = normal(tokens[index + 2].text) if index + 2 < len(tokens) else ""
    if after in lexicon.DETERMINERS or after in lexicon.ADVERBS or after in lexicon.PREPOSITIONS:
        return True
    if after.endswith("ing") and after in lexicon.GERUNDS:
        return True
    return after in lexicon.ADJECTIVES and (not behind[:1].isalpha() or behind in lexicon.FUNCTION_WORDS)


def is_gerund(word: str) -> bool:
    """Return whether a word is a verb form in -ing, unlike bring and sing."""
    return word.endswith("ing") and word not in _STEMS
