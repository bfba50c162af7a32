"""A conversation of another product, its messages as requests contain them, and notes on what is left out.

Every reader of a format yields chats. It counts parts that a format never gives, such as the output of tools. It skips
odd parts, and notes them with their places in the file. Neither ends an import.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ebbtide.bounds import EARLIEST_MS, LATEST_MS
from ebbtide.cli.console import one_line, without_controls
from ebbtide.cli.files.conversation import Placed
from ebbtide.cli.files.messages import BadMessage, is_unicode, time_ms

MAX_CHARS = 100_000
MAX_NAME_CHARS = 200
MAX_METADATA_BYTES = 4096
MAX_PLACE_CHARS = 60
MAX_SKIPPED = 10_000
"""Entries that a report lists; further ones are only counted."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry, or a part of one, that is not imported: its place in the file, and the reason."""

    place: str
    why: str


@dataclass(slots=True)
class Notes:
    """Parts that are not imported: odd entries with their places, and numbers of those that a format never gives."""

    skipped: list[Skipped] = field(default_factory=list)
    skipped_count: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def skip(self, place: str, why: str) -> None:
        """Note an entry that is not imported."""
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append(Skipped(place, why))

    def leave_out(self, what: str) -> None:
        """Count something that is left out by design."""
        self.left_out[what] += 1


@dataclass(slots=True)
class Chat:
    """The messages of one conversation, oldest first. `metadata` belongs to all of them."""

    conversation_id: str
    messages: list[Placed]
    metadata: Json | None = None
    place: str = ""

    @property
    def title(self) -> str:
        """The title of the conversation, or an empty text."""
        return str((self.metadata or {}).get("title", ""))

    @property
    def span(self) -> tuple[int, int] | None:
        """The first and the last time of its messages in ms, or None if they have no times."""
        times = [one.message["timestamp"] for one in self.messages if "timestamp" in one.message]
        return (min(times), max(times)) if times else None


def titled(form: str, title: Any, **more: Any) -> Json:
    """Return the metadata of a conversation: the product that it comes from, and its title."""
    metadata: Json = {"imported_from": form}
    if isinstance(title, str) and title.strip() and is_unicode(title):
        metadata["title"] = one_line(title)[:MAX_NAME_CHARS]
    return metadata | {name: value for name, value in more.items() if value}


def placed_name(name: object) -> str:
    """Return a name of a file for use in a place: short, and without control characters."""
    text = without_controls(one_line(str(name))).encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_PLACE_CHARS else f"{text[:MAX_PLACE_CHARS]}…"


def text_of(value: Any, what: str) -> str:
    """Return a text that a message may have. Raise BadMessage for any other value."""
    if not isinstance(value, str) or not value.strip():
        raise BadMessage(f"{what}: no text")
    if len(value) > MAX_CHARS:
        raise BadMessage(f"{what}: {len(value):,} characters; allowed: at most {MAX_CHARS:,}")
    if not is_unicode(value):
        raise BadMessage(f"{what}: contains a lone surrogate; text must be valid Unicode")
    return value


def add_name(message: Json, name: str, value: Any) -> None:
    """Set a short text of a message, such as its id, if the value is one."""
    if isinstance(value, str | int) and value != "" and is_unicode(str(value)):
        message[name] = str(value)[:MAX_NAME_CHARS]


def conversation_name(value: Any) -> str | None:
    """Return the id of a conversation, or None if the value is none."""
    message: Json = {}
    add_name(message, "id", value)
    return message.get("id")


def add_metadata(message: Json, metadata: Json, place: str, notes: Notes) -> None:
    """Add the metadata to a message, with nested values as JSON.

    If it is too large or cannot be written as JSON, note that instead. The message is imported without it.
    """
    flat = {
        str(name)[:MAX_NAME_CHARS]: value
        if isinstance(value, str | int | float)
        else json.dumps(value, ensure_ascii=False)
        for name, value in metadata.items()
        if value is not None and name
    }
    try:
        written = json.dumps(flat, ensure_ascii=False, allow_nan=False)
    except ValueError:
        written = "\ud800"
    if not is_unicode(written):
        notes.skip(place, "metadata left out: it cannot be written as JSON")
    elif len(written.encode()) > MAX_METADATA_BYTES:
        notes.skip(place, f"metadata left out: more than {MAX_METADATA_BYTES} bytes")
    else:
        message["metadata"] = flat


# --- times -----------------------------------------------------------------------------------------------------


def whole_ms(moment: Any) -> int:
    """Return a time in ms since the epoch: of a number of ms, or an ISO 8601 time. Raise BadMessage for others."""
    found = time_ms(moment)
    if isinstance(found, bool) or not isinstance(found, int):
        raise BadMessage(
            f"timestamp: {moment!r:.40} is neither whole ms since the epoch nor an ISO 8601 time"
        )
    return found


def from_seconds(moment: Any) -> int:
    """Return a time in ms since the epoch, of seconds since the epoch. Raise BadMessage for any other value."""
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        ms = moment * 1000
        if EARLIEST_MS <= ms <= LATEST_MS:  # not true of NaN
            return round(ms)
    raise BadMessage(f"{moment!r:.40} is no number of seconds since the epoch")


def time_of(value: Any, read: Callable[[Any], int], place: str, notes: Notes) -> int | None:
    """Return the time that `read` finds in a value. Note a value that is none, and return None for it."""
    if value is None:
        return None
    try:
        moment = read(value)
    except BadMessage as fault:
        notes.skip(place, f"time left out: {fault}")
        return None
    if not EARLIEST_MS <= moment <= LATEST_MS:
        notes.skip(place, "time left out: it is before the year 1 or after 9999")
        return None
    return moment


def add_time(message: Json, value: Any, read: Callable[[Any], int], place: str, notes: Notes) -> None:
    """Set the time of a message, if `read` finds one in the value. Note a value that is none."""
    moment = time_of(value, read, place, notes)
    if moment is not None:
        message["timestamp"] = moment


def messages_of(
    items: Iterable[tuple[str, Any]], read: Callable[[Any, str, Notes], Json | None], notes: Notes
) -> Iterator[Placed]:
    """Yield the messages that `read` makes of values with their places. Note those for which it raises BadMessage."""
    for place, given in items:
        try:
            message = read(given, place, notes)
        except BadMessage as fault:
            notes.skip(place, str(fault))
            continue
        if message is not None:
            yield Placed(message, place)


def date(messages: Iterable[Placed], begin_ms: int | None) -> None:
    """Give each message without a time that of the message before it; the first ones begin with the conversation."""
    moment = begin_ms
    for one in messages:
        moment = one.message.get("timestamp", moment)
        if moment is not None:
            one.message["timestamp"] = moment
