"""Split a conversation into chunks that fit a request, and map the replies back.

Nothing is omitted: text that does not fit into one request goes into the next. A chunk consists of pieces; a piece is a
message, or a part of one that is too long, cut at the end of a sentence. Indices and offsets in a reply refer to the
chunk and are mapped back to the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ebbtide.language.builtin.scripts import cluster_cut, has_word
from ebbtide.language.port import Segment, Utterance
from ebbtide.language.tokens import estimate

TOKENS_PER_MESSAGE = 24
"""Tokens of a message besides its text: number, speaker, braces."""

MAX_PIECES = 30
"""With more messages in a request, small models lose count."""

MIN_SHARE = 0.2
"""Share of a message's words that its segments must contain together. One word is not a segment of a paragraph."""

UNSPACED_FROM = "\u2e7f"
"""Scripts above this character are written without spaces."""

MIN_PIECE_CHARS = 40
"""A piece with fewer than twice as many characters is not split."""

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[。！？!?\n…]+|\.(?=\s)")
_SOME_END = re.compile(r"[，、；,;:：\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A message of a conversation, or a part of one that begins at `start`."""

    message: int
    start: int
    utterance: Utterance

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of this piece in a prompt."""
        return estimate(self.utterance.text) + estimate(self.utterance.speaker) + TOKENS_PER_MESSAGE


Chunk = tuple[Piece, ...]


def chunks_of(messages: Sequence[Utterance], most_tokens: int) -> list[Chunk]:
    """Return the messages in order, in chunks of at most so many tokens."""
    chunks: list[Chunk] = []
    current: list[Piece] = []
    size = 0
    for index, message in enumerate(messages):
        if not has_word(message.text):
            continue
        for piece in _fitting(Piece(index, 0, message), most_tokens):
            if current and (size + piece.tokens > most_tokens or len(current) >= MAX_PIECES):
                chunks.append(tuple(current))
                current, size = [], 0
            current.append(piece)
            size += piece.tokens
    if current:
        chunks.append(tuple(current))
    return chunks


def split_chunk(chunk: Chunk) -> list[Chunk]:
    """Split a chunk in two. Return an empty list if it cannot be split."""
    if len(chunk) > 1:
        middle = len(chunk) // 2
        return [chunk[:middle], chunk[middle:]]
    return [(piece,) for piece in _split(chunk[0])]


def mapped_back(segments: Sequence[Segment], chunk: Chunk) -> list[Segment]:
    """Map segments of a chunk to the conversation. An index out of range becomes -1."""
    mapped = []
    for segment in segments:
        pieces = [chunk[i] if 0 <= i < len(chunk) else None for i in segment.messages]
        start = segment.start
        if start is not None and pieces and pieces[0] is not None:
            start += pieces[0].start
        numbers = tuple(dict.fromkeys(-1 if piece is None else piece.message for piece in pieces))
        mapped.append(Segment(segment.text, numbers, start))
    return mapped


def _signs(text: str) -> set[str]:
    """Return the words of a text, or pairs of characters for words of scripts without spaces."""
    signs: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if max(word) > UNSPACED_FROM:
            signs.update(a + b for a, b in pairwise(word))
        elif len(word) > 1:
            signs.add(word)
    return signs


def _is_covered(text: str, covered: set[str] | None) -> bool:
    """Return whether the segments of a message contain a fair share of it."""
    if covered is None:
        return False
    signs = _signs(text)
    return not signs or len(signs & covered) >= MIN_SHARE * len(signs)


def completed_by_rule(
    segments: Sequence[Segment], messages: Sequence[Utterance], max_chars: int
) -> list[Segment]:
    """Return the segments in the order of the text. Messages that the model omitted are segmented by rule."""
    from ebbtide.language.builtin.segmentation import segment as segment_by_rules

    covered: dict[int, set[str]] = {}
    for segment in segments:
        for index in segment.messages:
            covered.setdefault(index, set()).update(_signs(segment.text))
    left_out = [
        i for i, m in enumerate(messages) if has_word(m.text) and not _is_covered(m.text, covered.get(i))
    ]
    are_left_out = set(left_out)
    segments = [s for s in segments if not are_left_out.issuperset(s.messages)]
    by_rule = [
        Segment(s.text, tuple(left_out[i] for i in s.messages), s.start)
        for s in segment_by_rules([messages[i] for i in left_out], max_chars)
    ]
    return sorted([*segments, *by_rule], key=lambda s: min(s.messages, default=-1))


def split_text(text: str, most_tokens: int) -> list[str]:
    """Split a text at sentence ends into parts of at most so many tokens. Joined, they are the text."""
    pieces = _fitting(Piece(0, 0, Utterance("", "", text)), most_tokens)
    return [piece.utterance.text for piece in pieces]


def _fitting(piece: Piece, most_tokens: int) -> list[Piece]:
    done: list[Piece] = []
    waiting = [piece]
    while waiting:
        first = waiting.pop(0)
        parts = _split(first) if first.tokens > most_tokens else []
        if parts:
            waiting[:0] = parts
        else:
            done.append(first)
    return done


def _split(piece: Piece) -> list[Piece]:
    text = piece.utterance.text
    if len(text) < 2 * MIN_PIECE_CHARS:
        return []
    at = _cut_near_middle(text)
    utterance = piece.utterance
    return [
        Piece(
            piece.message,
            piece.start + start,
            Utterance(utterance.role, utterance.speaker, part, utterance.prefix),
        )
        for start, part in ((0, text[:at]), (at, text[at:]))
        if has_word(part)
    ]


def _cut_near_middle(text: str) -> int:
    low, high = len(text) // 4, 3 * len(text) // 4
    for ends in (_SENTENCE_END, _SOME_END):
        cuts = [m.end() for m in ends.finditer(text, low, high)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut - len(text) // 2))
    return cluster_cut(text, low, len(text) // 2)
