"""Find Chinese noun phrases from part-of-speech tags.

Neighbouring nouns become one phrase while it is short and names one thing (新品发布会, 湿地公园). Words that only refer
(这个, 东西, 今天) are never candidates. Kana and Hangul words are accepted by length alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ebbtide.language.builtin.chinese_names import organisations
from ebbtide.language.builtin.scripts import HAN, has_han, is_han, is_japanese
from ebbtide.language.builtin.small_talk import CHINESE_WORDS as SOCIAL
from ebbtide.language.builtin.tokens import CALLED_NAME, GREEDY, Candidate, Token
from ebbtide.language.builtin.word_lists import ordered_list, word_list, words
from ebbtide.language.builtin.words_chinese import (
    ACTIVITIES,
    ATTRIBUTIVE_VERBS,
    HONORIFICS,
    KIN,
    NO_END,
    NO_START,
    NOUN_ENDINGS,
    NOUN_TAGS,
    STOPPED,
    SURNAMES,
    WEAK_NOUNS,
)

_NAME_TAGS = words("nr nr1 nr2 nrj nrf nrt nrfg ns nsf nt nz nw")
_PLACE_TAGS = words("ns nsf nt s")
# Words before a name that is only addressed.
_CALLS = word_list("chinese_calls")
# The dictionary contains fragments (我会, 找我聊) with characters that no noun contains.
_POINTING = frozenset("我你您他她它")
# A Japanese noun is a run of Kanji and Katakana; Hiragana marks grammar.
_JAPANESE = re.compile(f"[{HAN}\u30a1-\u30fa\u30fc]{{2,30}}")
_PARTICLES = ordered_list("korean_particles")
# Longer compounds rarely name one thing.
_COMPOUND_MAX = 8
# Words before a classifier: 那阵 is no part of a name.
_COUNTING = words("那 这 每 几")
_AMOUNT_ENDS = tuple("一二两三四五六七八九十百千万多")
_LOCATIVES = word_list("chinese_locatives")


def chinese_candidates(text: str, tokens: Sequence[Token]) -> list[Candidate]:
    """Return the noun phrases, names and numbers of the Han, Kana and Hangul parts of a text."""
    if is_japanese(text):
        return [_plain(m.group(), m.start()) for m in _JAPANESE.finditer(text)]
    if not has_han(text):
        return [candidate for token in tokens for candidate in _single(token)]
    found = organisations(text, tokens)
    tokens = _with_derived(tokens)
    run: list[Token] = []
    before = ""
    for token in tokens:
        is_noun = _is_noun(token)
        if is_noun and _continues(run, token):
            run.append(token)
            continue
        if run:
            found.extend(_phrases(text, run, before))
            before = run[-1].text
        run = [token] if is_noun else []
        if not run:
            found.extend(_single(token))
        if not run and (token.tag != "punct" or token.text not in "，,"):
            before = token.text
    found.extend(_phrases(text, run, before))
    return found


_CLEAR_ENDINGS = word_list("chinese_clear_endings")
_AMOUNT_WEIGHT = 1.6
_MANY_HAVE = word_list("chinese_common_relations")
_AMOUNT = re.compile("[万千百亿块元]")
_NUMERAL = re.compile("[零一二两三四五六七八九十百千万亿多几半]+[块元]?")
_NEGATED = words("不锈钢 不动产 不倒翁 未来 别墅 别人")


def _with_derived(tokens: Sequence[Token]) -> list[Token]:
    """Join words with endings that form a noun, and tag attributive verbs before a noun as nouns."""
    derived: list[Token] = []
    for token in tokens:
        last = derived[-1] if derived else None
        adjacent = last is not None and last.end == token.start
        if last is not None and adjacent and _derives(last, token):
            derived[-1] = Token(last.text + token.text, last.start, token.end, "n")
            continue
        if last is not None and adjacent and last.tag == token.tag == "m" and _NUMERAL.fullmatch(last.text):
            derived[-1] = Token(last.text + token.text, last.start, token.end, "m")
            continue
        if last is not None and adjacent and _is_full_name(last, token):
            derived[-1] = Token(last.text + token.text, last.start, token.end, "nr")
            continue
        before_noun = adjacent and token.tag in NOUN_TAGS and token.text not in STOPPED
        if last is not None and before_noun and last.tag == "v" and last.text in ATTRIBUTIVE_VERBS:
            derived[-1] = last._replace(tag="n")
        derived.append(token)
    return derived


def _is_full_name(last: Token, token: Token) -> bool:
    """Return whether two words are one name: 小 + 李, 郭 + 志强, 李 + 总, 范 + 会计."""
    if last.text in SURNAMES and token.text in HONORIFICS:
        return True
    if not token.tag.startswith("nr"):
        return False
    return (last.text in ("小", "老", "阿") and len(token.text) == 1) or (
        last.text in SURNAMES and len(token.text) == 2
    )


def _derives(last: Token, token: Token) -> bool:
    if token.text in _CLEAR_ENDINGS and last.tag in ("n", "vn", "nz") and len(last.text) > 1:
        return last.text not in STOPPED and last.text not in KIN
    if token.text not in NOUN_ENDINGS or token.tag in ("v", "p", "d", "r", "m"):
        return False
    attributive = last.text in ATTRIBUTIVE_VERBS or last.tag in ("vn", "n", "nz")
    return attributive and len(last.text) > 1 and last.text not in STOPPED and last.text not in KIN


def _is_noun(token: Token) -> bool:
    if token.text[0] in "不没未别" and token.text not in _NEGATED:
        return False
    if token.text[0] in "一几" and len(token.text) == 2 and token.tag == "n":
        return False
    if token.text[0] in "太很最更" or not _POINTING.isdisjoint(token.text):
        return False
    if token.tag == "l" and not GREEDY.search(token.text) and token.text not in STOPPED:
        return True
    if token.tag in NOUN_TAGS or token.text in ACTIVITIES:
        return token.text not in STOPPED
    if token.tag != "x" or len(token.text) < 2 or token.text in STOPPED:
        return False
    return is_han(token.text) and not GREEDY.search(token.text)


def _continues(run: list[Token], token: Token) -> bool:
    """Return whether a noun continues the current compound."""
    if not run or run[-1].end != token.start:
        return False
    last = run[-1]
    if token.end - run[0].start > _COMPOUND_MAX:
        return False
    if "l" in (last.tag, token.tag):
        return False
    if token.tag == "ng" and len(last.text) > 1 and last.text not in KIN:
        return True
    if (
        last.tag.startswith("nr")
        or token.tag.startswith("nr")
        or last.text in KIN
        or last.text in "爸妈哥姐弟妹"
    ):
        return False
    return not (token.tag == "vn" and last.tag in _PLACE_TAGS)


def _phrases(whole: str, run: list[Token], before: str) -> list[Candidate]:
    """Return the candidates of a run of nouns. After a preposition, a verb-like tail is separated."""
    if not run:
        return []
    if before in _LOCATIVES:
        for index in range(1, len(run)):
            if run[index].tag == "vn":
                return _phrases(whole, run[:index], before) + _phrases(whole, run[index:], "")
    if len(run) > 1 and len(run[0].text) == 1 and (before in _COUNTING or before[-1:] in _AMOUNT_ENDS):
        run = run[1:]
    while len(run) > 1 and (run[0].tag == "s" or run[0].text in WEAK_NOUNS) and len(run[-1].text) > 1:
        run = run[1:]
    text = "".join(token.text for token in run)
    first, last = run[0], run[-1]
    if text in STOPPED:
        return []
    called = before in _CALLS or _is_called(whole, first.start, last.end, before)
    kind, weight = _weigh(text, run, called)
    return [Candidate(text, first.start, last.end, kind, weight)]


def _is_called(text: str, start: int, end: int, before: str) -> bool:
    """Return whether a name is only addressed: 抱歉，志强。 or 志强，你……"""
    after = text[end : end + 1]
    if after and after not in "，,！!。.？?～~":
        return False
    led = text[start - 1 : start]
    if led and led in "，,":
        return before in SOCIAL
    if led and led not in "。！？!?\n":
        return False
    return after != "" and text[end + 1 : end + 2] in ("你", "您", "我")


def _weigh(text: str, run: list[Token], called: bool) -> tuple[str, float]:
    last = run[-1]
    if len(text) == 1:
        return ("noun", 0.55) if last.tag == "n" else ("weak", 0.2)
    if text in KIN:
        return "kin", 0.9 if text in _MANY_HAVE else 1.45
    if len(run) > 1 and all(token.text in WEAK_NOUNS for token in run):
        return "noun", 0.9
    if len(run) > 1:
        return "noun", 2.0 + 0.1 * min(len(text), 6)
    if last.tag in _NAME_TAGS:
        return (
            ("weak", CALLED_NAME)
            if last.tag[:2] == "nr" and called
            else ("name", 2.7 if last.tag == "nr" else 2.4)
        )
    if text in WEAK_NOUNS:
        return "noun", 0.8
    if last.tag == "s" and text[-1] in "里上中内下":
        return "weak", 0.2
    if last.tag in ("an", "s", "l"):
        return "noun", 0.9
    return "noun", 1.3 + 0.15 * min(len(text), 4)


def _single(token: Token) -> list[Candidate]:
    """Return the candidate of a token that is not a noun: a number with a unit, or a verb as a fallback."""
    text, tag = token.text, token.tag
    if tag == "num" and (len(text) >= 3 or not text[-1].isdigit()):
        return [Candidate(text, token.start, token.end, "number", _AMOUNT_WEIGHT if len(text) >= 4 else 0.7)]
    if tag == "m" and len(text) >= 3 and _AMOUNT.search(text):
        return [Candidate(text, token.start, token.end, "number", _AMOUNT_WEIGHT)]
    if tag in ("v", "i", "l", "a", "z", "vi", "ad") and len(text) > 1 and not _is_filler(text):
        return [Candidate(text, token.start, token.end, "weak", 0.3)]
    if tag == "other" and len(text) >= 2:
        return [_plain(_stem_hangul(text), token.start)]
    return []


def _is_filler(text: str) -> bool:
    return text in NO_END or text in NO_START or text in STOPPED


def _stem_hangul(word: str) -> str:
    """Remove the particle from a Korean noun if two syllables are left."""
    for particle in _PARTICLES:
        if word.endswith(particle) and len(word) - len(particle) >= 2:
            return word[: -len(particle)]
    return word


def _plain(text: str, start: int) -> Candidate:
    text = text[:30]
    if text.endswith(("다", "요", "니다")):
        return Candidate(text, start, start + len(text), "weak", 0.3)
    return Candidate(text, start, start + len(text), "noun", 1.2)
