"""English nouns: a small tagger by lexicon, ending and neighbours, and the noun phrases it finds.

The rule guarded here: a word is a noun unless a list, its ending or the word before it says
otherwise, and a phrase is a run of nouns (payment service, road trip) or of capitals (New York,
Acme Widget Works). Words of other scripts written with spaces are taken for nouns when long
enough.

Deliberately not here: sentence structure. Three words of context decide everything.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.english_tags import classify, context, normal
from ebbtide.language.builtin.tokens import Candidate, Token
from ebbtide.language.builtin.word_lists import words

_GREETINGS = words("hey hi hello thanks thank wow dear yeah bye ok okay yes sure no congrats oh")
_PHRASE_WORDS_MAX = 3
_NAME_WORDS_MAX = 4
_LENGTH_MAX = 30


def english_candidates(text: str, tokens: Sequence[Token]) -> list[Candidate]:
    """Return the noun phrases, names and codes of the alphabetic parts of a text."""
    found: list[Candidate] = []
    chunk: list[tuple[Token, str]] = []
    previous = "start"
    for index, token in enumerate(tokens):
        kind = "break"
        if token.tag == "word":
            kind = classify(text, tokens, index, previous)
        joined = chunk and _joins(text, chunk, token, kind)
        if not joined:
            found.extend(_phrase_of(text, chunk))
            chunk = []
        if kind in ("noun", "name", "mod", "code"):
            chunk.append((token, kind))
        elif kind in ("verb", "adj") and len(token.text) > 3 and _is_weak(token):
            found.append(Candidate(token.text, token.start, token.end, "weak", 0.25))
        previous = context(token, kind)
        if token.text.endswith(("'s", "’s")) and kind != "noun":
            found.extend(_phrase_of(text, chunk))
            chunk = []
            previous = "det"
    found.extend(_phrase_of(text, chunk))
    return found


def _is_weak(token: Token) -> bool:
    """Tell whether a verb or adjective may stand in for a keyword where a text has no noun."""
    lower = normal(token.text)
    return token.tag == "word" and lower not in lexicon.VERBS and lower not in lexicon.DROPPABLE


def _joins(text: str, chunk: list[tuple[Token, str]], token: Token, kind: str) -> bool:
    """Tell whether a word carries on the phrase begun."""
    last, last_kind = chunk[-1]
    if kind not in ("noun", "name", "mod", "code") or text[last.end : token.start] != " ":
        return False
    if token.text[0] > "\u024f":
        return False
    return not (kind == "name" and last_kind in ("noun", "mod"))


def _phrase_of(text: str, chunk: list[tuple[Token, str]]) -> list[Candidate]:
    """Make one candidate of a run of nouns, trimmed of vague words at both ends."""
    words = list(chunk)
    while words and (words[-1][1] == "mod" or _is_vague(words[-1])):
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


def _vague(chunk: list[tuple[Token, str]]) -> list[Candidate]:
    return [
        Candidate(token.text, token.start, token.end, "weak", 0.2)
        for token, _ in chunk
        if 3 < len(token.text) <= _LENGTH_MAX and "'" not in token.text
    ]


def _weigh(text: str, start: int, end: int, words: list[tuple[Token, str]], named: bool) -> tuple[str, float]:
    if named:
        kind = "code" if any(kind == "code" for _, kind in words) else "name"
        weight = 2.0 + 0.3 * (len(words) - 1)
        if kind == "name" and _is_vocative(text, start, end):
            return "weak", 0.35
        return kind, weight
    if len(words) == 1 and text[start:end].casefold() in lexicon.WEAK_NOUNS:
        return "noun", 0.6
    length = min(end - start, 14)
    return "noun", 1.1 + 0.04 * length + 0.5 * (len(words) - 1)


def _is_vocative(text: str, start: int, end: int) -> bool:
    """Tell whether a name only calls somebody: `Thanks, Ann!`, `Hey Ann,`."""
    after = text[end : end + 1]
    if after not in (",", "!", ".", "?", "-", ""):
        return False
    before = text[max(0, start - 16) : start].rstrip()
    if before.endswith(","):
        return after in ("!", ".", "?", "-", "") or before[:-1].split(" ")[-1].casefold() in _GREETINGS
    return (before.split(" ")[-1] if before else "").casefold() in _GREETINGS or (
        not before and after in ",!"
    )
