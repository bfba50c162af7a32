"""Recognise small talk: clauses of greetings, thanks, praise and wishes without content.

A clause is small talk if every word is in the lists, is a name that is only addressed, or has no content of its own
(you, is, so). A number, a negation or one other word makes it a statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.tokens import Token, tokenize
from ebbtide.language.builtin.word_lists import ordered_list, word_list, words
from ebbtide.text_caches import text_cache

# Words without content of their own.
_FUNCTION_WORDS = words_english.FUNCTION_WORDS | words("n't 's who what")
ENGLISH_WORDS = word_list("small_talk_english")
CHINESE_WORDS = word_list("small_talk_chinese")
_ENGLISH = ENGLISH_WORDS | word_list("small_talk_english_offers") | _FUNCTION_WORDS
_CHINESE = CHINESE_WORDS | words_chinese.PRONOUNS
_NEGATIONS = word_list("small_talk_negations")
# A longer clause is never mere small talk.
_WORDS_MAX = 16
# A statement of an action has a subject, a verb and a third word; "I did" answers a question.
_STATEMENT_WORDS = 3
_SUBJECTS = word_list("english_actors")
_PERSONS = words("他 她 他们 她们")
# A name after one of these is no address: She is Yoruba. In February.
_NOT_BEFORE_CALLS = words_english.AUXILIARIES | words_english.PREPOSITIONS | words_english.DETERMINERS
_LEADS = word_list("english_leads")
_NO_VERBS = words_english.AUXILIARIES | words_english.MODALS | words_english.ADVERBS
_OPINIONS = word_list("english_opinion_verbs")
_CHINESE_OPINIONS = word_list("chinese_opinion_verbs")
_ADDRESS_BREAKS = frozenset(",，!！.。?？~～…-–—")


_COURTESY_PHRASES = sorted(ordered_list("courtesy_phrases"), key=len, reverse=True)
_LATIN_PHRASES = [phrase for phrase in _COURTESY_PHRASES if phrase.isascii()]
_PHRASES = re.compile(
    "|".join(
        [
            rf"\b(?i:{'|'.join(_LATIN_PHRASES)})\b",
            *(phrase for phrase in _COURTESY_PHRASES if not phrase.isascii()),
        ]
    )
)
_KNOWN_WORDS = _ENGLISH.union(*(phrase.split() for phrase in _LATIN_PHRASES))
# Shorter words may be units of a number.
_CONTENT_WORD_MIN = 5
_PART = re.compile("[，,。.!！?？~～…;；]+")
_QUESTION_ENDS = ("?", "？")
# A longer text is never mere courtesy.
_COURTESY_CHARS_MAX = 160


@text_cache(512)
def is_courtesy(text: str) -> bool:
    """Return whether a text consists only of courtesies, praise, assent and called names."""
    if len(text) > _COURTESY_CHARS_MAX or _has_content_word(text):
        return False
    rest = _PHRASES.sub(" ", text.replace("’", "'"))
    parts = [tokenize(part) for part in _PART.split(rest)]
    informative = [tokens for tokens in parts if any(token.tag != "punct" for token in tokens)]
    return all(is_small_talk(tokens) or _is_call(tokens) for tokens in informative)


def _has_content_word(text: str) -> bool:
    """Return whether a word between spaces is certainly no courtesy. The patterns of `is_courtesy` are slow."""
    return any(
        len(word) >= _CONTENT_WORD_MIN
        and word.isascii()
        and word.isalpha()
        and word.islower()
        and word not in _KNOWN_WORDS
        for word in text.split()
    )


def _is_call(tokens: Sequence[Token]) -> bool:
    """Return whether a part between punctuation is one name."""
    return len(tokens) == 1 and tokens[0].tag.startswith("nr")


def is_pure_question(text: str) -> bool:
    """Return whether a text is one sentence that ends in a question mark."""
    return text.rstrip().endswith(_QUESTION_ENDS) and len(sentence_spans(text)) == 1


def is_filler(text: str, remember_questions: bool = False) -> bool:
    """Return whether a segment makes no memory: a courtesy, or a pure question unless questions are remembered."""
    return is_courtesy(text) or (not remember_questions and is_pure_question(text))


def is_small_talk(tokens: Sequence[Token]) -> bool:
    """Return whether a clause consists only of small talk and addressed names."""
    if not tokens or len(tokens) > 2 * _WORDS_MAX or _is_statement(tokens):
        return False
    count = 0
    for index, token in enumerate(tokens):
        if token.tag == "punct":
            continue
        if not _is_social(token) and not _is_addressed(tokens, index):
            return False
        count += token.tag != "other"
    return 0 < count <= _WORDS_MAX


def _is_statement(tokens: Sequence[Token]) -> bool:
    """Return whether a clause states what a person did: She said yes. We did it. 他来了"""
    if any(token.text in _PERSONS for token in tokens):
        verbs = [
            token.text
            for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True)
            if token.tag in ("v", "vi", "vn") or (after.text == "了" and token.tag not in ("a", "ul"))
        ]
        return any(verb not in _CHINESE_OPINIONS for verb in verbs)
    said = [normal(token.text) for token in tokens if token.tag == "word"]
    while said and said[0] in _LEADS:
        said.pop(0)
    if said[:2] == ["not", "any"]:
        return True
    if len(said) < _STATEMENT_WORDS or said[0] not in _SUBJECTS:
        return False
    verb = next((word for word in said[1:] if word == "did" or word not in _NO_VERBS), "")
    if said[0] in ("i", "we"):
        return verb not in _OPINIONS and words_english.is_past(verb)
    if verb in _OPINIONS and any(word in words_english.ADJECTIVES for word in said):
        return False
    return verb in words_english.VERBS or verb in words_english.AMBIGUOUS


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
    if before is not None and (normal(before.text) in _NOT_BEFORE_CALLS or "'" in normal(before.text)):
        return False
    ends = after is None or after.text in _ADDRESS_BREAKS
    set_off = (
        before is None or before.text in _ADDRESS_BREAKS or _is_social(before) or before.tag.startswith("nr")
    )
    return set_off and (ends or (after is not None and after.tag.startswith("nr")))
