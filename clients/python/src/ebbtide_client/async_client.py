"""`AsyncClient`: every operation, awaited. `calls.py` builds the requests; this module sends them.

`client.py` is generated from this file: run `python -m tests.tidy.generate_sync_client` after a change.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from ebbtide_client import calls, wire
from ebbtide_client.arguments import checked
from ebbtide_client.calls import Call, PageCall, Reply, Saving, Sending
from ebbtide_client.errors import ClientClosed, EbbtideError, from_httpx
from ebbtide_client.event_stream import LEAST_TIMEOUT_S, EventStream
from ebbtide_client.files import Download, Upload
from ebbtide_client.models import EventInfo, Restored
from ebbtide_client.retries import Attempts, Retries

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _like(build: Callable[..., Any]) -> Callable[[F], F]:
    """Give a method the name, docstring and signature of the function that builds its call."""

    def dress(method: F) -> F:
        wraps(build)(method)
        signature = inspect.signature(build)
        this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        method.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[this, *signature.parameters.values()], return_annotation=inspect.Signature.empty
        )
        return method

    return dress


def _operation(build: Callable[P, Call[A]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, A]]:
    @_like(build)
    async def operation(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> A:
        return await self.send(build(*args, **kwargs))

    return operation


def _items(build: Callable[P, PageCall[Any, T]]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    @_like(build)
    async def items(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        call: PageCall[Any, T] | None = build(*args, **kwargs)
        while call is not None:
            page = await self.send(call)
            for item in call.items(page):
                yield item
            call = call.next(page)

    items.__doc__ = f"Iterate over all pages. {build.__doc__}"
    return items


def _stream(
    build: Callable[P, Call[EventInfo]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[EventInfo]]:
    @_like(build)
    async def stream(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[EventInfo]:
        events = EventStream(build(*args, **kwargs), self._retries)
        while True:
            lost: EbbtideError | None = None
            try:
                async with aclosing(self.read(events)) as found:
                    async for event in found:
                        yield event
            except EbbtideError as error:
                lost = error
            if lost is None and not events.is_following:
                return
            await asyncio.sleep(events.pause_s(lost))

    return stream


def _download(build: Callable[P, Saving]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, int]]:
    @_like(build)
    async def download(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> int:
        return await self.download(build(*args, **kwargs))

    return download


def _upload(
    build: Callable[P, Sending],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, Restored]]:
    @_like(build)
    async def upload(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Restored:
        return await self.upload(build(*args, **kwargs))

    return upload


class AsyncClient:
    """A client of one daemon, for an event loop. Many tasks may share it.

    `timeout_s` limits how long the daemon may be silent during a request; time that an operation asks the daemon to
    wait is added. `ca_file` is the certificate authority of the daemon (PEM) if it is not a public one; `client_cert`
    is the client's certificate and key (one PEM file). `verify` replaces both. If `url`, `api_key`, `ca_file` or
    `client_cert` is None, it comes from the environment: EBBTIDE_URL, EBBTIDE_API_KEY_FILE or EBBTIDE_API_KEY,
    EBBTIDE_CA_FILE, EBBTIDE_CLIENT_CERT. An empty `api_key` sends none. `transport` is for tests.
    """

    @checked
    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = wire.TIMEOUT_S,
        connect_timeout_s: float = wire.CONNECT_TIMEOUT_S,
        retries: Retries | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: wire.PathText | None = None,
        client_cert: wire.PathText | None = None,
        verify: ssl.SSLContext | bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._wire = wire.to(url, timeout_s, connect_timeout_s, api_key, headers)
        self._retries = retries or Retries()
        trust = wire.trust(self._wire.url, verify, ca_file, client_cert)
        self._connections = httpx.AsyncClient(transport=transport, verify=trust, **self._wire.options)

    def __repr__(self) -> str:
        return self._wire.describe("AsyncClient")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. This does not affect any agent. Idempotent."""
        await self._connections.aclose()

    @property
    def _http(self) -> httpx.AsyncClient:
        if self._connections.is_closed:
            raise ClientClosed(f"{self!r} is closed; create another client", reason="CLIENT_CLOSED")
        return self._connections

    # --- operations --------------------------------------------------------------------------------

    open_agent = _operation(calls.open_agent)
    update_agent = _operation(calls.update_agent)
    get_agent = _operation(calls.get_agent)
    get_stats = _operation(calls.get_stats)
    list_agents = _operation(calls.list_agents)
    close_agent = _operation(calls.close_agent)
    clear_agent = _operation(calls.clear_agent)
    delete_agent = _operation(calls.delete_agent)

    remember = _operation(calls.remember)
    recall = _operation(calls.recall)
    search = _operation(calls.search)

    get_batch = _operation(calls.get_batch)
    list_batches = _operation(calls.list_batches)
    retry_batch = _operation(calls.retry_batch)
    flush = _operation(calls.flush)
    compress = _operation(calls.compress)

    get_focus = _operation(calls.get_focus)
    list_entities = _operation(calls.list_entities)
    get_node = _operation(calls.get_node)
    list_messages = _operation(calls.list_messages)
    get_attachment = _operation(calls.get_attachment)
    list_nodes = _operation(calls.list_nodes)
    list_links = _operation(calls.list_links)
    get_map = _operation(calls.get_map)
    get_history = _operation(calls.get_history)
    forecast = _operation(calls.forecast)
    get_node_history = _operation(calls.get_node_history)

    pin_node = _operation(calls.pin_node)
    unpin_node = _operation(calls.unpin_node)
    focus_node = _operation(calls.focus_node)
    unfocus_node = _operation(calls.unfocus_node)
    create_node = _operation(calls.create_node)
    update_node = _operation(calls.update_node)
    delete_nodes = _operation(calls.delete_nodes)
    delete_node = _operation(calls.delete_node)
    forget_memories = _operation(calls.forget_memories)

    create_statement = _operation(calls.create_statement)
    list_statements = _operation(calls.list_statements)
    get_statement = _operation(calls.get_statement)
    get_statement_history = _operation(calls.get_statement_history)
    correct_statement = _operation(calls.correct_statement)
    retract_statement = _operation(calls.retract_statement)
    search_statements = _operation(calls.search_statements)
    get_causes = _operation(calls.get_causes)
    create_link = _operation(calls.create_link)
    set_importance = _operation(calls.set_importance)
    get_profile = _operation(calls.get_profile)
    list_conflicts = _operation(calls.list_conflicts)
    resolve_conflict = _operation(calls.resolve_conflict)
    merge_entities = _operation(calls.merge_entities)
    list_merges = _operation(calls.list_merges)
    reject_merge = _operation(calls.reject_merge)
    give_feedback = _operation(calls.give_feedback)
    list_rulings = _operation(calls.list_rulings)
    undo_ruling = _operation(calls.undo_ruling)
    consolidate = _operation(calls.consolidate)

    batch_records = _operation(calls.batch_records)

    list_tools = _operation(calls.list_tools)
    get_tool_prompt = _operation(calls.get_tool_prompt)
    call_tool = _operation(calls.call_tool)

    list_audit_records = _operation(calls.list_audit_records)
    verify_audit = _operation(calls.verify_audit)
    list_erased_agents = _operation(calls.list_erased_agents)
    verify_erased_agents = _operation(calls.verify_erased_agents)

    backup_agent = _download(calls.backup_agent)
    export_agent = _download(calls.export_agent)
    restore_agent = _upload(calls.restore_agent)
    import_agent = _upload(calls.import_agent)

    watch_events = _stream(calls.watch_events)

    get_health = _operation(calls.get_health)
    get_readiness = _operation(calls.get_readiness)
    get_me = _operation(calls.get_me)
    get_model = _operation(calls.get_model)
    get_scheduler = _operation(calls.get_scheduler)
    get_metrics = _operation(calls.get_metrics)

    every_agent = _items(calls.list_agents)
    every_batch = _items(calls.list_batches)
    every_message = _items(calls.list_messages)
    every_node = _items(calls.list_nodes)
    every_entity = _items(calls.list_entities)
    every_link = _items(calls.list_links)
    every_statement = _items(calls.list_statements)
    every_conflict = _items(calls.list_conflicts)
    every_merge = _items(calls.list_merges)
    every_ruling = _items(calls.list_rulings)
    every_audit_record = _items(calls.list_audit_records)
    every_erased_agent = _items(calls.list_erased_agents)

    # --- sending -----------------------------------------------------------------------------------

    async def send(self, call: Call[A]) -> A:
        """Send a call and return its result. Retry where that is safe and may help."""
        attempts = Attempts(call, self._retries)
        while True:
            try:
                return await self._send_once(call)
            except EbbtideError as error:
                pause_s = attempts.pause_s(error)
                if pause_s is None:
                    raise
            await asyncio.sleep(pause_s)

    async def _send_once(self, call: Call[A]) -> A:
        try:
            response = await self._http.request(**self._wire.request(call))
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error
        return call.read(wire.reply_of(response))

    async def read(self, events: EventStream) -> AsyncGenerator[EventInfo, None]:
        """Yield the events of one connection."""
        request = self._wire.streaming(events.call, LEAST_TIMEOUT_S)
        try:
            async with self._http.stream(**request) as response:
                if response.status_code != 200:
                    await response.aread()
                    events.call.read(wire.reply_of(response))
                async for line in response.aiter_lines():
                    event = events.line(line)
                    if event is not None:
                        yield event
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error

    # --- files: blocking calls run on a thread, so that they do not block the loop -----------------

    async def download(self, saving: Saving) -> int:
        """Save a file and return its size. Retry after a lost connection unless some of it was written already."""
        file, attempts = Download(saving.to), Attempts(saving.call, self._retries)
        while True:
            try:
                file.begin()
                await self._fetch(saving, file)
                await asyncio.to_thread(file.commit)
                return file.size
            except EbbtideError as error:
                pause_s = attempts.pause_s(error) if file.can_restart else None
                if pause_s is None:
                    raise
            finally:
                file.discard()
            await asyncio.sleep(pause_s)

    async def _fetch(self, saving: Saving, file: Download) -> None:
        try:
            async with self._http.stream(**self._wire.transfer(saving.call, saving.headers)) as response:
                if response.status_code != 200:
                    await response.aread()
                    saving.call.read(wire.reply_of(response))
                if not saving.is_answered_by(response.headers):
                    saving.call.read(Reply(200, response.headers, b""))
                async for piece in response.aiter_bytes():
                    await asyncio.to_thread(file.write, piece)
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error

    async def upload(self, sending: Sending) -> Restored:
        """Send a file and return the restored agent."""
        file = Upload(sending)

        async def pieces() -> AsyncIterator[bytes]:
            while piece := await asyncio.to_thread(file.piece):
                yield piece

        try:
            await asyncio.to_thread(file.check)
            request = {**self._wire.transfer(sending.call, sending.headers), "content": pieces()}
            response = await self._http.request(**request)
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error
        finally:
            file.close()
        return sending.call.read(wire.reply_of(response))
