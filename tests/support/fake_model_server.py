"""The base of the fake model servers: HTTP over a real socket on a free loopback port, and a script of faults.

By default a fake answers like the built-in model, so that tests can cover every layer above it. A script makes it
refuse, hang, return wrong content or close the connection. It parses the prompts as a model would: the data is
between the two marks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.segmentation import segment
from ebbtide.language.port import Utterance
from tests.support.scripted_model import relate, statements

FOR_EVER = 3600.0


@dataclass(frozen=True)
class Reaction:
    """The reaction of a fake to one chat; by default it answers."""

    content: str | None = None
    """The model's output, instead of a sensible answer."""
    body: bytes | None = None
    """The whole HTTP body, instead of a well-formed one."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut_at: int | None = None
    """Send this many bytes of the response, then close the connection."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Members of the response that differ from the default."""


@dataclass(frozen=True)
class Request:
    """One request as the fake received it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


Answer = tuple[int, Any]


class FakeModelServer:
    """An HTTP server that behaves like a model server. A subclass implements one kind."""

    def __init__(self, models: tuple[str, ...] = ("qwen2.5:7b",)) -> None:
        self.models = list(models)
        self.script: deque[Reaction] = deque()
        self.always = Reaction()
        self.for_task: dict[str, Reaction] = {}
        """Reactions to one task, if it differs from the others."""
        self.requests: list[Request] = []
        self.running = 0
        self.most_running = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def chats(self) -> list[Any]:
        """The bodies of all chats so far."""
        return [r.body for r in self.requests if r.path in ("/api/chat", "/v1/chat/completions")]

    async def start(self) -> Self:
        """Listen, on the same port after a stop."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """Refuse new connections, and break the open ones."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    @contextlib.asynccontextmanager
    async def running_here(self) -> AsyncIterator[Self]:
        """Serve on the event loop of the test."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    @contextlib.contextmanager
    def running_beside(self) -> Iterator[Self]:
        """Serve on a thread of its own, for tests without an event loop."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), loop).result(10)
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self.stop(), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()

    # --- HTTP ---------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(method, path, headers, json.loads(content) if content else None)
        self.requests.append(request)
        answer = await self.answered(request)
        reaction = answer if isinstance(answer, Reaction) else None
        status, body = (reaction.status, reaction.body or b"") if reaction else answer
        if not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=False).encode()
        lines = [f"HTTP/1.1 {status} Whatever", f"content-length: {len(body)}"]
        extra = {"content-type": "application/json", **(reaction.headers if reaction else {})}
        lines += [f"{name}: {value}" for name, value in extra.items()]
        whole = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
        if reaction and reaction.cut_at is not None:
            writer.write(whole[: len(whole) - len(body) + reaction.cut_at])
            await writer.drain()
            return False
        writer.write(whole)
        await writer.drain()
        return True

    async def answered(self, request: Request) -> Answer | Reaction:
        """Return the status and the body, or a reaction whose body is sent unchanged."""
        raise NotImplementedError

    async def reacting(self, chat: dict[str, Any]) -> Reaction:
        """Return the next reaction to a chat, after its delay."""
        if self.script:
            reaction = self.script.popleft()
        else:
            reaction = self.for_task.get(task_of(chat), self.always) if self.for_task else self.always
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(reaction.delay_s)
        finally:
            self.running -= 1
        return reaction


def task_of(chat: dict[str, Any]) -> str:
    """Return the task of a chat."""
    data = data_of(chat)
    if isinstance(data, list):
        return "extract" if "role" in data[0] else "segment"
    if "others" in data:
        return "relate"
    if "question" in data:
        return "plan"
    return "shorten" if limit_of(chat) is not None else "process"


def data_of(chat: dict[str, Any]) -> Any:
    """Return the data between the marks: a list of messages, or an object."""
    text = chat["messages"][-1]["content"]
    found = re.search(r"^<data-(\w+)>\n(.*)\n</data-\1>$", text, re.DOTALL | re.MULTILINE)
    assert found is not None, "the conversation is not fenced"
    lines = [json.loads(line) for line in found[2].split("\n")]
    return lines if "message" in lines[0] else lines[0]


def limit_of(chat: dict[str, Any]) -> int | None:
    """Return the number of characters that the last line requests."""
    found = re.search(r"content\D+(\d+) ", chat["messages"][-1]["content"].splitlines()[-1])
    return int(found[1]) if found else None


def sensible_reply(chat: dict[str, Any]) -> dict[str, Any]:
    """Return the built-in model's answer."""
    data, task = data_of(chat), task_of(chat)
    if task == "segment":
        said = [Utterance("user", "", line["says"]) for line in data]
        found = segment(said, 200)
        return {"segments": [{"messages": list(s.messages), "text": s.text} for s in found]}
    if task == "extract":
        proposed = statements([Utterance(line["role"], "", line["says"]) for line in data])
        return {"statements": [asdict(one) for one in proposed]}
    if task == "relate":
        names = relate(data["memory"], list(data["others"].values()))
        return {"names": dict(zip(data["others"], names, strict=True))}
    if task == "plan":
        return {"kinds": [], "topics": ["residence"], "since": "", "until": "", "expand": False}
    done = process(data["text"], limit_of(chat))
    summary = {"phrase": done.phrase, "keywords": list(done.keywords)}
    return summary if task == "process" else {"content": done.content, **summary}
