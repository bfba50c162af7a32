"""The text of an answer, collected while its bytes pass by.

A collector never changes, delays or breaks an answer: one that is not understood has no text. A text is returned only
if the answer is complete and calls no tool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

from ebbtide.proxy.chats import Api

MAX_LINE_BYTES = 1 << 20
MAX_BODY_BYTES = 4 << 20
MAX_TEXT_CHARS = 1 << 20
"""A longer event, body or text is not collected."""

FINISHED = frozenset({"stop", "length"})

_NOTHING = Raw(b"null")


class _Said(msgspec.Struct):
    content: Raw = _NOTHING
    tool_calls: Raw = _NOTHING
    function_call: Raw = _NOTHING

    @property
    def calls_tool(self) -> bool:
        return any(bytes(one) not in (b"null", b"[]") for one in (self.tool_calls, self.function_call))


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Said | None = None
    message: _Said | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None


class _OllamaChunk(msgspec.Struct):
    message: _Said | None = None
    done: bool = False
    done_reason: str | None = None


class _Content(msgspec.Struct):
    type: str = ""
    text: Raw = _NOTHING


class _Item(msgspec.Struct):
    type: str = ""
    content: list[_Content] | None = None


class _Response(msgspec.Struct):
    status: str = ""
    output: list[_Item] | None = None


class _Event(msgspec.Struct):
    type: str = ""
    response: _Response | None = None


class Collector:
    """Collects the text of one answer."""

    def __init__(self, api: Api, media_type: str) -> None:
        self._read = _READERS[api]
        is_lines = media_type in ("text/event-stream", "application/x-ndjson")
        self.is_of_events = media_type == "text/event-stream"
        self._is_whole = not is_lines
        self._rest = bytearray()
        self._texts: list[str] = []
        self._size = 0
        self._is_finished = False
        self._calls_tool = False
        self._has_failed = False

    def feed(self, part: bytes) -> None:
        """Take the next bytes of the body."""
        if self._has_failed:
            return
        self._rest += part
        if not self._is_whole and b"\n" in part:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            for line in lines:
                self._take(line)
        if len(self._rest) > (MAX_BODY_BYTES if self._is_whole else MAX_LINE_BYTES):
            self._fail()

    def end(self) -> str:
        """Return the text of the answer, once its body is complete; empty if it must not be remembered."""
        self._take(bytes(self._rest))
        if self._has_failed or self._calls_tool or not self._is_finished:
            return ""
        return "".join(self._texts).strip()

    def add(self, said: _Said | None) -> None:
        """Add a part of the answer."""
        if said is None:
            return
        self._calls_tool = self._calls_tool or said.calls_tool
        self.say(said.content)

    def say(self, content: Raw) -> None:
        """Add a text; other values are ignored."""
        if bytes(content)[:1] != b'"':
            return
        text = msgspec.json.decode(content, type=str)
        self._texts.append(text)
        self._size += len(text)
        if self._size > MAX_TEXT_CHARS:
            self._fail()

    def call_tool(self) -> None:
        """Note that the answer calls a tool."""
        self._calls_tool = True

    def finish(self) -> None:
        """Note that the answer is complete."""
        self._is_finished = True

    def _take(self, line: bytes) -> None:
        line = line.strip()
        if self.is_of_events:
            line = line[5:].strip() if line.startswith(b"data:") else b""
        if self._has_failed or not line or line == b"[DONE]":
            return
        try:
            self._read(self, line)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            self._fail()

    def _fail(self) -> None:
        self._has_failed = True
        self._rest.clear()
        self._texts.clear()


def _read_chat(answer: Collector, line: bytes) -> None:
    for choice in msgspec.json.decode(line, type=_Chunk).choices or ():
        if choice.index:
            continue
        answer.add(choice.delta)
        answer.add(choice.message)
        if choice.finish_reason in FINISHED:
            answer.finish()


def _read_ollama(answer: Collector, line: bytes) -> None:
    chunk = msgspec.json.decode(line, type=_OllamaChunk)
    answer.add(chunk.message)
    if chunk.done and (chunk.done_reason or "stop") in FINISHED:
        answer.finish()


def _read_event(answer: Collector, line: bytes) -> None:
    """Read an event of Responses: the last one repeats the whole answer."""
    if b"response.completed" in line:
        event = msgspec.json.decode(line, type=_Event)
        if event.type == "response.completed" and event.response is not None:
            _add_output(answer, event.response)


def _read_responses(answer: Collector, line: bytes) -> None:
    if answer.is_of_events:
        _read_event(answer, line)
    else:
        _add_output(answer, msgspec.json.decode(line, type=_Response))


def _add_output(answer: Collector, response: _Response) -> None:
    items: Sequence[_Item] = response.output or ()
    for item in items:
        if item.type.endswith("_call"):
            answer.call_tool()
        for content in item.content or () if item.type == "message" else ():
            if content.type == "output_text":
                answer.say(content.text)
    if response.status == "completed":
        answer.finish()


_READERS: dict[Api, Callable[[Collector, bytes], None]] = {
    "chat": _read_chat,
    "responses": _read_responses,
    "ollama": _read_ollama,
}
