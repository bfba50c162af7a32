"""A model on a server: the tasks of the port, over any server with a chat interface.

This module contains what all servers have in common: prompts, chunks that fit, and the evaluation of replies. A `Chat`
sends one prompt to one kind of server and raises `Overflow` if it does not fit into the context window; the text is
then split further. Nothing is omitted.

The content of a new memory is its segment, word for word: the model is only asked for a summary and keywords, so it can
neither lose nor invent anything. Only shortening is the model's own text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from ebbtide.language.builtin.shortening import shorten as shorten_by_rules
from ebbtide.language.port import (
    BadReply,
    ModelState,
    Processed,
    ProposedStatement,
    SearchPlan,
    Segment,
    Utterance,
    attempt,
)
from ebbtide.language.served.chunks import (
    Chunk,
    chunks_of,
    completed_by_rule,
    mapped_back,
    split_chunk,
    split_text,
)
from ebbtide.language.served.fidelity import check_fidelity
from ebbtide.language.served.parsing import flag_in, names_in, numbers_in, text_in, texts_in
from ebbtide.language.served.prompts import (
    MAX_EXTRACTION_MESSAGES,
    MESSAGE_REPLY_TOKENS,
    STATEMENTS_REPLY_TOKENS,
    Prompt,
    extract_prompt,
    overhead_tokens,
    plan_prompt,
    process_prompt,
    relate_prompt,
    segment_prompt,
    shorten_prompt,
)
from ebbtide.language.served.replies import MAX_KEYWORDS, TOLERANCE, cut_at_clause, plan_in
from ebbtide.language.tokens import estimate

T = TypeVar("T")

MAX_CHUNK_TOKENS = 2000
"""With more of a conversation in one request, small models forget parts of it."""

MIN_ROOM_TOKENS = 160
"""Room for data that is assumed at least. A smaller context is of no use."""

MIN_EXCERPT_TOKENS = 40
"""Minimum length of an excerpt if only the topic of a text matters."""


class Overflow(Exception):
    """The prompt does not fit into the context window, or leaves no room for the reply."""


class Overlong(BadReply):
    """The reply was cut off: it was longer than any useful one."""


class Chat(Protocol):
    """A client of one kind of server."""

    kind: str
    name: str

    async def window(self) -> int:
        """Return the tokens of context for prompt and reply together, as far as known."""

    async def ask(self, prompt: Prompt) -> dict[str, Any]:
        """Return the JSON object of the reply. Raise Overflow, BadReply or ModelUnavailable."""

    async def state(self) -> ModelState:
        """Return whether the server is available and has the model."""

    async def close(self) -> None:
        """Close all connections."""


class ServedModel:
    """Segment, summarise, shorten, relate and extract statements with a model on a server."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.name = chat.name

    def __repr__(self) -> str:
        return f"ServedModel({self.chat!r})"

    async def chunks(self, messages: Sequence[Utterance]) -> list[Chunk]:
        """Split a conversation into the chunks of one request each."""
        room = await self.chat.window() - overhead_tokens("segment") - 120
        # The reply repeats the data, so the data needs two and a half times its tokens.
        most = min(MAX_CHUNK_TOKENS, max(MIN_ROOM_TOKENS, int(room / 2.5)))
        return chunks_of(messages, most)

    async def segment(self, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        """Return segments in the model's words. Messages that the model omits are segmented by rule."""
        segments: list[Segment] = []
        for chunk in await self.chunks(messages):
            segments += await self._segment(chunk, max_chars)
        return segments

    async def process(self, text: str, *, target_length: int | None = None, first: str = "") -> Processed:
        """Return the text with a summary and keywords, or a shortened text with new ones."""
        if target_length is None:
            phrase, keywords = await self._summarise(text)
            return Processed(text, phrase, keywords)
        short = await self._shorten(text, target_length)
        if len(short.content) > TOLERANCE * target_length:
            raise BadReply("the content is longer than its target")
        check_fidelity(short.content, text)
        return short

    async def relate(self, node: str, focuses: Sequence[str]) -> list[str]:
        """Name the relation to each focus, in one request or in several if they do not fit."""
        if not focuses:
            return []
        names: list[str] = []
        for some in await self._related_groups(node, focuses):
            names += await self._relate(*some)
        return names

    async def extract(
        self, messages: Sequence[Utterance], *, topics: Sequence[str]
    ) -> list[ProposedStatement]:
        """List the statements in the messages of users, in one request or in several if they do not fit."""
        reply = STATEMENTS_REPLY_TOKENS + MESSAGE_REPLY_TOKENS * MAX_EXTRACTION_MESSAGES
        around = overhead_tokens("extract") + estimate(", ".join(topics)) + reply
        room = max(MIN_ROOM_TOKENS, await self.chat.window() - around)
        found: list[ProposedStatement] = []
        for chunk in chunks_of(messages, room):
            found += await self._extract(chunk, topics)
        return found

    async def plan_search(self, question: str, today: str) -> SearchPlan:
        """Return how to search the statements for an answer."""
        try:
            return plan_in(await self.chat.ask(plan_prompt(question, today)))
        except Overflow as error:
            raise BadReply("the question does not fit into the model's context") from error

    async def state(self) -> ModelState:
        """Return whether the server is available and has the model."""
        return await self.chat.state()

    async def close(self) -> None:
        """Close all connections."""
        await self.chat.close()

    # --- segmenting ---------------------------------------------------------------------------------

    async def _segment(self, chunk: Chunk, max_chars: int) -> list[Segment]:
        said = [piece.utterance for piece in chunk]
        try:
            reply = await self.chat.ask(segment_prompt(said, max_chars))
        except (Overflow, Overlong) as error:
            is_alone = len(chunk) == 1
            parts = [] if is_alone and isinstance(error, Overlong) else split_chunk(chunk)
            if not parts:
                raise BadReply("even a part of a message does not fit into the model's context") from None
            return [segment for part in parts for segment in await self._segment(part, max_chars)]
        segments = _segments_in(reply, said)
        return mapped_back(completed_by_rule(segments, said, max_chars), chunk) if segments else []

    # --- extracting ---------------------------------------------------------------------------------

    async def _extract(self, chunk: Chunk, topics: Sequence[str]) -> list[ProposedStatement]:
        said = [piece.utterance for piece in chunk]
        if all(one.role != "user" for one in said):
            return []
        try:
            reply = await self.chat.ask(extract_prompt(said, topics, is_repeated=attempt.get() > 0))
        except Overflow:
            parts = split_chunk(chunk)
            if not parts:
                raise BadReply("even a part of a message does not fit into the model's context") from None
            return [one for part in parts for one in await self._extract(part, topics)]
        return [
            replace(one, message=chunk[one.message].message if 0 <= one.message < len(chunk) else -1)
            for one in _statements_in(reply)
        ]

    # --- processing ---------------------------------------------------------------------------------

    async def _summarise(self, text: str) -> tuple[str, tuple[str, ...]]:
        async def ask(part: str) -> tuple[str, list[str]]:
            reply = await self.chat.ask(process_prompt(part))
            return text_in(reply, "phrase"), texts_in(reply, "keywords")

        answers = await self._in_parts(text, overhead_tokens("process") + 260, ask)
        # Take one keyword of each part in turn, so that every part is represented.
        longest = max(len(keywords) for _, keywords in answers)
        turns = [keywords[turn] for turn in range(longest) for _, keywords in answers if turn < len(keywords)]
        return answers[0][0], tuple(dict.fromkeys(turns))[:MAX_KEYWORDS]

    async def _shorten(self, text: str, target: int) -> Processed:
        async def ask(part: str) -> Processed:
            share = max(1, target * len(part) // max(1, len(text))) if len(part) < len(text) else target
            reply = await self.chat.ask(shorten_prompt(part, share))
            content = text_in(reply, "content")
            if len(part) < len(text):
                content = cut_at_clause(content, share)
            return Processed(content, text_in(reply, "phrase"), tuple(texts_in(reply, "keywords")))

        parts = await self._in_parts(text, overhead_tokens("shorten") + 260, ask)
        if len(parts) == 1:
            return parts[0]
        keywords = dict.fromkeys(word for part in parts for word in part.keywords[:2])
        return Processed("".join(p.content for p in parts), parts[0].phrase, tuple(keywords)[:MAX_KEYWORDS])

    async def _in_parts(self, text: str, around: int, ask: Callable[[str], Awaitable[T]]) -> list[T]:
        """Process the whole text, or its parts if it does not fit."""
        room = max(MIN_ROOM_TOKENS, int((await self.chat.window() - around) / 2.5))
        while True:
            parts = split_text(text, room) if estimate(text) > room else [text]
            try:
                return [await ask(part) for part in parts]
            except Overflow:
                room = min(room, max(map(estimate, parts))) // 2
                if room < MIN_ROOM_TOKENS // 4:
                    raise BadReply("even a part of the text does not fit into the model's context") from None

    # --- relating -----------------------------------------------------------------------------------

    async def _related_groups(self, node: str, others: Sequence[str]) -> list[tuple[str, list[str]]]:
        room = max(MIN_ROOM_TOKENS, await self.chat.window() - overhead_tokens("relate") - 60)
        # An excerpt of a long text is enough to name a relation.
        node = excerpt(node, room // 3)
        left = room - estimate(node)
        groups: list[tuple[str, list[str]]] = []
        group: list[str] = []
        size = 0
        for other in (excerpt(text, room // 3) for text in others):
            cost = estimate(other) + 36
            if group and size + cost > left:
                groups.append((node, group))
                group, size = [], 0
            group.append(other)
            size += cost
        return [*groups, (node, group)]

    async def _relate(self, node: str, others: list[str]) -> list[str]:
        try:
            reply = await self.chat.ask(relate_prompt(node, others))
        except Overflow:
            if len(others) > 1:
                middle = len(others) // 2
                first = await self._relate(node, others[:middle])
                return first + await self._relate(node, others[middle:])
            most = max(map(estimate, (node, *others))) // 2
            if most < MIN_EXCERPT_TOKENS:
                raise BadReply("two memories do not fit into the model's context") from None
            return await self._relate(excerpt(node, most), [excerpt(others[0], most)])
        return names_in(reply, len(others))


def excerpt(text: str, most_tokens: int) -> str:
    """Return a text, shortened by rule to at most so many tokens."""
    tokens = estimate(text)
    if tokens <= most_tokens:
        return text
    return shorten_by_rules(text, max(MIN_EXCERPT_TOKENS // 2, len(text) * most_tokens // (tokens + 1)))


def _statements_in(reply: dict[str, Any]) -> list[ProposedStatement]:
    """Return the statements of a reply as they are. The gate judges them."""
    items = reply.get("statements")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadReply("statements must be a list of objects")
    return [
        ProposedStatement(
            message=numbers_in(item, "message")[0] if numbers_in(item, "message") else -1,
            quote=text_in(item, "quote"),
            subject=text_in(item, "subject"),
            kind=text_in(item, "kind"),
            topic=text_in(item, "topic"),
            object=text_in(item, "object"),
            negated=flag_in(item, "negated"),
            reported=flag_in(item, "reported"),
        )
        for item in items
    ]


def _segments_in(reply: dict[str, Any], said: Sequence[Utterance]) -> list[Segment]:
    """Return the segments of a reply without blanks and repetitions. Exact quotes get their position."""
    items = reply.get("segments")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadReply("segments must be a list of objects")
    found: dict[tuple[str, tuple[int, ...]], Segment] = {}
    for item in items:
        text = text_in(item, "text")
        numbers = tuple(dict.fromkeys(numbers_in(item, "messages")))
        if not text:
            continue
        start = None
        if len(numbers) == 1 and 0 <= numbers[0] < len(said):
            at = said[numbers[0]].text.find(text)
            start = at if at >= 0 else None
        found.setdefault((text, numbers), Segment(text, numbers, start))
    return list(found.values())
