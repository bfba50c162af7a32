"""Find English noun phrases by lexicon, ending and neighbouring words.

A word is a noun unless a list, its ending or the preceding word says otherwise. A phrase is a run of nouns (payment
service, road trip) or of capitalised words (New York, Acme Widget Works). Long enough words of other scripts with
spaces count as nouns.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.english_tags import classify, context, normal
from ebbtide.language.builtin.tokens import CALLED_NAME, Candidate, Token
from ebbtide.language.builtin.word_lists import word_list, words

_GREETINGS = word_list("english_greetings")
_NUMBERED = word_list("english_numbered")
_TAILS = word_list("english_compound_ends")
# Words that begin a question before its subject.
_ASKING = words("do does did will would can could should has have had")
# Weight of a topical verb or adjective: higher than any other weak candidate.
TOPICAL_WEIGHT = 0.45
# Words that begin a sentence after an addressed name and its comma.
_AFTER_CALL = (
    lexicon.PRONOUNS | lexicon.DETERMINERS | lexicon.AUXILIARIES | lexicon.ADVERBS | lexicon.CONJUNCTIONS
)
_NOMINAL = frozenset(("noun", "name", "mod", "code"))
_PHRASE_WORDS_MAX = 3
_NAME_WORDS_MAX = 4
_LENGTH_MAX = 30


def english_candidates(text: str, tokens: Sequence[Token]) -> list[Candidate]:
    """Return the noun phrases, names and codes of the alphabetic parts of a text."""
    found: list[Candidate] = []
    if all(token.tag != "word" for token in tokens):
        return found
    chunk: list[tuple[Token, str]] = []
    previous = "start"
    for index, token in enumerate(tokens):
        kind = "break"
        if token.text == "." and chunk and chunk[-1][0].text in lexicon.TITLES:
            continue
        if token.tag == "word":
            kind = classify(text, tokens, index, previous)
            if kind == "noun" and _is_asked_verb(tokens, index, chunk):
                kind = "verb"
        elif _numbers_name(text, chunk, token):
            kind = "code"
        if chunk and not _joins(text, chunk, token, kind):
            found.extend(_phrase_of(text, chunk))
            chunk = []
        if kind in _NOMINAL:
            chunk.append((token, kind))
        elif kind in ("verb", "adj") and len(token.text) > 3 and _is_weak(token):
            topical = normal(token.text) in lexicon.TOPICAL
            weight = TOPICAL_WEIGHT if topical else 0.25
            found.append(Candidate(token.text, token.start, token.end, "weak", weight))
        previous = context(token, kind)
        if token.text.endswith(("'s", "’s")) and kind != "noun" and not _owns_name(text, tokens, index):
            found.extend(_phrase_of(text, chunk))
            chunk = []
            previous = "det"
    found.extend(_phrase_of(text, chunk))
    return found


def _is_asked_verb(tokens: Sequence[Token], index: int, chunk: list[tuple[Token, str]]) -> bool:
    """Return whether a word is the verb of a question about a name: Where did Caroline move from?"""
    before = index - len(chunk) - 1
    named = bool(chunk) and before >= 0 and all(kind == "name" for _, kind in chunk)
    return named and normal(tokens[before].text) in _ASKING


def _owns_name(text: str, tokens: Sequence[Token], index: int) -> bool:
    """Return whether a possessive is part of a name: St. Mary's Hospital."""
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    return after is not None and after.text[0].isupper() and text[tokens[index].end : after.start] == " "


def _numbers_name(text: str, chunk: list[tuple[Token, str]], token: Token) -> bool:
    """Return whether a number belongs to the preceding name: Cyberpunk 2077, Python 3."""
    named = bool(chunk) and (chunk[-1][1] in ("name", "code") or normal(chunk[-1][0].text) in _NUMBERED)
    return (
        named and token.text.isdigit() and len(token.text) < 5 and text[chunk[-1][0].end : token.start] == " "
    )


def _is_weak(token: Token) -> bool:
    """Return whether a verb or adjective may represent a text without nouns."""
    lower = normal(token.text)
    if lower in lexicon.TOPICAL:
        return True
    return token.tag == "word" and lower not in lexicon.VERBS and lower not in lexicon.DROPPABLE


def _joins(text: str, chunk: list[tuple[Token, str]], token: Token, kind: str) -> bool:
    """Return whether a word continues the current phrase."""
    last, last_kind = chunk[-1]
    gap = text[last.end : token.start]
    if kind not in _NOMINAL or not (gap == " " or (gap == ". " and last.text in lexicon.TITLES)):
        return False
    if token.text[0] > "\u024f":
        return False
    return not (kind == "name" and last_kind in ("noun", "mod"))


def _phrase_of(text: str, chunk: list[tuple[Token, str]]) -> list[Candidate]:
    """Return a candidate for a run of nouns, without vague words at its ends."""
    if not chunk:
        return []
    words = list(chunk)
    while words and (words[-1][1] == "mod" or (_is_vague(words[-1]) and not _is_tail(words))):
        words.pop()
    while words and _is_vague(words[0]):
        words.pop(0)
    if not words:
        return _vague(chunk)
    named = all(kind in ("name", "code") for _, kind in words)
    words = words[-(_NAME_WORDS_MAX if named else _PHRASE_WORDS_MAX) :]
    while len(words) > 1 and words[-1][0].end - words[0][0].start > _LENGTH_MAX:
        words.pop(0)
    start, end = words[0][0].start, words[-1][0].end
    if text[start:end].endswith(("'s", "’s")):
        end -= 2
    if end - start > _LENGTH_MAX or end <= start:
        return []
    kind, weight = _weigh(text, start, end, words, named)
    return [Candidate(text[start:end], start, end, kind, weight)]


def _is_vague(item: tuple[Token, str]) -> bool:
    token, kind = item
    lower = normal(token.text)
    if lower in lexicon.VAGUE_NOUNS and lower not in lexicon.WEAK_NOUNS:
        return kind != "name"
    return (kind != "code" and len(lower) < 3 and not token.text.isupper()) and kind != "name"


def _is_tail(words: list[tuple[Token, str]]) -> bool:
    """Return whether a vague word ends a compound that is not vague: API key, weight loss."""
    return (
        len(words) > 1
        and normal(words[-1][0].text) in _TAILS
        and words[-2][1] != "mod"
        and not _is_vague(words[-2])
    )


def _vague(chunk: list[tuple[Token, str]]) -> list[Candidate]:
    return [
        Candidate(token.text, token.start, token.end, "weak", 0.2)
        for token, _ in chunk
        if 3 < len(token.text) <= _LENGTH_MAX and "'" not in token.text
    ]


def _weigh(text: str, start: int, end: int, words: list[tuple[Token, str]], named: bool) -> tuple[str, float]:
    if named:
        kind = "code" if any(kind == "code" for _, kind in words) else "name"
        weight = (2.2 if kind == "code" else 2.7) + 0.3 * (len(words) - 1)
        if kind == "name" and _is_vocative(text, start, end):
            return "weak", CALLED_NAME
        return kind, weight
    if len(words) == 1:
        lower = normal(text[start:end])
        if lower in lexicon.MODEST:
            return "weak", TOPICAL_WEIGHT
        if lower in lexicon.EMPTY_ALONE or (
            words[0][0].text[0].isupper() and _opens_by_name(text, start, end)
        ):
            return "weak", 0.3
        if lower in lexicon.WEAK_NOUNS:
            return "noun", 0.6
    length = min(end - start, 14)
    return "noun", 1.1 + 0.04 * length + 0.5 * (len(words) - 1)


def _opens_by_name(text: str, start: int, end: int) -> bool:
    """Return whether a sentence begins by addressing a person: `John, that was kind`, but not `Milk, eggs`."""
    if text[end : end + 2] != ", " or (start and text[start - 2 : start - 1] not in (".", "!", "?")):
        return False
    after = text[end + 2 : end + 14].split(" ")[0].strip(".,!?")
    return after.replace("’", "'").casefold() in _AFTER_CALL


def _is_vocative(text: str, start: int, end: int) -> bool:
    """Return whether a name is only an address: `Thanks, Ann!`, `Hey Ann,`."""
    after = text[end : end + 1]
    if after not in (",", "!", ".", "?", "-", ""):
        return False
    before = text[max(0, start - 16) : start].rstrip()
    if before.endswith(","):
        return after in ("!", ".", "?", "-", "") or before[:-1].split(" ")[-1].casefold() in _GREETINGS
    return (before.split(" ")[-1] if before else "").casefold() in _GREETINGS or (
        not before and after in ",!"
    )
