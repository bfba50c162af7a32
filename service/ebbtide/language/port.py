"""The language port: what the memory asks of a language model, and how a model may fail.

Three tasks and no more: cut a conversation into segments, turn a segment into a memory (and, later, a
shorter one), name what two memories have to do with each other. The rule guarded here: a failure of the
*server* and a failure of a *reply* are different things. The first says nothing about the text (wait and
ask again, in order); the second says that this text and this model do not get along (try elsewhere in the
queue, then park). Whoever implements the port raises one of the two errors below and nothing else.

A model may answer many questions at once: `process_many` takes texts with their prefixes and target
lengths, `relate_many` nodes with their focuses, and both give the answers to the first of them, as many as make
a fair turn. Whoever has
many questions looks for these methods; a model without them is asked one by one.

Deliberately not here: retries, time-outs, queues. They belong to whoever calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

attempt: ContextVar[int] = ContextVar("attempt", default=0)
"""How many unusable replies the question being asked has had: a hint to ask it a little differently."""


class ModelUnavailable(Exception):
    """The server did not answer: refused, timed out, 5xx, 429, model missing, breaker open."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BadReply(Exception):
    """The server answered, but not with what was asked: unparseable, empty, garbled, out of range."""


class TextTooComplex(BadReply):
    """Processing the text takes too long or too much memory. Another try would fail in the same way."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message as the model sees it.

    `prefix` is the label that will stand before the content of every memory made from it (`"Ann: "`), or
    empty; it counts against the length of a segment but is no part of its text.
    """

    role: str
    speaker: str
    text: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A self-contained piece of a conversation.

    `messages` are indices into the utterances it came from. `start` is the offset in code points at which
    `text` stands word for word in the (single) message, or None where the model has rephrased it.
    """

    text: str
    messages: tuple[int, ...]
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Processed:
    """A memory's text with its summary (10-20 characters, or up to 8 words) and 3-5 keywords."""

    content: str
    phrase: str
    keywords: tuple[str, ...]


TextToProcess = tuple[str, str, int | None]
"""What `process` is asked: the text, its prefix, its target length."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """What can be told about a model: who it is, whether it answers, how well its replies parse."""

    kind: str
    name: str
    available: bool
    detail: str = ""


class LanguageModel(Protocol):
    """A small language model behind three tasks."""

    async def segment(self, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        """Cut the messages into segments of at most `max_chars` characters, in the order of the text."""

    async def process(self, text: str, *, prefix: str = "", target_length: int | None = None) -> Processed:
        """Make a memory of `text`, of at most `target_length` characters where one is given.

        `text` begins with `prefix` (the speaker's label), which the content should keep while there is
        room for it.
        """

    async def relate(self, node: str, focuses: Sequence[str]) -> list[str]:
        """Name the relation of `node` to each focus in 2-4 characters or 1-2 words; "" where there is none.

        Texts come without speaker labels. The answer has one name for each focus.
        """

    async def state(self) -> ModelState:
        """Tell who answers and whether it does, without asking the model to think."""

    async def close(self) -> None:
        """Let go of connections and workers. Idempotent."""
