"""List what a Chinese text names: its names, noun phrases, numbers with their unit, and times, joined by 、."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ebbtide.language.builtin import words_chinese
from ebbtide.language.builtin.candidates import READ_MAX, candidates
from ebbtide.language.builtin.chinese_links import unsaid_spans
from ebbtide.language.builtin.negation import is_negation
from ebbtide.language.builtin.scripts import HAN, cluster_cut, has_word
from ebbtide.language.builtin.tokens import Token, tokens_of
from ebbtide.language.builtin.word_lists import word_list, words

MARK = "、"

_NUMERALS = "零〇一二两三四五六七八九十百千万亿\\d"
# Without such a word a number says something else.
_BOUND = "(?:负|零下|不到|不足|大约|(?<![租条契预婚节制合签大])约|将近|接近|超过|不止|至少|最少|最多|顶多|(?<!\\w)-)?"
# 一天两次
_EVERY = "(?:(?:[每一](?:天|日|晚|周|年|次|个?月)|半年))?"
# A limit says little without what it limits.
_LIMIT = re.compile("至少|最少|最多|顶多")
_LIMIT_SHARE = 0.4
_NUMBER = f"第?[{_NUMERALS}]{{1,12}}(?:[点.][{_NUMERALS}]{{1,12}})?"
_MEASURE = re.compile(
    rf"{_BOUND}{_EVERY}(?:{_NUMBER}(?:多|来)?(?:个?(?:半|多)?(?:小时|钟头|月(?![供薪饼票租嫂]))|个?钟(?!头)|分钟|秒|天|周|年(?!级|代|货|轻)|岁|度|公里|公斤|里|(?:块|元|斤|米)(?:[{_NUMERALS}]{{1,3}}[两毛分]?)?|厘米|号线|层|楼|栋"
    rf"|次|回|本|张|件|只|条|个?人|份|盒|箱|瓶|棵|头|艘|架|台|辆|倍|成|届|桌|双|套|粒|封|页|把|根|间|家|颗|门|场|吨|位|号(?!线)|日|分(?!钟|之|享)|个?礼拜|个?星期)(?:半|多)?"
    rf"|[{_NUMERALS}]{{1,4}}[点分](?:半|[{_NUMERALS}]{{1,4}}分?)"
    rf"|[{_NUMERALS}两几]{{1,8}}个(?=[{HAN}])"
    rf"|[{_NUMERALS}]{{2,8}}(?![{HAN}\\d.])"
    rf"|[{_NUMERALS}]{{0,8}}[百千万亿][{_NUMERALS}多来]{{1,8}})"
)
_VAGUE = word_list("chinese_vague_amounts")
_EMPTY_VERBS = word_list("chinese_empty_verbs")
_VERB_TAGS = words("v vn vi")
_TALKS = words("说话 讲话 见面 开会")
_NO_NOTE = re.compile("[得不没就会能要想让叫说讲是有来去到了给成这那我你他她]")
# A number of things, which the noun behind it completes.
_COUNT = re.compile(
    rf"{_BOUND}[{_NUMERALS}两几]++[个位名款把栋家套种份只条张台本件座间辆部棵头艘箱盒瓶粒封页颗门场双片桌斤根]$"
)
_BARE_COUNT = re.compile(rf"{_BOUND}[{_NUMERALS}两几]++个")
_KIN = words("爸 妈 哥 姐 弟 妹 爷 奶 婶 姨 姑 舅 嫂")
_RELATIVES = words_chinese.KIN | _KIN
_TIMES = words("t date")
_MEASURE_WEIGHT = 1.0
_TIME_WEIGHT = 0.9
_CODE_WEIGHT = 1.6
# More would tell nothing, and each is compared with the others.
_NOTES_MAX = 100
_DENIED_WORDS = 3
# How much more what the main clause names counts.
_MAIN = 1.5
_LENGTH_WEIGHT = 0.3
_FULL = 0.15
_FILL_WEIGHT = 0.3
_ITEM = re.compile("[^、]+")
_ITEM_MAX = 14


class Note(NamedTuple):
    """A slice of a text that can be noted by itself, and how telling it is."""

    start: int
    end: int
    weight: float


def notes(text: str, target: int, main: tuple[int, int]) -> str:
    """Return the most telling notes of a text that fit together, in the order of the text, or "".

    Notes in the slice `main` count more.
    """
    items = [_stressed(note, main) for note in note_items(text)]
    listed = _listed(text, items, target)
    if 2 * len(listed) < target:
        items = [_with_verb(text, note) for note in items]
        listed = _listed(text, [*items, *_verbs(text, items)], target)
    return listed


def _stressed(note: Note, main: tuple[int, int]) -> Note:
    return note._replace(weight=_MAIN * note.weight) if main[0] <= note.start < main[1] else note


def _with_verb(text: str, note: Note) -> Note:
    """Return a note with the verb of which it is the object: 看医生."""
    tokens = tokens_of(text[:READ_MAX])
    at = bisect_left(tokens, note.start, key=lambda token: token.start) - 1
    if at < 0 or tokens[at].end != note.start or tokens[at].tag != "v" or len(tokens[at].text) != 1:
        return note
    if text.startswith("的", note.end):
        return note
    denied = any(is_negation(token) for token in tokens[max(0, at - 3) : at])
    if denied or tokens[at].text in words_chinese.NO_END or _NO_NOTE.search(tokens[at].text):
        return note
    return Note(tokens[at].start, note.end, note.weight)


def _verbs(text: str, items: list[Note]) -> Iterator[Note]:
    """Yield the verbs and times that may fill a list that would be short: 热水、投诉."""
    tokens = tokens_of(text[:READ_MAX])
    taken = {at for note in items for at in range(note.start, note.end)}
    starts = set(_denied(tokens))
    denied = {token.text for token in tokens if token.start in starts}
    for token in tokens:
        if len(token.text) < 2 or token.start in taken:
            continue
        if token.tag == "t" and token.text in words_chinese.TIME_FILLERS:
            yield Note(token.start, token.end, _FILL_WEIGHT)
        if token.tag not in _VERB_TAGS or token.text in words_chinese.NO_END | words_chinese.STOPPED:
            continue
        if _NO_NOTE.search(token.text) and token.text not in _TALKS:
            continue
        if token.text not in _EMPTY_VERBS and token.text not in denied:
            yield Note(token.start, token.end, _FILL_WEIGHT)


def _listed(text: str, items: list[Note], target: int) -> str:
    """Return the most telling of the items that fit together. A long one replaces many too short ones."""
    by_weight = _fitting(text, items, target, 0.0)
    by_length = _fitting(text, items, target, _LENGTH_WEIGHT)
    chosen = max(
        (by_weight, by_length),
        key=lambda notes: sum(note.weight + _FULL * (note.end - note.start) for note in notes),
    )
    said = MARK.join(text[note.start : note.end] for note in sorted(chosen))
    longest = max(
        (
            text[note.start : note.end]
            for note in items
            if note.end - note.start <= target and note.weight > _FILL_WEIGHT
        ),
        key=len,
        default="",
    )
    return longest if 2 * len(said) < target and len(longest) > len(said) else said


def weight_of_notes(text: str, said: str) -> float:
    """Return how telling a list of notes of a text is."""
    items = note_items(text)
    parts = set(said.split(MARK))
    verbal = [_with_verb(text, note) for note in items]
    return sum(
        note.weight
        for note, longer in zip(items, verbal, strict=True)
        if text[note.start : note.end] in parts or text[longer.start : longer.end] in parts
    )


def is_notes(text: str, first: str) -> bool:
    """Return whether a text is a list of notes of its first content."""
    parts = text.split(MARK)
    if any(not 0 < len(part) <= _ITEM_MAX for part in parts):
        return False
    items = note_items(first)
    known = {first[note.start : note.end] for note in [*items, *map(partial(_with_verb, first), items)]}
    known |= {first[note.start : note.end] for note in _verbs(first, items)}
    return all(part in known for part in parts)


def _fitting(text: str, items: list[Note], target: int, for_length: float) -> list[Note]:
    """Return the items that fit, chosen by weight and by `for_length` times their length."""
    chosen: list[Note] = []
    room = target + len(MARK)
    taken: set[str] = set()
    for note in sorted(
        items, key=lambda note: (-note.weight - for_length * (note.end - note.start), note.start)
    ):
        size = note.end - note.start + len(MARK)
        said = text[note.start : note.end]
        repeats = any(said in other or other in said for other in taken)
        if size <= room and not repeats:
            chosen.append(note)
            taken.add(said)
            room -= size
        if room <= 2 * len(MARK) or len(taken) == _NOTES_MAX:
            break
    return chosen


def fewer_notes(text: str, target: int, first: str, main: tuple[int, int]) -> str:
    """Return the most telling notes of a list that fit together."""
    weights: dict[str, float] = {}
    for note in (_stressed(note, main) for note in note_items(first)):
        weights[first[note.start : note.end]] = note.weight
        verbal = _with_verb(first, note)
        weights[first[verbal.start : verbal.end]] = note.weight
    items = [
        Note(match.start(), match.end(), weights.get(match.group(), _FILL_WEIGHT))
        for match in _ITEM.finditer(text)
    ]
    return _listed(text, items, target) or part_of_note(text, target)


def part_of_note(text: str, target: int) -> str:
    """Return the last words of one note that fit: the head of a Chinese noun phrase is its last word."""
    tokens = tokens_of(text)
    begin = next((token.start for token in tokens if len(text) - token.start <= target), len(text))
    return text[begin:] or word_of(text, target)


def word_of(text: str, target: int) -> str:
    """Return the longest word of a text that fits, else its first characters."""
    fitting = [
        token for token in tokens_of(text[:READ_MAX]) if len(token.text) <= target and has_word(token.text)
    ]
    best = max(fitting, key=_telling, default=None)
    return text[: cluster_cut(text, 0, min(target, len(text)))] if best is None else best.text


def _telling(token: Token) -> tuple[bool, bool, int]:
    """Return how well a word stands for a text: nouns and verbs, long ones first."""
    empty = token.text in words_chinese.STOPPED or token.text in words_chinese.NO_END
    return (
        token.tag[0] in "nvaijlx" and not empty,
        len(token.text) > 1,
        {"n": 2, "v": 0}.get(token.tag[0], -1) + len(token.text),
    )


def note_items(text: str) -> list[Note]:
    """Return the notes that a text can give, in its order. They do not overlap."""
    text = text[:READ_MAX]
    tokens = tokens_of(text)
    denied = set(_denied(tokens))
    unsaid = {at for start, end in unsaid_spans(text) for at in range(start, end)}
    found = [
        Note(c.start, c.end, 0.0 if c.start in denied else c.weight)
        for c in candidates(text)
        if c.kind != "weak" and (len(c.text) > 1 or c.text in _KIN) and c.end - c.start <= 2 * _ITEM_MAX
    ]
    found += _measures(text)
    found += _times(tokens)
    found += _codes(tokens)
    found = [note._replace(weight=0.0) if note.start in unsaid else note for note in found]
    found.sort(key=lambda note: (note.start, -note.end))
    return _merged(text, found)


def _denied(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield where the words begin that a negation denies: those up to the next noun, as in 不做独立App.

    The noun of a prepositional phrase does not end them: 不再对花生过敏.
    """
    left = 0
    governs = False
    for token in tokens:
        if token.tag == "punct":
            left, governs = 0, False
        if left:
            yield token.start
        left = max(left - 1, 0)
        if is_negation(token):
            left = _DENIED_WORDS
        elif token.tag == "p" and left:
            governs, left = True, _DENIED_WORDS
        elif token.tag[0] == "n" or token.tag == "word":
            left = left if governs else 0
            governs = False


def _measures(text: str) -> Iterator[Note]:
    for match in _MEASURE.finditer(text):
        said = match.group()
        if said in _VAGUE or text[match.end() : match.end() + 1] in ("别", "不"):
            continue
        yield Note(match.start(), match.end(), _MEASURE_WEIGHT + 0.1 * min(len(said), 6))


def _times(tokens: tuple[Token, ...]) -> Iterator[Note]:
    """Yield runs of words of time that are more than fillers: 周三下午, 明年二月."""
    index = 0
    while index < len(tokens):
        stop = index
        while (
            stop < len(tokens)
            and _is_time(tokens[stop])
            and (stop == index or tokens[stop].start == tokens[stop - 1].end)
        ):
            stop += 1
        if stop > index and any(token.text not in words_chinese.TIME_FILLERS for token in tokens[index:stop]):
            yield Note(tokens[index].start, tokens[stop - 1].end, _TIME_WEIGHT)
        index = max(stop, index + 1)


def _codes(tokens: Sequence[Token]) -> Iterator[Note]:
    """Yield a word or number with the number after its hyphen: 铯-137, 3-5天."""
    for before, mark, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        joined = before.end == mark.start and mark.end == after.start
        if joined and mark.text == "-" and after.tag in ("num", "word") and before.tag != "punct":
            yield Note(before.start, after.end, _CODE_WEIGHT)


def _is_time(token: Token) -> bool:
    if token.tag in _TIMES and token.text not in words_chinese.VAGUE_NOUNS:
        return True
    return (
        token.text in words_chinese.TIME_FILLERS
        and token.tag != "f"
        and token.text not in words_chinese.PRONOUNS
    )


def _is_owned(text: str, owner: Note, note: Note) -> bool:
    """Return whether a note names a relative of the person before it: 老徐的儿子."""
    return (
        text[owner.end : note.start] in ("的", "")
        and owner.end <= note.start
        and text[owner.start : owner.end] not in _RELATIVES
        and text[note.start : note.end] in _RELATIVES
        and note.end - owner.start <= _ITEM_MAX
    )


def _merged(text: str, found: list[Note]) -> list[Note]:
    """Join notes that overlap, and a number with the noun that follows it: 两份木炭."""
    merged: list[Note] = []
    for note in found:
        last = merged[-1] if merged else None
        if last is not None and note.start < last.end:
            if note.end > last.end:
                merged[-1] = Note(last.start, note.end, max(last.weight, note.weight))
            continue
        if last is not None and _is_owned(text, last, note):
            merged[-1] = Note(last.start, note.end, max(last.weight, note.weight))
            continue
        follows = last is not None and last.end == note.start
        if last is not None and follows and text[note.start : note.end] in words_chinese.HONORIFICS:
            merged[-1] = Note(last.start, note.end, last.weight)
        elif (
            last is not None
            and follows
            and _COUNT.match(text[last.start : last.end])
            and not text.startswith("的", note.end)
        ):
            merged[-1] = Note(last.start, note.end, max(last.weight, note.weight) + 0.3)
        else:
            merged.append(note)
    merged = [
        note._replace(weight=_LIMIT_SHARE * note.weight) if _LIMIT.match(text, note.start) else note
        for note in merged
    ]
    affirmed = [note for note in merged if note.weight > 0]
    return [note for note in affirmed or merged if not _BARE_COUNT.fullmatch(text[note.start : note.end])]
