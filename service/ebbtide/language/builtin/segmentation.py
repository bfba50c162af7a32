"""Split a conversation into segments of one thought of one speaker.

A segment is an exact slice of one message and fits the limit together with its speaker's label. Short sentences join
their neighbours until a segment is self-contained. Long ones are cut at a clause end, otherwise between words,
otherwise between grapheme clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ebbtide.language.builtin.scripts import cluster_cut, has_word, is_dense, width
from ebbtide.language.builtin.sentences import Span, sentence_spans
from ebbtide.language.builtin.small_talk import is_courtesy
from ebbtide.language.builtin.tokens import chinese_words
from ebbtide.language.port import Segment, Utterance

# Widths in Latin characters (a Han character counts 2.5), measured on real chat: below 60 (24 Han) a sentence is
# rarely self-contained; above 150 (60 Han) a segment often has two thoughts.
_SHORT = 60.0
_COMFORTABLE = 150.0
_FULL = 200.0
# More Han characters are more than one memory, even if the limit allows them.
_DENSE_MAX = 110
# Characters that even a very long speaker's label leaves for the text.
_ROOM_MIN = 20

_LIST_ITEM = re.compile(
    r"(?:[-*•·●○▪◦+–]\s|\d{1,3}[.)、．]|[(（]\d{1,3}[)）]|[(（]?[一二三四五六七八九十]{1,3}[)）、.．]|[①-⑳]|#{1,6}\s|[A-Za-z][.)]\s)"
)
# Openers that refer back: the sentence is not self-contained without the preceding one.
_POINTS_BACK = re.compile(
    r"(?:It|It's|Its|They|They're|Their|He|She|He's|She's|His|Her|This|That|That's|These|Those|Them|But|So|"
    r"Because|Also|Which|Plus|Especially|Even|Not)\b"
    r"|[它他她其这那](?!是谁)|而且|但|所以|因此|不过|因为|并且|尤其|特别是|可是|其中|结果|后来|也"
)

# Openers of another topic or the next event.
_TURNS = re.compile(
    r"(?:Then|Also|And (?:remind|please|could|can)|Anyway|By the way|BTW|On another note|One more thing|Another thing|"
    r"PS|P\.S\.|Unrelated|Separately|Oh|Next|Speaking of|Apart from that|Besides)\b"
    r"|然后|还有(?:件事|一件事|个事|，)|另外|对了|顺便|说个别的|换个话题|再说|话说|题外话|此外|哦对|接着",
    re.IGNORECASE,
)
_OWN_TOPIC = re.compile(r"(?:My|Our)\b|我(?:的|家|妈|爸|弟|哥|姐|妹|老公|老婆|儿子|女儿)")
_TURN_MIN = 25.0
_TOPIC_MIN = 30.0
_QUESTION_MIN = 20.0
_QUESTIONS = ("?", "？")

_STRONG_PAUSE = re.compile(r"[；;：:—。！？!?](?=\s|[^\x00-\x7f])[”’」』）)】》\"']*|\n| - |[.!?] ")
_PAUSE = re.compile(r"[，、]|[,)](?=\s)| (?=(?:and|but|or|because|which|that|so|when|while|if)\s)")
_SPACE = re.compile(r"\s+")


def segment(utterances: Iterable[Utterance], max_chars: int) -> list[Segment]:
    """Split messages into self-contained segments, in the order of the text."""
    segments: list[Segment] = []
    for index, utterance in enumerate(utterances):
        text = utterance.text
        if not has_word(text):
            continue
        room = max(_ROOM_MIN, max_chars - len(utterance.prefix))
        for start, end in _segment_spans(text, room):
            segments.append(Segment(text=text[start:end], messages=(index,), start=start))
    return segments


def _segment_spans(text: str, room: int) -> list[Span]:
    pieces: list[Span] = []
    for start, end in sentence_spans(text):
        pieces.extend(_cut_long(text, start, end, room))
    return _merge(text, _attach_fragments(text, pieces, room), room)


def _attach_fragments(text: str, pieces: list[Span], room: int) -> list[Span]:
    """Join pieces without a word (emoji, rules, stray marks) to a neighbour, or drop them if there is no room."""
    kept: list[Span] = []
    waiting: Span | None = None
    for start, end in pieces:
        if has_word(text[start:end]):
            if waiting is not None and end - waiting[0] <= room:
                start = waiting[0]
            waiting = None
            kept.append((start, end))
        elif kept and waiting is None and end - kept[-1][0] <= room:
            kept[-1] = (kept[-1][0], end)
        else:
            waiting = (
                waiting[0] if waiting is not None and end - waiting[0] < room else start,
                end,
            )
    return kept


def _merge(text: str, pieces: list[Span], room: int) -> list[Span]:
    """Join short sentences with their neighbours, left to right."""
    merged: list[Span] = []
    widths: list[float] = []
    for start, end in pieces:
        size = width(text[start:end])
        if merged and _belongs(text, merged[-1], widths[-1], (start, end), size, room):
            merged[-1] = (merged[-1][0], end)
            widths[-1] = width(text[merged[-1][0] : end])
        else:
            merged.append((start, end))
            widths.append(size)
    return merged


def _belongs(text: str, group: Span, group_width: float, piece: Span, piece_width: float, room: int) -> bool:
    """Return whether the next sentence belongs to the current segment."""
    if piece[1] - group[0] > room:
        return False
    gap = text[group[1] : piece[0]]
    both = group_width + piece_width
    if _turns(text, group, group_width, piece, piece_width):
        return False
    leads_in = text[group[1] - 1] in ":：" and both <= _FULL
    if "\n" in gap:
        return _belongs_across_lines(text, gap, group_width, piece, piece_width, leads_in)
    if both > _FULL:
        return False
    if leads_in or group_width < _SHORT * 0.5:
        return True
    if _POINTS_BACK.match(text, piece[0]):
        return both <= _FULL * 0.9
    return both <= _COMFORTABLE and (group_width < _SHORT or piece_width < _SHORT)


def _turns(text: str, group: Span, group_width: float, piece: Span, piece_width: float) -> bool:
    """Return whether the next sentence begins another topic, or one of the two is mere courtesy or a question."""
    if _TURNS.match(text, piece[0]) and group_width >= _TURN_MIN:
        return True
    if _OWN_TOPIC.match(text, piece[0]) and min(group_width, piece_width) >= _TOPIC_MIN:
        return True
    if min(group_width, piece_width) > _COMFORTABLE:
        return False
    if text[piece[0] : piece[1]].endswith(_QUESTIONS) and piece_width >= _QUESTION_MIN:
        return _POINTS_BACK.match(text, piece[0]) is None
    if min(group_width, piece_width) > _SHORT or group_width + piece_width > _COMFORTABLE:
        return False
    return is_courtesy(text[slice(*group)]) != is_courtesy(text[slice(*piece)])


def _belongs_across_lines(
    text: str, gap: str, group_width: float, piece: Span, piece_width: float, leads_in: bool
) -> bool:
    """Return whether the next line belongs to the current segment. Lines join less readily than sentences."""
    both = group_width + piece_width
    if leads_in:
        return piece_width < _SHORT or group_width < _SHORT
    if gap.count("\n") > 1 and group_width >= _SHORT * 0.5:
        return False
    if _LIST_ITEM.match(text, piece[0]):
        return piece_width < _SHORT * 0.7 and both <= _COMFORTABLE
    return both <= _COMFORTABLE and (group_width < _SHORT or piece_width < _SHORT)


def _cut_long(text: str, start: int, end: int, room: int) -> Iterator[Span]:
    """Yield the pieces of an over-long sentence, of about equal length, cut at the best pauses."""
    limit = room
    if end - start > _DENSE_MAX and room > _DENSE_MAX and is_dense(text[start : start + 400]):
        limit = _DENSE_MAX
    while end - start > limit:
        remaining = end - start
        ideal = remaining // -(-remaining // limit)
        cut = _best_cut(text, start, min(limit, remaining - 1), ideal)
        piece = text[start:cut].rstrip()
        if piece:
            yield start, start + len(piece)
        start = cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _best_cut(text: str, start: int, limit: int, ideal: int) -> int:
    """Return the end of the next piece: the pause nearest to the ideal length, otherwise a word or cluster boundary."""
    window = text[start : start + limit]
    low = max(1, limit * 2 // 5)
    for pattern in (_STRONG_PAUSE, _PAUSE):
        ends = [match.end() for match in pattern.finditer(window, low) if match.end() <= limit]
        if ends:
            return start + min(ends, key=lambda at: (abs(at - ideal), at))
    ends = [match.start() for match in _SPACE.finditer(window, low) if match.start() > 0]
    if not ends and is_dense(window):
        ends = [at for at in _word_ends(window) if at >= low]
    ends = [at for at in ends if not _tears(text, start + at)]
    if ends:
        return start + min(ends, key=lambda at: (abs(at - ideal), at))
    return cluster_cut(text, start, start + limit)


def _tears(text: str, index: int) -> bool:
    return cluster_cut(text, index - 1, index) != index


def _word_ends(window: str) -> list[int]:
    ends: list[int] = []
    at = 0
    for word in chinese_words(window)[:-1]:
        at += len(word)
        ends.append(at)
    return ends
