"""Recognise small talk: clauses of greetings, thanks, praise and wishes without content.

A clause is small talk if every word is in the lists, is a name that is only addressed, or has no content of its own
(you, is, so). A number, a negation or one other word makes it a statement.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.clauses import clauses
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.tokens import Token, tokenize
from ebbtide.language.builtin.word_lists import word_list, words

# Words without content of their own.
_FUNCTION_WORDS = (
    words_english.PRONOUNS
    | words_english.DETERMINERS
    | words_english.PREPOSITIONS
    | words_english.CONJUNCTIONS
    | words_english.AUXILIARIES
    | words_english.ADVERBS
    | words("n't 's who what")
)
ENGLISH_WORDS = word_list("small_talk_english")
CHINESE_WORDS = word_list("small_talk_chinese")
_ENGLISH = ENGLISH_WORDS | word_list("small_talk_english_offers") | _FUNCTION_WORDS
_CHINESE = CHINESE_WORDS | words_chinese.PRONOUNS
_NEGATIONS = words("never nobody nothing without won't wouldn't isn't wasn't aren't 不会 不能 不想 不要 没有")
# A longer clause is never mere small talk.
_WORDS_MAX = 16
_ADDRESS_BREAKS = frozenset(",，!！.。?？~～…-–—")


def is_small_talk(tokens: Sequence[Token]) -> bool:
    """Return whether a clause consists only of small talk and addressed names."""
    if not tokens or len(tokens) > 2 * _WORDS_MAX:
        return False
    count = 0
    for index, token in enumerate(tokens):
        if token.tag == "punct":
            continue
        if not _is_social(token) and not _is_addressed(tokens, index):
            return False
        count += token.tag != "other"
    return 0 < count <= _WORDS_MAX


MAX_FILLER_CHARS = 400
"""A longer text is never a filler."""


def is_filler(text: str, *, with_questions: bool) -> bool:
    """Return whether a text is only courtesies or, `with_questions`, one sentence that asks."""
    if len(text) > MAX_FILLER_CHARS:
        return False
    if (
        with_questions
        and text.rstrip("\"'”’」』)） \n\t").endswith(("?", "？"))
        and len(sentence_spans(text)) == 1
    ):
        return True
    return is_courtesy(text)


def is_courtesy(text: str) -> bool:
    """Return whether every clause of a text is small talk, and one is more than function words."""
    found = [tokenize(text[one.start : one.end]) for one in clauses(text)]
    return all(map(is_small_talk, found)) and any(
        token.text.casefold() in ENGLISH_WORDS or token.text in CHINESE_WORDS
        for tokens in found
        for token in tokens
    )


def _is_social(token: Token) -> bool:
    if token.tag == "word":
        lower = token.text.replace("’", "'").casefold()
        return lower not in _NEGATIONS and (lower in _ENGLISH or lower.partition("'")[0] in _ENGLISH)
    return token.text in _CHINESE and token.text not in _NEGATIONS


def _is_addressed(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word is a name set off by punctuation, or one after a greeting."""
    token = tokens[index]
    if token.tag == "word":
        named = token.text[0].isupper() and token.text.casefold() not in words_english.VERBS
    else:
        named = token.tag.startswith("nr")
    if not named:
        return False
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    before = tokens[index - 1] if index else None
    ends = after is None or after.text in _ADDRESS_BREAKS
    set_off = (
        before is None or before.text in _ADDRESS_BREAKS or _is_social(before) or before.tag.startswith("nr")
    )
    return set_off and (ends or (after is not None and after.tag.startswith("nr")))
