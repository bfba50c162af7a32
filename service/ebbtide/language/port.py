"""The language port: the tasks of a language model, and how they can fail.

There are four tasks: split a conversation into segments, turn a segment into a memory (and later into a shorter one),
name the relation of two memories, and extract statements from messages. A failure of the server and a failure of a
reply are different. ModelUnavailable says nothing about the text: wait and retry in order. BadReply says that this
model cannot process this text: continue with others, then park it. Implementations raise no other errors.

A model may also implement `process_many`. It takes several requests, and returns the results of the first batch of
them. A model with `names_by_rules` leaves the names of relations to the memory model. Retries, timeouts and queues are
the caller's concern.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

MAX_WORD_CHARS = 24
"""A shortened content of at most this length may exceed its target: it may be one word, and no word is cut."""

attempt: ContextVar[int] = ContextVar("attempt", default=0)
"""How many unusable replies the current request has had: a hint to vary it."""


class ModelUnavailable(Exception):
    """The server did not answer: connection refused, timeout, 5xx, 429, missing model, or open circuit breaker."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BadReply(Exception):
    """The server answered, but the reply is unusable: unparseable, empty or out of range."""


class TextTooComplex(BadReply):
    """Processing the text takes too long or too much memory. A retry would fail in the same way."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message as the model sees it.

    `prefix` is the label of every memory made from it (`"Ann: "`), or empty. It counts towards the length of a segment
    but is not part of its text.
    """

    role: str
    speaker: str
    text: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A self-contained piece of a conversation.

    `messages` are indices of the utterances it came from. `start` is the offset in code points of `text` in its single
    message, or None if the model has rephrased it.
    """

    text: str
    messages: tuple[int, ...]
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Processed:
    """The text of a memory with its summary (10-20 characters, or up to 8 words) and 3-5 keywords."""

    content: str
    phrase: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProposedStatement:
    """A statement that a model has found in a message. Nothing of it is trusted: the gate checks every field.

    `message` is an index of the utterances, -1 for none. `quote` and `object` are said to be copied from it.
    """

    message: int
    quote: str
    subject: str
    kind: str
    topic: str
    object: str
    negated: bool = False
    reported: bool = False


TextToProcess = tuple[str, int | None] | tuple[str, int | None, str]
"""The arguments of `process`: text, target length, and possibly the first content."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state of a model: its kind and name, whether it is available, and details."""

    kind: str
    name: str
    available: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How to search the statements for an answer."""

    kinds: tuple[str, ...] = ()
    """Only statements of these kinds; all if empty."""
    topics: tuple[str, ...] = ()
    """Topics of the answer."""
    since: str = ""
    """First day that counts, as YYYY-MM-DD; empty for no limit."""
    until: str = ""
    """First day that no longer counts."""
    expands: bool = False
    """Whether to follow links to causes and consequences."""


class LanguageModel(Protocol):
    """A small language model with four tasks.

    A model may have a fifth one, `plan_search(question, today)`, which returns a `SearchPlan`.
    """

    async def segment(self, messages: Sequence[Utterance], *, max_chars: int) -> list[Segment]:
        """Split the messages into segments of at most `max_chars` characters, in the order of the text."""

    async def process(self, text: str, *, target_length: int | None = None, first: str = "") -> Processed:
        """Make a memory of `text`, of at most `target_length` characters if given.

        The content may stay as it is, or be one longer word, if nothing shorter says something.
        `first` is the first content of a memory that was shortened before; the default is `text`.
        """

    async def relate(self, node: str, focuses: Sequence[str]) -> list[str]:
        """Name the relation of `node` to each focus in 2-4 characters or 1-2 words, or "" for none.

        The texts have no speaker labels. The result has one name for each focus.
        """

    async def extract(
        self, messages: Sequence[Utterance], *, topics: Sequence[str]
    ) -> list[ProposedStatement]:
        """List statements in the messages whose role is user. `topics` are the names of known topics."""

    async def state(self) -> ModelState:
        """Return whether the model is available, without running it."""

    async def close(self) -> None:
        """Close connections and workers. Idempotent."""
