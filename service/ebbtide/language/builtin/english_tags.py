"""Tag English words by lexicon, ending and neighbouring words.

A word is a noun unless a list, its ending or the preceding word says otherwise. A capital letter within a sentence
marks a name; at its start it proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import word_list, words
from ebbtide.text_caches import text_cache

_TIME = lexicon.MONTHS | lexicon.WEEKDAYS

_DERIVED_ADJECTIVE = ("ful", "ous", "able", "ible", "less", "ish", "iest", "ively")

_RELATIONAL = ("ic", "ive", "al", "ical", "ary", "ian", "ese")
_PREDICATED = (*_RELATIONAL, "ant", "ent", "y")

_NOUN_CONTEXT = frozenset(("det", "that", "adj", "prep", "noun", "name", "num", "mod"))

# Endings of words that are never nouns: I've, you'd.
_CLITICS = ("'ve", "'re", "'ll", "'d", "n't")
# Adjectives that end compounds: API key, traffic light.
_NOUNS_BEHIND_NOUNS = words("key light total final")
# Words that follow a linking verb.
_DESCRIBING = lexicon.ADJECTIVES | lexicon.ADVERBS | frozenset(("like", "as"))
_LINKING = word_list("english_linking_verbs")

# Words with a fixed class. If a word is in several lists, the last one counts.
_CLOSED: dict[str, str] = (
    dict.fromkeys(lexicon.ADVERBS | lexicon.AUXILIARIES, "adv")
    | dict.fromkeys(lexicon.CONJUNCTIONS, "conj")
    | dict.fromkeys(lexicon.PREPOSITIONS, "prep")
    | {"to": "to"}
    | dict.fromkeys(lexicon.MODALS, "modal")
    | dict.fromkeys(lexicon.DETERMINERS, "det")
    | dict.fromkeys(lexicon.PRONOUNS, "pronoun")
    | dict.fromkeys(lexicon.PRONOUNS & lexicon.SUBJECTS, "subject")
)
_KNOWN = (
    lexicon.VERBS
    | lexicon.AMBIGUOUS
    | lexicon.ADJECTIVES
    | lexicon.GERUNDS
    | lexicon.VAGUE_NOUNS
    | frozenset(_CLOSED)
)
# A plain word: no digits and no inner capitals.
_PLAIN = re.compile(r"[A-Za-z][a-z'’-]*")

_NUMBER = re.compile(
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]{3,5}teen|hundred|thousand|million"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-[a-z]{3,5})?)"
)

_SENTENCE_END = frozenset(".!?…:。！？：;")


def context(token: Token, kind: str) -> str:
    """Return the class of a word as context for the next word."""
    if token.tag == "word":
        pointing = kind == "det" and token.text.casefold() in ("that", "this", "what", "which")
        return "that" if pointing else kind
    if token.tag == "num":
        return "num"
    return "comma" if token.text in "-–/&," else kind


@text_cache(2048)
def normal(text: str) -> str:
    """Fold case and curly apostrophes, as in the word lists."""
    return text.replace("’", "'").casefold()


def classify(text: str, tokens: Sequence[Token], index: int, previous: str) -> str:
    """Return the part of speech of a word."""
    token = tokens[index]
    word = token.text
    if _PLAIN.fullmatch(word) is None and _is_code(word):
        return "code"
    lower = normal(word)
    capital = word[0].isupper()
    starts = capital and _starts_sentence(text, tokens, index)
    closed = _CLOSED.get(lower) or ("modal" if lower.endswith(_CLITICS) else "")
    if closed and not (closed == "adv" and capital and not starts):
        return closed
    if _NUMBER.fullmatch(lower):
        return "num"
    base = lower[:-2] if lower.endswith("'s") else lower
    if base in _TIME and (capital or base not in ("march", "may", "mar", "sun", "sat")):
        return "time"
    if word.isupper() and len(word) > 1:
        return "name" if base not in _KNOWN else _open_class(base, previous, tokens, index)
    if capital and not starts:
        return "name"
    if capital and base not in _KNOWN and _followed_by_name(tokens, index):
        return "name"
    return _open_class(base, previous, tokens, index)


def _is_code(word: str) -> bool:
    if any(char.isdigit() or char == "_" for char in word):
        return True
    return (
        any(char.isupper() for char in word[1:]) and any(char.islower() for char in word) and "-" not in word
    )


def _starts_sentence(text: str, tokens: Sequence[Token], index: int) -> bool:
    if index == 0:
        return True
    before = tokens[index - 1]
    if before.text[-1] in _SENTENCE_END or "\n" in text[before.end : tokens[index].start]:
        return True
    if before.tag == "punct" and before.text in "\"“‘'*(-•":
        return index == 1 or tokens[index - 2].text[-1] in _SENTENCE_END or before.text in '*•-"“'
    return False


def _followed_by_name(tokens: Sequence[Token], index: int) -> bool:
    if index + 1 >= len(tokens) or tokens[index + 1].tag != "word":
        return False
    after = tokens[index + 1].text
    return after[0].isupper() and normal(after) not in _CLOSED


def _next_class(tokens: Sequence[Token], index: int) -> str:
    if index + 1 >= len(tokens) or tokens[index + 1].tag != "word":
        return "break"
    return _CLOSED.get(normal(tokens[index + 1].text), "open")


def _open_class(lower: str, previous: str, tokens: Sequence[Token], index: int) -> str:
    after = _next_class(tokens, index)
    if lower in _LINKING and previous not in ("det", "adj", "prep") and _describes(tokens, index + 1):
        return "verb"
    if lower in lexicon.AMBIGUOUS:
        return _resolve(lower, previous, after)
    if lower in _NOUNS_BEHIND_NOUNS and previous in ("noun", "name", "code") and after != "open":
        return "noun"
    if lower in lexicon.ADJECTIVES or (lower.endswith("est") and _base_of(lower) in lexicon.ADJECTIVES):
        return "adj"
    if (
        (lower.endswith("ing") and lower not in lexicon.BUSY_GERUNDS and after in ("break", "prep", "conj"))
        and index
        and normal(tokens[index - 1].text) in lexicon.PURSUING
    ):
        return "noun"
    if lower in lexicon.TRUE_NOUNS or lower in lexicon.ACTIVITY_GERUNDS:
        return "noun" if previous not in ("subject", "modal") else "verb"
    if lower in lexicon.VERBS:
        return "verb"
    if previous in ("modal", "subject"):
        return "verb"
    if previous == "to" and after in ("det", "pronoun", "adv"):
        return "verb"
    if previous == "to" and index > 1 and normal(tokens[index - 2].text) in lexicon.INFINITIVE_HEADS:
        return "verb"
    return _by_ending(lower, previous, after)


def _base_of(superlative: str) -> str:
    stem = superlative[:-3]
    if stem.endswith("i"):
        return stem[:-1] + "y"
    return stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] else stem


def _describes(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word can follow a linking verb."""
    if index >= len(tokens) or tokens[index].tag != "word":
        return False
    return normal(tokens[index].text) in _DESCRIBING


def _resolve(lower: str, previous: str, after: str) -> str:
    """Resolve a word that can be verb or noun by its neighbours."""
    base = lower[:-1] if lower.endswith("s") else lower
    mostly = base in lexicon.MOSTLY_NOUNS or lower in lexicon.MOSTLY_NOUNS
    if previous == "that" and lower.endswith("s"):
        return "verb"
    if previous in ("subject", "modal", "to", "adv"):
        return "verb"
    if previous in ("noun", "name") and lower.endswith("s") and not mostly:
        return "verb"
    if previous in _NOUN_CONTEXT:
        return "verb" if previous in ("noun", "name") and after in ("det", "pronoun") else "noun"
    if after in ("det", "pronoun", "to"):
        return "verb"
    return "noun" if mostly or previous == "verb" else "verb"


def _by_ending(lower: str, previous: str, after: str) -> str:
    if lower in lexicon.GERUNDS or (lower.endswith("ing") and len(lower) > 5):
        return "mod" if previous in ("det", "adj") and after == "open" else "verb"
    if previous in ("start", "break") and after in ("det", "pronoun") and not lower.endswith("s"):
        return "verb"
    if previous in ("that", "noun") and lower.endswith("s") and after in ("det", "pronoun"):
        return "verb"
    if lower.endswith("ly") and len(lower) > 4:
        return "adv"
    if lower.endswith("ed") and len(lower) > 4 and not lower.endswith("eed"):
        return "verb"
    if lower.endswith(_DERIVED_ADJECTIVE) and len(lower) > 5:
        return "adj"
    if lower.endswith(_RELATIONAL) and len(lower) > 4 and after == "open":
        return "mod"
    if previous == "adv" and after != "open" and lower.endswith(_PREDICATED):
        return "adj"
    if len(lower) < 3 or (lower[0] > "\u024f" and len(lower) < 4):
        return "adv"
    return "noun"
