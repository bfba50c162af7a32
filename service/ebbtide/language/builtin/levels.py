"""Grade the words of a clause by how much the statement depends on them.

The predicate with its object and negation is needed most, then the subject, then names, numbers and dates, then other
modifiers. Fillers are needed least. Words of one noun phrase have one level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.negation import is_condition_word, is_negation
from ebbtide.language.builtin.tokens import CALLED_NAME, Candidate, Token
from ebbtide.language.builtin.word_lists import word_list, words

PREDICATE, SUBJECT, DETAIL, MODIFIER, FILLER = range(5)

_PARTICLES = word_list("chinese_particles")
_POINTERS = word_list("chinese_pointers")
# Prepositions of place, time, means and purpose. Others (把, 对, 跟) belong to the predicate.
_ADJUNCTS = word_list("chinese_adjuncts")
_HAN_VERBS = words("v vi vd")
_NOMINAL = words("n vn nr ns nt nz nw nrt nrfg ng an s x t r m q f word num date code b l j zg title path")
_ATTRIBUTES = words("n f nr ns nt nz r a b word s ng num nrt zg")
_DIRECTIONS = word_list("chinese_directions")
_NOUNS = words("n nz ns nt word code")
_OPENER_TAGS = words("c")
_LIGHT_CLASSIFIERS = word_list("chinese_classifiers")
_REPORTING = word_list("reporting_verbs")
_REPORT_LINKS = words("that me us 我 我们")
_REFERRING = word_list("referring_words")
_REPORTED_TAGS = words("word n nr ns nt nz r nrt title code t s num")
_LEADS = words("最后 上次 可 那 不过 后来")
# A shorter noun says little without the clause that describes it (听海浪的声音).
_TELLING_HEAD = 3
_BOUNDS = word_list("chinese_bounds")
_PHRASE_ENDS = word_list("chinese_phrase_ends")
_BEFORE_NOUNS = (
    words_english.DETERMINERS
    | words_english.POSSESSIVES
    | words_english.PREPOSITIONS
    | words_english.ADJECTIVES
)
_PERIODS = word_list("chinese_periods")
_ENGLISH_PREDICATES = (
    words_english.VERBS
    | words_english.AUXILIARIES
    | words("i'm i've i'd i'll it's he's she's we're we've we'll they're they've they'd you're you've that's")
)
_OWNERS = words("我 我们 咱们 俺")
_PRECISE = frozenset(("name", "title", "code", "number"))


class Word(NamedTuple):
    """A token, the number of its unit, its level, and the number of its part between the commas of the unit."""

    token: Token
    unit: int
    level: int
    part: int


def levels_of(text: str, tokens: Sequence[Token], found: Sequence[Candidate]) -> list[int]:
    """Return the level of each token of a clause. `found` are the noun phrases of the clause."""
    reported = _reported_from(tokens)
    if reported:
        return [DETAIL] * reported + levels_of(text, tokens[reported:], found)
    if any(token.tag not in ("word", "punct", "num", "date", "code", "digits") for token in tokens):
        graded = _grade_chinese(tokens, found)
    else:
        # A clause without Chinese within a Chinese text is kept whole.
        graded = [PREDICATE] * len(tokens)
    at = 0
    for candidate in found:
        while at < len(tokens) and tokens[at].start < candidate.start:
            at += 1
        end = at
        while end < len(tokens) and tokens[end].end <= candidate.end:
            end += 1
        if candidate.kind == "weak" and candidate.weight == CALLED_NAME:
            graded[at:end] = [FILLER] * (end - at)
        elif end > at + 1 and candidate.kind != "weak":
            graded[at:end] = [min(graded[at:end])] * (end - at)
    for index, after in enumerate(tokens[1:]):
        if graded[index] <= SUBJECT and is_apposition(tokens[index], after):
            begin = (
                index - 1 if index and normal(tokens[index - 1].text) in words_english.POSSESSIVES else index
            )
            graded[begin : index + 1] = [DETAIL] * (index + 1 - begin)
    return graded


def is_apposition(token: Token, after: Token) -> bool:
    """Return whether a word says who the person is whose name follows: sister Clara, 妹妹克拉拉."""
    if token.tag == "word":
        return normal(token.text) in words_english.PERSONS and after.tag == "word" and after.text[0].isupper()
    return token.text in words_chinese.KIN and after.tag in ("nr", "nrt")


def has_predicate(tokens: Sequence[Token]) -> bool:
    """Return whether a part of a sentence contains a verb."""
    return any(_is_verb(token) or is_english_verb(tokens, index) for index, token in enumerate(tokens))


def is_english_verb(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word is an English verb, judged by the word before it."""
    lower = normal(tokens[index].text)
    if tokens[index].tag != "word" or lower in _ENGLISH_PREDICATES:
        return tokens[index].tag == "word"
    before = normal(tokens[index - 1].text) if index else ""
    return lower in words_english.AMBIGUOUS and before != "" and before not in _BEFORE_NOUNS


def _reported_from(tokens: Sequence[Token]) -> int:
    """Return where a reported statement with its own subject begins: after `Ann says that`, 老师说."""
    for index, token in enumerate(tokens[1:5], 1):
        if normal(token.text) not in _REPORTING or any(map(is_negation, tokens[:index])):
            continue
        begin = index + 1
        while begin < len(tokens) and (
            normal(tokens[begin].text) in _REPORT_LINKS or tokens[begin].tag == "punct"
        ):
            begin += 1
        rest = tokens[begin : begin + 1]
        if not rest or normal(rest[0].text) in _REFERRING or len(tokens) - begin < 3:
            return 0
        return begin if rest[0].tag in _REPORTED_TAGS else 0
    return 0


# --- Chinese --------------------------------------------------------------------------------------------------


def _grade_chinese(tokens: Sequence[Token], found: Sequence[Candidate]) -> list[int]:
    precise = [candidate.start for candidate in found if candidate.kind in _PRECISE]
    graded = [_grade_han_word(tokens, index) for index in range(len(tokens))]
    _grade_adjuncts(tokens, graded, set(precise))
    _grade_attributes(tokens, graded)
    _grade_coordination(tokens, graded)
    inside = _within_phrases(tokens, found)
    verbs = [
        index
        for index, token in enumerate(tokens)
        if _is_verb(token) and graded[index] != FILLER and index not in inside
    ]
    verbs = verbs or [index for index, token in enumerate(tokens) if token.tag in ("vn", "a")]
    for index in range(verbs[0] if verbs else 0):
        if graded[index] == PREDICATE and (tokens[index].tag in _NOMINAL or index in inside):
            graded[index] = SUBJECT
        elif is_negation(tokens[index]) or tokens[index].tag == "p":
            break
    for index in range(1, len(tokens)):
        if tokens[index].text in ("我", "我们") and graded[index - 1 : index + 1] == [SUBJECT, SUBJECT]:
            # The object comes first: 数据库我们迁到了…
            graded[index] = DETAIL if tokens[index - 1].tag in _NOUNS else SUBJECT
        if tokens[index].text == "了":
            graded[index] = max(graded[index], graded[index - 1])
        if tokens[index].text == "时候" and tokens[index - 1].text == "的":
            graded[index] = graded[index - 1]
        if tokens[index].text in _BOUNDS:
            graded[index] = graded[index - 1]
        if tokens[index].text == "的" and graded[index] <= SUBJECT:
            graded[index] = max(graded[index - 1], graded[index])
    if not any(level <= SUBJECT for level in graded):
        graded = [PREDICATE if level == MODIFIER else level for level in graded]
    return graded


def _within_phrases(tokens: Sequence[Token], found: Sequence[Candidate]) -> set[int]:
    """Return the indices of the tokens within noun phrases of several words: 登录 of 登录模块 is no verb."""
    inside: set[int] = set()
    at = 0
    for candidate in found:
        while at < len(tokens) and tokens[at].start < candidate.start:
            at += 1
        begin = at
        while at < len(tokens) and tokens[at].end <= candidate.end:
            at += 1
        if at > begin + 1 and candidate.kind != "weak":
            inside.update(range(begin, at))
    return inside


def _is_verb(token: Token) -> bool:
    return token.tag in _HAN_VERBS and token.text not in ("的",)


def _grade_han_word(tokens: Sequence[Token], index: int) -> int:
    token = tokens[index]
    text = token.text
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    followed = after is not None and after.tag != "punct"
    if is_negation(token) or is_condition_word(token):
        return PREDICATE
    if token.tag in ("y", "e", "o") or text in _PARTICLES:
        return FILLER
    if text in _DIRECTIONS and index and tokens[index - 1].tag[0] in "vn":
        return PREDICATE
    if text in ("那么", "这么") and any(
        before.text in ("没有", "没") for before in tokens[max(0, index - 4) : index]
    ):
        return PREDICATE
    if (
        text in ("是", "在")
        and index
        and after is not None
        and (after.tag in ("date", "num") or after.text == "在")
    ):
        return DETAIL
    if text in ("了", "过") and index:
        return DETAIL
    if (
        after is not None
        and after.text == "了"
        and token.tag in ("p", "t", "d")
        and text not in words_chinese.TIME_FILLERS
    ):
        return PREDICATE
    if text in ("这", "那") and after is not None and after.text[0] == "几":
        return PREDICATE
    if text in _POINTERS and followed and not (len(text) == 1 and after is not None and len(after.text) == 1):
        return PREDICATE if text == "一个" and after is not None and after.text in _PERIODS else FILLER
    if (
        text in _LIGHT_CLASSIFIERS
        and token.tag != "v"
        and index
        and tokens[index - 1].text in ("一", "这", "那")
    ):
        return FILLER
    if text == "一" and after is not None and after.text in _LIGHT_CLASSIFIERS:
        return FILLER
    if not index and (text in words_chinese.OPENERS or token.tag in _OPENER_TAGS or text in _LEADS):
        return FILLER if followed and not text.startswith(words_chinese.CONDITIONS) else PREDICATE
    if text in words_chinese.DROPPABLE and text != "就" and text not in words_chinese.CAREFUL and followed:
        return FILLER
    if text in words_chinese.TIME_FILLERS and (
        (index and tokens[index - 1].tag == "m")
        or (after is not None and after.tag == "m" and text[0] == "每")
    ):
        return PREDICATE
    if followed and (token.tag == "t" or text in words_chinese.TIME_FILLERS or text in ("每天", "严重")):
        return MODIFIER
    owned = after is not None and (after.text in words_chinese.KIN or after.text == "的")
    if not index and text in _OWNERS and owned:
        return FILLER
    if index == 1 and text == "的" and tokens[0].text in _OWNERS:
        return FILLER
    return PREDICATE


def _grade_adjuncts(tokens: Sequence[Token], graded: list[int], precise: set[int]) -> None:
    """Lower the phrases of place, time and means that precede a verb."""
    index = 0
    while index < len(tokens):
        if tokens[index].text not in _ADJUNCTS or tokens[index].tag != "p":
            index += 1
            continue
        end = index + 1
        while end < len(tokens) and (
            (tokens[end].tag in _NOMINAL and tokens[end].tag != "vn")
            or tokens[end].text in ("的", "、", "和")
        ):
            end += 1
        ahead = range(index + 1, min(index + 9, len(tokens)))
        end = max(end, next((at + 1 for at in ahead if tokens[at].text in _PHRASE_ENDS), end))
        if [token.text for token in tokens[end - 1 : end + 1]] == ["的", "是"]:
            index = end
            continue
        if end == index + 1:
            graded[index] = FILLER if end < len(tokens) and tokens[end].tag == "vn" else graded[index]
        elif end < len(tokens) and tokens[end].tag != "punct":
            exact = any(token.start in precise or token.tag == "date" for token in tokens[index:end])
            level = DETAIL if exact else MODIFIER
            graded[index:end] = [level] * (end - index)
            named = any(token.start in precise for token in tokens[index + 3 : end])
            if exact and not named and _is_named_place(tokens[index:end]):
                graded[index + 2 : end] = [MODIFIER] * (end - index - 2)
        index = end


def _grade_coordination(tokens: Sequence[Token], graded: list[int]) -> None:
    """Lower a pair that describes a noun (微信和支付宝第三方登录), and 需要 after 提到."""
    for index in range(1, len(tokens) - 2):
        before, token, after, head = tokens[index - 1 : index + 3]
        if token.text in ("和", "与", "及") and token.tag == "c":
            pair = before.tag in _NOUNS and after.tag in _NOUNS and head.tag in (*_NOUNS, "m")
            if pair and max(graded[index - 1 : index + 2]) == PREDICATE:
                graded[index - 1 : index + 2] = [DETAIL] * 3
        elif token.text == "需要" and before.text in ("提到", "提出") and _is_verb(after):
            graded[index] = DETAIL


def _is_named_place(tokens: Sequence[Token]) -> bool:
    """Return whether a phrase says where by a name, and then what is there: 在波尔图的管弦乐团."""
    if len(tokens) < 4 or tokens[0].text != "在" or tokens[2].text != "的":
        return False
    if any(token.tag == "r" for token in tokens):
        return False
    name = tokens[1]
    return (
        name.tag in ("ns", "nr", "nrt") and len(name.text) > 1 and name.text[0] not in words_chinese.SURNAMES
    )


def _grade_attributes(tokens: Sequence[Token], graded: list[int]) -> None:
    """Lower what describes a noun: the words up to 的."""
    verbs = [index for index, token in enumerate(tokens) if _is_verb(token)]
    for index in range(1, len(tokens) - 1):
        if (
            tokens[index].text != "的"
            or graded[index] != PREDICATE
            or tokens[index + 1].tag[0] not in "nrmbxw"
        ):
            continue
        begin = index
        while begin and tokens[begin - 1].tag in _ATTRIBUTES:
            begin -= 1
        before = [verb for verb in verbs if verb < index]
        if (
            begin
            and before
            and before[-1] == begin - 1
            and tokens[begin : begin + 1]
            and tokens[begin].tag != "r"
        ):
            # The modifier contains a verb: the only one before a later predicate, or the second one.
            if len(before) == 1 and verbs[-1] > index and not any(t.tag == "p" for t in tokens[:index]):
                begin = 0
            elif len(before) == 2:
                if len(tokens[index + 1].text) < _TELLING_HEAD:
                    continue
                begin = before[0] + 1
        if begin == index or any(is_negation(token) for token in tokens[begin:index]):
            continue
        if tokens[index - 1].tag in ("r", "nr") or tokens[index - 1].text in words_chinese.KIN:
            graded[index] = FILLER
        else:
            graded[begin : index + 1] = [DETAIL if begin == 0 else MODIFIER] * (index + 1 - begin)
