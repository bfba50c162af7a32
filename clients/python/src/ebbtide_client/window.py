"""The messages of a context window: their tokens, what is stored and removed, what is put first. No I/O.

A window contains system messages, which stay, and turns: a message of the user with everything up to the next one.
Over the threshold, the oldest turns are removed together as one parcel, until at most `keep_ratio` of the limit is
left; the newest turn stays. One parcel is one batch, and one batch is one unit of the memory's time: if turns left one
by one, the agent would forget sooner.

    in the window ──over the threshold──▶ parcel due ──stored──▶ removed from the window
                                            │   ▲
                                            └───┘ failed: still in the window; same parcel and key next time

A failed parcel is sent again unchanged. With another key, a batch that did arrive would be stored twice.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ebbtide_client.calls import AnyMessage
from ebbtide_client.models import Message

OURS = ("timestamp", "id", "speaker")
"""Fields of a message for the memory only, not for a language model."""

STORED_ONLY = frozenset({"metadata", "attachments"})
"""Fields of a message that no window has."""

KEPT_ROLES = frozenset({"system", "developer"})
"""Roles whose messages never leave the window."""

MESSAGE_TOKENS = 4
"""Tokens of a message in addition to its text."""

CHARS_PER_TOKEN = 3.5

MOST_MESSAGES = 1000
"""The daemon's limit for a batch."""

MOST_MESSAGE_CHARS = 100_000
"""The daemon's limit for a message; longer ones are sent in parts."""

MOST_QUERY_CHARS = 2_000
"""Most characters of a query. A long message usually asks at its end."""

MOST_CHARS = 1_500_000
"""Most characters of one parcel. With four bytes each it stays below the daemon's 8 MiB."""

SEPARATOR = "\n---\n"
"""Between two memories in a recalled text."""

_DENSE = re.compile(r"[^\u0000-\u024f\u2000-\u206f]")


def estimate_tokens(text: str) -> int:
    """Return a cautious estimate: one token per character of CJK and other non-Latin scripts, else one per 3.5."""
    dense = len(_DENSE.findall(text))
    return dense + math.ceil((len(text) - dense) / CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A message in the window."""

    message: dict[str, Any]
    time_ms: int
    tokens: int

    @property
    def role(self) -> str:
        """The role, as language model servers name it."""
        return str(self.message.get("role", ""))

    @property
    def stays(self) -> bool:
        """Whether the message is never removed."""
        return self.role in KEPT_ROLES

    def for_model(self) -> dict[str, Any]:
        """Return the message as a language model takes it."""
        return {name: value for name, value in self.message.items() if name not in OURS}

    def for_memory(self) -> Iterator[dict[str, Any]]:
        """Yield the message as `remember` takes it; nothing if it has no text."""
        text = text_of(self.message)
        given = {name: self.message[name] for name in OURS if self.message.get(name) is not None}
        role = self.role
        if role not in ("user", "assistant", "system"):  # output of tools: the speaker names the role
            given = {"speaker": role, **given}
            role = "assistant"
        for start in range(0, len(text), MOST_MESSAGE_CHARS):
            part = text[start : start + MOST_MESSAGE_CHARS]
            yield {"timestamp": self.time_ms, **given, "role": role, "content": part}


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """Messages that are removed together: one batch, and its idempotency key."""

    entries: tuple[Entry, ...]
    messages: tuple[dict[str, Any], ...]
    key: str


class Window:
    """The messages, oldest first, and the current parcel, if any."""

    def __init__(
        self,
        *,
        max_tokens: int,
        threshold_ratio: float,
        keep_ratio: float,
        count_tokens: Callable[[str], int],
    ) -> None:
        if max_tokens < 1:
            raise ValueError("context_max_tokens must be at least 1")
        if not 0 < threshold_ratio <= 1:
            raise ValueError("context_threshold_ratio must be above 0 and at most 1")
        if not 0 <= keep_ratio < threshold_ratio:
            raise ValueError("context_keep_ratio must be at least 0 and below context_threshold_ratio")
        self._max_tokens = max_tokens
        self._threshold = max_tokens * threshold_ratio
        self._keep = max_tokens * keep_ratio
        self._count_tokens = count_tokens
        self._entries: list[Entry] = []
        self._due: Parcel | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, as a language model takes them."""
        return [entry.for_model() for entry in self._entries]

    @property
    def question(self) -> str | None:
        """The end of the last message of the user that has text; None if there is none."""
        said = (text_of(entry.message).strip() for entry in reversed(self._entries) if entry.role == "user")
        return next((text[-MOST_QUERY_CHARS:] for text in said if text), None)

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return sum(entry.tokens for entry in self._entries)

    @property
    def is_over(self) -> bool:
        """Whether the tokens exceed the threshold."""
        return self.tokens > self._threshold

    def add(self, message: AnyMessage, now_ms: int) -> None:
        """Append a message."""
        form = as_mapping(message)
        if not isinstance(form.get("role"), str):
            raise ValueError("a message needs a role")
        self._entries.append(Entry(form, now_ms, self._weigh(form)))

    def _weigh(self, form: Mapping[str, Any]) -> int:
        text = text_of(form)
        rest = {k: v for k, v in form.items() if k not in (*OURS, "role", "content")}
        extra = self._count_tokens(json.dumps(rest, ensure_ascii=False, default=str)) if rest else 0
        return MESSAGE_TOKENS + self._count_tokens(text) + extra

    # --- what leaves -------------------------------------------------------------------------------

    def due(self, *, everything: bool = False) -> Parcel | None:
        """Return the parcel to store now: the one that failed before, or a new one if over the threshold."""
        while self._due is None:
            leaving = list(self._leaving(everything))
            if not leaving:
                return None
            entries = _first_parcel(leaving)
            messages = tuple(message for entry in entries for message in entry.for_memory())
            parcel = Parcel(tuple(entries), messages, uuid.uuid4().hex)
            if messages:
                self._due = parcel
            else:
                self._remove(parcel)
        return self._due

    def settle(self, parcel: Parcel) -> None:
        """Remove the messages of a stored parcel."""
        if self._due is parcel:
            self._due = None
            self._remove(parcel)

    def _remove(self, parcel: Parcel) -> None:
        gone = {id(entry) for entry in parcel.entries}
        self._entries = [entry for entry in self._entries if id(entry) not in gone]

    def _leaving(self, everything: bool) -> Iterator[Entry]:
        turns = list(turns_of(entry for entry in self._entries if not entry.stays))
        if everything:
            for turn in turns:
                yield from turn
            return
        if not self.is_over:
            return
        left = sum(entry.tokens for turn in turns for entry in turn)
        for turn in turns[:-1]:
            if left <= self._keep:
                return
            left -= sum(entry.tokens for entry in turn)
            yield from turn

    # --- what is sent to the model -----------------------------------------------------------------

    def with_memory(self, heading: str, text: str) -> list[dict[str, Any]]:
        """Return the messages with the recalled text first, strongest memories first, as far as it fits.

        Memory gets at most half of what the window leaves free; the other half is for the answer.
        """
        room = (self._max_tokens - self.tokens) // 2 - MESSAGE_TOKENS - self._count_tokens(heading)
        kept: list[str] = []
        for block in text.split(SEPARATOR) if text else []:
            room -= self._count_tokens(block + SEPARATOR)
            if room < 0:
                break
            kept.append(block)
        if not kept:
            return self.messages
        return [{"role": "system", "content": heading + SEPARATOR.join(kept)}, *self.messages]


def turns_of(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries by turns. Each begins with a message of the user, except possibly the first."""
    turn: list[Entry] = []
    was_user = False
    for entry in entries:
        is_user = entry.role == "user"
        if is_user and not was_user and turn:
            yield turn
            turn = []
        turn.append(entry)
        was_user = is_user
    if turn:
        yield turn


def _first_parcel(leaving: list[Entry]) -> list[Entry]:
    """Return the oldest whole turns that fit into one batch; of a turn that is too large, its first part."""
    parcel: list[Entry] = []
    size = _Size()
    for turn in turns_of(leaving):
        whole = size.with_(turn)
        if parcel and not whole.fits:
            return parcel
        for entry in turn:
            size = size.with_([entry])
            if parcel and not size.fits:
                return parcel
            parcel.append(entry)
    return parcel


@dataclass(frozen=True, slots=True)
class _Size:
    messages: int = 0
    chars: int = 0

    @property
    def fits(self) -> bool:
        return self.messages <= MOST_MESSAGES and self.chars <= MOST_CHARS

    def with_(self, entries: Iterable[Entry]) -> _Size:
        texts = [message["content"] for entry in entries for message in entry.for_memory()]
        return _Size(self.messages + len(texts), self.chars + sum(map(len, texts)))


def as_mapping(message: AnyMessage) -> dict[str, Any]:
    """Return a message as a dict."""
    if isinstance(message, str):
        return {"role": "user", "content": message}
    if not isinstance(message, Message):
        return dict(message)
    form = _without_none({name: value for name, value in asdict(message).items() if name not in STORED_ONLY})
    return {"role": message.role, "content": None, **form}


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(item) for name, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value


def text_of(form: Mapping[str, Any]) -> str:
    """Return the text of a message, also if its content is a list of parts."""
    content = form.get("content")
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
