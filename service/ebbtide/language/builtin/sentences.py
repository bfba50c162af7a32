"""Find where sentences end, in any script, in linear time.

One pattern finds candidates, and the characters around each decide. Decimals, abbreviations, URLs, file names and short
quotations keep their full stops. Offsets are exact.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from ebbtide.language.builtin.scripts import HAN, KANA
from ebbtide.language.builtin.word_lists import word_list
from ebbtide.language.builtin.words_english import ABBREVIATIONS, CLOSING_ABBREVIATIONS

Span = tuple[int, int]

CLOSERS = "”’」』）)】》〉］\\]}\"'»*_`"
_BOUNDARY = re.compile(rf"[.。．｡!！?？…‽؟۔।॥።။։]+[{CLOSERS}]*|\n")

# Text that must not be split. Every repetition is bounded or guarded by a look-behind, so that a run of one
# character is scanned once.
_PROTECTED = re.compile(
    r"(?:https?|ftp)://[^\s<>\"，。！？、；：“”‘’（）《》「」]{1,2000}"
    r"|(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}"
    r"|`[^`\n]{1,80}`"
)
_TRAILING = ".,;:!?)]}'*_"

# A longer bracket may be split.
_QUOTE_MAX = 60
_PAIRS = {"）": "（", ")": "(", "》": "《", "」": "「", "』": "『", "”": "“", "】": "【", "]": "["}
_BRACKET = re.compile("[" + re.escape("".join(_PAIRS) + "".join(_PAIRS.values())) + '"\n]')

_DENSE = re.compile(f"[{HAN}{KANA}]")
_LAST_WORD = re.compile(r"[^\W_][\w.'’-]{0,24}$")
_STARTERS = word_list("sentence_starters")
_NEXT_WORD = re.compile(r"[A-Za-z']++")
_LINE_MARK = re.compile(r"\s*+(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})$")
# A line of at least this length without final punctuation was wrapped.
_WRAPPED_MIN = 50


def sentence_spans(text: str) -> list[Span]:
    """Return the bounds of the sentences of a message in order, without surrounding white space."""
    spans: list[Span] = []
    start = 0
    for cut in _cuts(text):
        _append_stripped(spans, text, start, cut)
        start = cut
    _append_stripped(spans, text, start, len(text))
    return spans


def _append_stripped(spans: list[Span], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    lead = len(piece) - len(piece.lstrip())
    body = piece.strip()
    if body:
        spans.append((start + lead, start + lead + len(body)))


def _cuts(text: str) -> Iterator[int]:
    """Yield the offsets after which a new sentence begins."""
    protected = _protected_spans(text)
    starts = [span[0] for span in protected]
    line_start = 0
    for match in _BOUNDARY.finditer(text):
        begin, end = match.span()
        if text[begin] == "\n":
            if not _is_wrapped(text, line_start, begin):
                yield end
            line_start = end
            continue
        index = bisect_right(starts, begin) - 1
        if index >= 0 and end < protected[index][1]:
            continue
        if _ends_sentence(text, begin, end, line_start):
            yield end


def _protected_spans(text: str) -> list[Span]:
    """Return the bounds of URLs, e-mail addresses, inline code and short quotations, merged and disjoint."""
    spans: list[Span] = []
    for match in _PROTECTED.finditer(text) if _may_protect(text) else ():
        found = match.group() if match.group()[0] == "`" else match.group().rstrip(_TRAILING)
        spans.append((match.start(), match.start() + len(found)))
    spans.extend(_bracket_spans(text))
    spans.sort()
    merged: list[Span] = []
    for begin, end in spans:
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def _may_protect(text: str) -> bool:
    """Return whether a text contains a character of every URL, address or inline code. The pattern is slow."""
    return "://" in text or "@" in text or "`" in text


def _bracket_spans(text: str) -> Iterator[Span]:
    """Yield the bounds of short brackets. Each kind has its own stack, so an unmatched bracket costs nothing."""
    if _BRACKET.search(text) is None:
        return
    stacks: dict[str, list[int]] = {opener: [] for opener in _PAIRS.values()}
    quote = -1
    for match in _BRACKET.finditer(text):
        char, index = match.group(), match.start()
        if char == "\n":
            quote = -1
        elif char == '"':
            if quote >= 0 and index - quote <= _QUOTE_MAX:
                yield quote, index + 1
                quote = -1
            else:
                quote = index
        elif char in stacks:
            stacks[char].append(index)
        elif stacks[_PAIRS[char]]:
            opener = stacks[_PAIRS[char]].pop()
            if index - opener <= _QUOTE_MAX:
                yield opener, index + 1


def _is_wrapped(text: str, line_start: int, newline: int) -> bool:
    """Return whether a line break only wraps a paragraph."""
    if newline - line_start < _WRAPPED_MIN or newline + 1 >= len(text):
        return False
    return text[newline + 1].islower() and (text[newline - 1].isalpha() or text[newline - 1] == ",")


def _ends_sentence(text: str, begin: int, end: int, line_start: int) -> bool:
    """Return whether a run of end marks with its closing quotes ends a sentence."""
    if end >= len(text):
        return True
    follower = text[end]
    mark = text[begin]
    before = text[begin - 1] if begin else " "
    if mark in "。．｡！？۔।॥።။։؟‽":
        return follower not in "，、；：,;:"
    if mark == "…" or text.startswith("..", begin):
        return _after_ellipsis(text, end)
    if not follower.isspace():
        return _ends_without_space(before, follower, mark)
    upcoming = _next_visible(text, end)
    if mark in "!?":
        has_closer = text[end - 1] not in "!?"
        return not (has_closer and upcoming.islower())
    return _full_stop_ends(text, begin, end, line_start, upcoming)


def _next_visible(text: str, index: int) -> str:
    """Return the first visible character after `index`, within 8 characters."""
    return text[index : index + 8].lstrip()[:1]


def _after_ellipsis(text: str, end: int) -> bool:
    """Return whether an ellipsis ends a sentence: only if a new one visibly begins."""
    follower = text[end]
    if follower == "\n":
        return True
    upcoming = _next_visible(text, end)
    return follower.isspace() and (upcoming.isupper() or _DENSE.match(upcoming or " ") is not None)


def _ends_without_space(before: str, follower: str, mark: str) -> bool:
    """Return whether a mark without a following space ends a sentence: `走了.明天见`, `Wow!That`, but not `3.5` or
    `a.py`.
    """
    if _DENSE.match(follower):
        return mark in "!?" or _DENSE.match(before) is not None
    if mark == ".":
        return False
    if follower.isalpha():
        return before.isalpha() and follower.isupper()
    return ord(follower) > 0x2190 and follower not in "，、；：。"


def _full_stop_ends(text: str, begin: int, end: int, line_start: int, upcoming: str) -> bool:
    """Return whether a full stop with a following space ends a sentence."""
    if begin - line_start < 8 and _LINE_MARK.fullmatch(text, line_start, begin):
        return False
    match = _LAST_WORD.search(text, max(line_start, begin - 24), begin)
    word = match.group() if match else ""
    starter = _NEXT_WORD.match(text[end : end + 24].lstrip())
    begins_anew = starter is not None and starter.group() in _STARTERS
    if word.casefold() in ABBREVIATIONS:
        closing = word.casefold() in CLOSING_ABBREVIATIONS
        return closing and upcoming.isupper() and (begins_anew or word.casefold() in ("etc", "a.m", "p.m"))
    if len(word) == 1 and word.isupper() and word != "I":
        return begins_anew
    if upcoming.islower():
        return text[end - 1] == "." and len(word) > 1
    return True
