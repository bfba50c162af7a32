"""Read conversations from JSON, JSON lines or plain text, as batches that can be sent.

Supported formats:

    [message, ...]                       one conversation
    {"messages": [message, ...], ...}    the body of a request, or a chat export
    {"batches": [[message, ...], ...]}   batches; an item may also be {"messages": [...]}
    one message per line                 JSON lines; a line may also be {"messages": [...]}, a batch
    text                                 see `plain_text.py`

An error names the file, the line or the field, and the problem. Unknown fields of a message are an error, except those
that chat exports are known to have. Other fields of an export, such as titles and model names, are ignored.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.messages import BadMessage, read_message
from ebbtide.cli.plain_text import read_text

Json = dict[str, Any]

BATCH_FIELDS = ("conversation_id", "metadata", "idempotency_key")
"""Fields of a batch, except `messages`."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A message as a request contains it, and its place in the file."""

    message: Json
    place: str


@dataclass(slots=True)
class Batch:
    """Messages of one batch and its other fields. If `is_cut`, the file defines the batch, and it is never divided."""

    messages: list[Placed]
    fields: Json = field(default_factory=dict)
    is_cut: bool = False


@dataclass(slots=True)
class Conversation:
    """The batches of a file, and the number of messages without text, which are skipped."""

    batches: list[Batch]
    skipped: int = 0


MAX_INPUT_BYTES = 128 << 20
"""Maximum size of a file. The whole file is in memory before anything is sent, and takes several times its size."""


ANY_AGENT = "any"
"""The agent of a request that is only checked: the checks are the same for every agent."""

_FIELD = re.compile(r"messages\[(\d++)\]\.?(.*)", re.DOTALL)


def bad_input(message: str) -> Failure:
    """Return the failure for an invalid file."""
    return Failure(f"{message} Nothing was sent.", ExitCode.BAD_INPUT)


def read_whole(source: BinaryIO, name: str) -> bytes:
    """Return the content of a file or a pipe. Raise a Failure if it is larger than `MAX_INPUT_BYTES`."""
    pieces, left = [], MAX_INPUT_BYTES
    if source.seekable():
        left -= source.seek(0, os.SEEK_END)
        source.seek(0)
    while left >= 0 and (piece := source.read(1 << 20)):
        pieces.append(piece)
        if not source.seekable():
            left -= len(piece)
    if left < 0:
        raise bad_input(f"{name} has more than {MAX_INPUT_BYTES >> 20} MiB; split it.")
    return b"".join(pieces)


def read_conversation(raw: bytes, name: str) -> Conversation:
    """Return the batches in the bytes of a file. The suffix of its name selects the format; errors contain the name."""
    text = _decode(raw, name)
    if not text.strip():
        raise bad_input(f"{name} is empty.")
    reader = _Reader(name)
    if not _looks_like_json(text, name):
        spoken = [Placed(message, f"line {line}") for line, message in read_text(text)]
        return Conversation([Batch(spoken)])
    try:
        batches = list(reader.batches(text))
    except RecursionError:
        raise bad_input(f"{name}: nested too deeply.") from None
    if not any(batch.messages for batch in batches):
        raise bad_input(f"{name} contains no message with text.")
    return Conversation([batch for batch in batches if batch.messages], reader.skipped)


def _decode(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise bad_input(f"{name}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8 text.") from None


def _looks_like_json(text: str, name: str) -> bool:
    if name.endswith((".txt", ".md")):
        return False
    if name.endswith((".json", ".jsonl", ".ndjson")):
        return True
    head = text.lstrip()
    # A transcript may begin with "[10:32] Ann: hello".
    return head.startswith("{") or (head.startswith("[") and head[1:].lstrip()[:1] in ("{", "]"))


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.skipped = 0

    def batches(self, text: str) -> Iterator[Batch]:
        if self._is_lines(text):
            yield from self._lines(text)
            return
        whole = self._parsed(text, 0)
        if isinstance(whole, list):
            yield Batch(self._messages(whole, "", _element_lines(text)))
        elif isinstance(whole, dict):
            yield from self._object(whole)
        else:
            raise bad_input(f"{self.name}: expected messages, found {_kind(whole)}.")

    def _is_lines(self, text: str) -> bool:
        """Return whether the text is JSON lines: its first line is a JSON object, and more lines follow."""
        lines = [line for line in text.split("\n") if line.strip()]
        if self.name.endswith((".jsonl", ".ndjson")):
            return True
        try:
            return len(lines) > 1 and isinstance(json.loads(lines[0]), dict)
        except (ValueError, RecursionError):
            return False

    def _parsed(self, text: str, lines_before: int) -> Any:
        def refuse(name: str) -> None:
            raise bad_input(f"{self.name}: {name} is not a number in JSON.")

        try:
            return json.loads(text, parse_constant=refuse)
        except json.JSONDecodeError as error:
            raise self._not_json(error, lines_before) from None
        except RecursionError:
            raise bad_input(f"{self.name}: nested too deeply.") from None
        except ValueError:
            raise bad_input(f"{self.name}: a number has too many digits.") from None

    def _lines(self, text: str) -> Iterator[Batch]:
        loose: list[Placed] = []
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            item = self._parsed(line, number - 1)
            if isinstance(item, dict) and "messages" in item and "role" not in item:
                if loose:
                    yield Batch(loose)
                    loose = []
                yield self._wrapped(item, f"line {number}, ", is_cut=True)
            else:
                loose.extend(self._messages([item], f"line {number}", None))
        if loose:
            yield Batch(loose)

    def _object(self, whole: Json) -> Iterator[Batch]:
        if "batches" in whole:
            batches = whole["batches"]
            if not isinstance(batches, list):
                raise bad_input(f"{self.name}, batches: expected a list, found {_kind(batches)}.")
            for index, item in enumerate(batches):
                if isinstance(item, list):
                    messages = self._messages(item, f"batches[{index}]", None)
                    yield Batch(messages, is_cut=True)
                elif isinstance(item, dict):
                    yield self._wrapped(item, f"batches[{index}].", is_cut=True)
                else:
                    raise bad_input(f"{self.name}, batches[{index}]: expected messages, found {_kind(item)}.")
        elif "messages" in whole:
            yield self._wrapped(whole, "", is_cut=False)
        elif "role" in whole:
            yield Batch(self._messages([whole], "line 1", None))
        else:
            raise bad_input(f"{self.name}: the object has neither `messages` nor `batches`.")

    def _wrapped(self, item: Json, place: str, *, is_cut: bool) -> Batch:
        messages = item.get("messages")
        if not isinstance(messages, list):
            raise bad_input(f"{self.name}, {place}messages: expected a list, found {_kind(messages)}.")
        fields = {name: item[name] for name in BATCH_FIELDS if item.get(name) is not None}
        return Batch(self._messages(messages, f"{place}messages", None), fields, is_cut)

    def _messages(self, items: list[Any], place: str, lines: list[int] | None) -> list[Placed]:
        found = []
        for index, item in enumerate(items):
            where = f"{place}[{index}]"
            if lines is not None:
                where = f"line {lines[index]}, message {index + 1}"
            elif place.startswith("line") and len(items) == 1:
                where = place
            try:
                message = read_message(item)
            except BadMessage as fault:
                raise bad_input(f"{self.name}, {where}: {fault}.") from None
            if message is None:
                self.skipped += 1
            else:
                found.append(Placed(message, where))
        return found

    def _not_json(self, error: json.JSONDecodeError, lines_before: int) -> Failure:
        return bad_input(
            f"{self.name}, line {lines_before + error.lineno}, column {error.colno}: "
            f"not JSON ({error.msg.lower()})."
        )


def _element_lines(text: str) -> list[int]:
    """Return the number of the first line of each element of a JSON array. `text` must be valid JSON."""
    decoder = json.JSONDecoder()
    position, line, counted_to = text.index("[") + 1, 1, 0
    lines: list[int] = []
    while True:
        while text[position] in " \t\r\n,":
            position += 1
        if text[position] == "]":
            return lines
        line += text.count("\n", counted_to, position)
        counted_to = position
        lines.append(line)
        _, position = decoder.raw_decode(text, position)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    if value is None:
        return "nothing"
    return names.get(type(value), "a number")


@dataclass(frozen=True, slots=True)
class Request:
    """The body of one request, and the place of each of its messages in the file."""

    body: Json
    places: list[str]


def cut(batches: list[Batch], size: int, conversation_id: str | None) -> list[Request]:
    """Return the requests to send. Each has at most `size` messages, unless the file defines its batches."""
    requests = []
    for batch in batches:
        fields = dict(batch.fields)
        if conversation_id is not None:
            fields["conversation_id"] = conversation_id
        step = len(batch.messages) if batch.is_cut else size
        parts = [batch.messages[at : at + step] for at in range(0, len(batch.messages), step)]
        for number, part in enumerate(parts, start=1):
            own = dict(fields)
            if len(parts) > 1 and "idempotency_key" in own:
                own["idempotency_key"] = f"{own['idempotency_key']}/{number}"
            body = {"messages": [placed.message for placed in part], **own}
            requests.append(Request(body, [placed.place for placed in part]))
    return requests


def refused_message(error: str) -> tuple[int, str] | None:
    """Return the index of the message that an error is about, and what is wrong with it; None for other errors."""
    found = _FIELD.match(error)
    return None if found is None else (int(found[1]), found[2])
