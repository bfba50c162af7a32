"""Check the replies of a model before they are used.

No reply is accepted that refers to a missing message, contains a relation name that is too long, or exceeds its target.
Invalid replies raise BadReply. Content that is slightly too long is cut at the end of a clause.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from ebbtide.language.builtin.keywords import names_nothing
from ebbtide.language.builtin.scripts import has_word
from ebbtide.language.port import (
    MAX_WORD_CHARS,
    BadReply,
    Processed,
    ProposedStatement,
    SearchPlan,
    Segment,
    Utterance,
)
from ebbtide.normalisation import is_hidden
from ebbtide.statements import STATEMENT_KINDS

MAX_RELATION_CHARS = 32
"""Characters of a relation name, as limited in recalls."""

MAX_PHRASE_CHARS = 80
MAX_KEYWORD_CHARS = 60
MAX_KEYWORDS = 5

MAX_PLANNED_TOPICS = 3
"""Most topics of the plan of a search."""

MAX_GROWTH = 5
"""Segments together may be this many times as long as the messages, for example in another language."""

MIN_SEGMENT_CHARS = 16
"""A shorter segment counts as this long, because each becomes a memory."""

MAX_PROPOSALS = 100
"""Most statements in the reply of a server that ignores the schema."""

TOLERANCE = 1.25
"""Content up to this many times the target is cut; longer content is rejected (memory model, section 5)."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLAUSE_END = re.compile(r"[。！？；，、!?;,.…](?=\s|[^\x00-\x7f]|$)")


def checked_segments(
    reply: Sequence[Segment], messages: Sequence[Utterance], max_chars: int
) -> list[Segment]:
    """Return the segments if they are not empty, not too long, and refer to existing messages. Otherwise raise
    BadReply.
    """
    if not reply and any(has_word(message.text) for message in messages):
        raise BadReply("the reply has no segments")
    for segment in reply:
        if not segment.text.strip() or len(segment.text) > 2 * max_chars:
            raise BadReply("a segment is empty or much too long")
        if not segment.messages or not all(0 <= i < len(messages) for i in segment.messages):
            raise BadReply("a segment refers to a message that does not exist")
    segment_chars = sum(max(len(segment.text), MIN_SEGMENT_CHARS) for segment in reply)
    message_chars = sum(max(len(message.text), MIN_SEGMENT_CHARS) for message in messages)
    if segment_chars > MAX_GROWTH * message_chars + 2 * max_chars:
        raise BadReply("the segments are much longer than the messages")
    return list(reply)


def checked_processed(reply: Processed, text: str, target_length: int | None) -> Processed:
    """Return a memory within its target, with a phrase and keywords of one line each.

    A content that stays as it is, or of at most `MAX_WORD_CHARS`, may be longer: no word is cut.
    """
    content = reply.content
    if target_length is not None and content != text and len(content) > MAX_WORD_CHARS:
        if len(content) > TOLERANCE * target_length:
            raise BadReply("the content is longer than its target")
        content = cut_at_clause(content, target_length)
    if target_length is None:
        if not content.strip():
            raise BadReply("the content is empty")
        if len(content) > 2 * len(text) + 40:
            raise BadReply("the content is much longer than its source")
    keywords = dict.fromkeys(k for k in map(_one_line, reply.keywords) if k and not names_nothing(k))
    return Processed(
        content,
        _one_line(reply.phrase)[:MAX_PHRASE_CHARS],
        tuple(k[:MAX_KEYWORD_CHARS] for k in keywords)[:MAX_KEYWORDS],
    )


def checked_names(reply: Sequence[str], count: int) -> list[str]:
    """Return one relation name for each focus. Names that are too long become empty."""
    if len(reply) != count:
        raise BadReply("the number of names differs from the number of focuses")
    return [name if len(name) <= MAX_RELATION_CHARS else "" for name in map(_one_line, reply)]


def checked_statements(reply: Sequence[ProposedStatement]) -> list[ProposedStatement]:
    """Return the proposed statements if their number is bounded. Their contents are checked by the gate."""
    if len(reply) > MAX_PROPOSALS:
        raise BadReply("the reply has too many statements")
    return list(reply)


def plan_in(reply: dict[str, Any]) -> SearchPlan:
    """Return the plan of a search. Raise BadReply if a field is missing, or has a value that is not allowed."""
    kinds, topics, expands = reply.get("kinds"), reply.get("topics"), reply.get("expand")
    if not isinstance(kinds, list) or not all(
        isinstance(one, str) and one in STATEMENT_KINDS for one in kinds
    ):
        raise BadReply("kinds must be a list of kinds of statements")
    if not isinstance(topics, list) or not all(isinstance(one, str) for one in topics):
        raise BadReply("topics must be a list of texts")
    if len(topics) > MAX_PLANNED_TOPICS or any(len(one) > MAX_KEYWORD_CHARS for one in topics):
        raise BadReply("topics are too many or too long")
    if not isinstance(expands, bool):
        raise BadReply("expand must be true or false")
    since, until = (_day_in(reply, name) for name in ("since", "until"))
    if since and until and until <= since:
        raise BadReply("until must be after since")
    return SearchPlan(tuple(dict.fromkeys(kinds)), tuple(dict.fromkeys(topics)), since, until, expands)


def _day_in(reply: dict[str, Any], name: str) -> str:
    day = reply.get(name)
    if not isinstance(day, str) or (day and not _DAY.fullmatch(day)):
        raise BadReply(f"{name} must be a day such as 2026-05-01, or empty")
    try:
        return day and date.fromisoformat(day).isoformat()
    except ValueError as error:
        raise BadReply(f"{name} is no day") from error


def cut_at_clause(text: str, target: int) -> str:
    """Return at most `target` characters, cut at the end of a clause if one ends in the second half."""
    if len(text) <= target:
        return text
    ends = [m.end() for m in _CLAUSE_END.finditer(text, 0, target)]
    if ends and ends[-1] >= target // 2:
        return text[: ends[-1]].rstrip("，、；,; ")
    return text[:target].rstrip()


def _one_line(text: str) -> str:
    if not text.isprintable():
        text = "".join(" " if is_hidden(c) else c for c in text)
    return " ".join(text.split())
