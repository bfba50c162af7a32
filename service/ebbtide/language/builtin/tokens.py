"""Split mixed text into tokens in one pass.

Tokens are exact slices in order. A URL, a path, an error code, a 《title》 or a number with its unit is one token. Runs
of Han characters are segmented and tagged by rjieba. Its dictionary takes 30 MB, so it is loaded with the first Chinese
text.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from ebbtide.heap import fresh_pages
from ebbtide.language.builtin.scripts import HAN, HANGUL, KANA
from ebbtide.language.builtin.word_lists import word_list
from ebbtide.language.builtin.words_chinese import (
    ACTIVITIES,
    ADDED_WORDS,
    ADVERBS,
    COMPOUND_SURNAMES,
    OBJECT_VERBS,
    OBJECT_WHOLES,
    SURNAMES,
    VERBS,
)
from ebbtide.text_caches import text_cache


class Token(NamedTuple):
    """A slice of the text with a tag: a kind of this module or, for Han, the tagger's part of speech."""

    text: str
    start: int
    end: int
    tag: str


CALLED_NAME = 0.35
"""Weight of a name that is only addressed."""


class Candidate(NamedTuple):
    """A noun or noun phrase of one or more tokens. `kind` is one of name, title, code, noun, kin, number, time, weak;
    `weight` says how informative it is.
    """

    text: str
    start: int
    end: int
    kind: str
    weight: float


_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_HAN_UNIT = (
    "(?:[年月日号点分秒岁元块米斤层楼栋室集章页路度届期]|公里|公斤|千克|厘米|毫米|小时|分钟"
    "|平方米|平米|万元|亿元|万|亿|千|百|人|个月|周年|天|周|次|倍|毫升|克|吨|件|本|张|只|条|台)"
)
_LATIN_UNIT = (
    r"(?:%|°[CF]?|(?:km|kg|cm|mm|ml|GB|MB|TB|KB|GHz|MHz|ms|mg|lbs?|mph|fps|px|am|pm|a\.m|p\.m"
    r"|k|K|M|B|hrs?|mins?|secs?|h|s|m|g|L|W|V)(?![\w]))"
)

# The most common tokens: letters up to the end of a word. They cannot begin a URL, a path or a month, and the
# pattern below would also find a word.
_PLAIN = r"[BCEGHIKLPQRTUVWXYZa-z][A-Za-z]*+(?:['’][A-Za-z]+)*+(?=[\s,!?;)\"]|\.(?:\s|\Z)|\Z)"

_TOKEN = re.compile(
    rf"""
    (?:(?P<space>\s+)
    |(?P<plain>{_PLAIN})
    |(?P<url>(?:https?|ftp)://[^\s<>"，。！？、；：“”‘’（）《》「」]{{1,500}}
        |(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{{1,64}}@[A-Za-z0-9-]{{1,63}}
            (?:\.[A-Za-z0-9-]{{1,63}}){{1,5}})
    |(?P<title>《[^《》\n]{{1,40}}》)
    |(?P<path>(?<![A-Za-z0-9_/])(?:~|\.{{1,2}})?(?:/[\w.@+-]{{1,64}}){{2,12}}/?
        |(?<![A-Za-z0-9_])[A-Za-z]:\\[\w.\\-]{{1,120}})
    |(?P<date>\b{_MONTH}\.?\s\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s\d{{4}}\b)?
        |\b\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH}\b(?:,?\s\d{{4}}\b)?|\b{_MONTH}\s\d{{4}}\b
        |\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?!\d)|(?<!\d)\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?!\d)
        |(?<!\d)\d{{2,4}}年(?:\d{{1,2}}月(?:\d{{1,2}}[日号])?)?|(?<!\d)\d{{1,2}}月\d{{1,2}}[日号])
    |(?P<num>[$€£¥￥]?(?<![A-Za-z0-9_.])\d{{1,30}}(?:[,.]\d{{1,30}}){{0,8}}
        (?:\s?{_LATIN_UNIT}|{_HAN_UNIT}|(?![A-Za-z0-9_])))
    |(?P<han>[{HAN}]+)
    |(?P<word>(?:[^\W\d_{HAN}{KANA}{HANGUL}]|\d(?=[A-Za-z0-9_]))
        (?:[^\W{HAN}{KANA}{HANGUL}]|[\u0300-\u036f]|(?<=\w)['’.:](?=[A-Za-z])
        |(?<=\w)[-/](?=\w)|(?<=\d)\.(?=\d))*(?:\+\+|\#(?!\w))?)
    |(?P<other>(?:[{KANA}]+|[{HANGUL}]+))
    |(?P<digits>\d+)
    |(?P<punct>.))\s*+
    """,
    re.VERBOSE | re.DOTALL,
)

# Characters that are rarely part of a new word, but that the tagger's guesses often include.
GREEDY = re.compile(
    "[是了些我你您他她它的叫养定在很不有去来说吃给让把被和跟就都也还要会想没买做看请这那个吧吗呢啊呀嘛啦]"
)

# Verbs and measure words that a guess joins with their object. A surname before them makes a name.
_VERBAL = re.compile("[能取提辆杯堆讲换进写租买卖拿执打点管送收拉修开赶抢]")

# Words whose part of speech in the dictionary is wrong for everyday conversation.
_RETAGGED = (
    dict.fromkeys(ADDED_WORDS, "n")
    | dict.fromkeys(ACTIVITIES, "vn")
    | dict.fromkeys(ADVERBS, "d")
    | dict.fromkeys(VERBS, "v")
)

_MONTH_NAME = re.compile("(?:十?[一二三四五六七八九十]|腊|正|冬)月")
_DAY = re.compile("[一二三四五六七八九十]{1,3}[号日]|[初廿]?[一二三四五六七八九十]{1,3}")
_PERIODS = frozenset(("上", "下", "这", "本", "上个", "下个", "这个"))

# Words of the dictionary that are nearly always two words in conversation.
_FALSE_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "人发": (("人", "n"), ("发", "v")),
    "开了个": (("开", "v"), ("了", "ul"), ("个", "q")),
    "拉根": (("拉", "v"), ("根", "q")),
}
_DIGITS = frozenset("一二三四五六七八九")
_MONTHLY = frozenset("供薪饼票租嫂")
# Verbs that a guess joins with the name before them.
_VERBS_BEHIND = ("习惯", "到", "给", "成", "住")
_NO_GIVEN_NAMES = word_list("chinese_no_given_names")

# Longer runs of Han characters are rare, and their tags are not cached.
_CACHED_MAX = 64

_lock = threading.Lock()
_tagger: Any = None


def _jieba() -> Any:
    """Return the tagger. Load its dictionary at first use.

    The imported module is itself a tagger; a second instance would hold a second dictionary. Memory that building the
    dictionary used temporarily is returned to the operating system.
    """
    global _tagger
    if _tagger is None:
        with _lock:
            if _tagger is None:
                with fresh_pages():
                    import rjieba

                for word in ADDED_WORDS:
                    rjieba.add_word(word, 3000, "n")
                _tagger = rjieba
    return _tagger


def chinese_words(text: str) -> list[str]:
    """Split a text into words that concatenate to the text."""
    words: list[str] = _jieba().cut(text)
    return words


def _tag(text: str) -> tuple[tuple[str, str], ...]:
    """Tag a run of Han characters. Split guessed words that include a function word (课是, 我养)."""
    tagger = _jieba()
    pairs: list[tuple[str, str]] = []
    for word, tag in _cut_guesses(tagger, text):
        date = _date_tag(pairs[-1][0], word, tag) if pairs else ""
        if date:
            pairs[-1] = (pairs[-1][0] + word, date)
        elif pairs and _completes_name(tagger, pairs[-1], word, tag):
            pairs[-1] = (pairs[-1][0] + word, "nr")
        elif len(word) == 2 and word[0] == "比" and word[1] in SURNAMES:
            pairs.extend([("比", "p"), (word[1], "nr")])
        elif word == "天才" and pairs and pairs[-1][0] in ("前", "昨", "今"):
            pairs[-1] = (pairs[-1][0] + "天", "t")
            pairs.append(("才", "d"))
        elif word in _FALSE_WORDS:
            pairs.extend(_FALSE_WORDS[word])
        elif word[0] in _DIGITS and pairs and pairs[-1][0] == "零点":
            pairs[-1] = (pairs[-1][0] + word, "m")
        elif _begins_in_number(tagger, pairs, word, tag):
            # 四万 + 二加, 六一 + 七退
            pairs[-1] = (pairs[-1][0] + word[0], "m")
            pairs.extend(tagger.tag(word[1:]))
        elif word[0] == "月" and len(word) == 2 and pairs and _is_months(tagger, pairs[-1], word):
            # 三个 + 月味
            pairs[-1] = (pairs[-1][0] + "月", "m")
            pairs.extend(tagger.tag(word[1:]))
        elif word in _MONTHLY and pairs and pairs[-1][0].endswith("个月"):
            # 一个月 + 供
            pairs[-1] = (pairs[-1][0][:-1], "m")
            pairs.append(("月" + word, "n"))
        elif word == "习惯" and pairs and pairs[-1][1][:2] in ("nr", "r"):
            pairs.append((word, "v"))
        elif (
            word[0] in "老小阿" and len(word) in (2, 3) and word[1] in SURNAMES and not tagger.has_word(word)
        ):
            # A guessed name reaches too far (老葛先), or is not tagged as one (小仇).
            whole = word[0] == "小" or len(word) == 2
            pairs.append((word if whole else word[:2], "nr"))
            pairs.extend([] if whole else [(word[2:], "d")])
        elif (
            pairs
            and pairs[-1][0] in ("老", "小")
            and len(word) in (2, 3)
            and word[0] in SURNAMES
            and tag[:2] == "nr"
        ):
            pairs[-1] = (pairs[-1][0] + word[0], "nr")
            pairs.extend(tagger.tag(word[1:]))
        elif len(word) > 1 and tag[0] not in "mt" and _is_greedy(word, tag) and not tagger.has_word(word):
            pairs.extend(tagger.tag(word, hmm=False))
        elif len(word) == 4 and word[:2] in OBJECT_VERBS and word not in OBJECT_WHOLES and tag != "v":
            pairs.extend([(word[:2], "v"), (word[2:], "n")])
        elif len(word) > 2 and word[0] in "吃喝买学骑坐打放养写换看" and word not in ACTIVITIES:
            # The dictionary joins verb and object (吃海鲜); the object is the noun.
            whole = tagger.has_word(word[1:])
            pairs.extend([(word[0], "v"), (word[1:], "n")] if whole else [(word, tag)])
        else:
            pairs.append((word, tag))
    return tuple((word, _RETAGGED.get(word, tag)) for word, tag in pairs)


def _cut_guesses(tagger: Any, text: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a run. A guessed word loses a complement or a verb at its end (林晓住, 铭习惯)."""
    for word, tag in tagger.tag(text):
        end = next((len(verb) for verb in _VERBS_BEHIND if word.endswith(verb) and len(word) > len(verb)), 0)
        if end and len(word) > 2 and tag[0] not in "mt" and not tagger.has_word(word):
            yield word[:-end], tag
            yield word[-end:], "v"
        elif end and len(word) == 2 and tag[0] == "n" and not tagger.has_word(word):
            yield word, "v"
        else:
            yield word, tag


def _is_months(tagger: Any, before: tuple[str, str], word: str) -> bool:
    """Return whether the first character of a guessed word counts months with the number before it."""
    return before[1] == "m" and before[0][-1] == "个" and not tagger.has_word(word)


def _begins_in_number(tagger: Any, before: list[tuple[str, str]], word: str, tag: str) -> bool:
    """Return whether a guessed word begins with the last digit of the number before it."""
    return (
        bool(before)
        and before[-1][1] == "m"
        and len(word) > 1
        and word[0] in _DIGITS
        and word[1] not in _DIGITS
        and tag not in ("m", "mq", "t")
        and not tagger.has_word(word)
    )


def _completes_name(tagger: Any, before: tuple[str, str], word: str, tag: str) -> bool:
    """Return whether a word belongs to the guessed name before it: 陆知 + 微, 司马 + 铭, 端木 + 知夏."""
    name, kind = before
    if tag[0] not in "nagx" or tag[:2] in ("ns", "nt", "ad") or word in _NO_GIVEN_NAMES:
        return False
    if name[:2] in COMPOUND_SURNAMES and len(name) < 4:
        return len(word) == 1 or (len(word) == 2 == len(name) and not tagger.has_word(word))
    return (
        len(name) == 2
        and kind[:2] == "nr"
        and name[0] in SURNAMES
        and len(word) == 1
        and not tagger.has_word(name)
    )


def _is_greedy(word: str, tag: str) -> bool:
    """Return whether a guessed word probably contains a function word or a verb."""
    return GREEDY.search(word) is not None or (
        _VERBAL.search(word) is not None and not (tag[:2] == "nr" and word[0] in SURNAMES)
    )


_tagged = text_cache(512)(_tag)


def _date_tag(before: str, word: str, tag: str) -> str:
    """Return the tag of two words that are one date (六月 + 二号, 下 + 周二), or an empty text."""
    if _MONTH_NAME.fullmatch(before) and _DAY.fullmatch(word):
        return "date"
    return "t" if tag == "t" and before in _PERIODS and word[0] in "周月星礼" else ""


@text_cache(64)
def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text from a cache."""
    return tuple(tokenize(text))


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text in order, without white space."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "punct"
        if kind == "space":
            continue
        start, end = match.span(kind)
        if kind == "han":
            at = start
            run = text[start:end]
            for word, tag in _tagged(run) if len(run) <= _CACHED_MAX else _tag(run):
                tokens.append(Token(word, at, at + len(word), tag))
                at += len(word)
        else:
            tokens.append(Token(text[start:end], start, end, "word" if kind == "plain" else kind))
    return tokens
