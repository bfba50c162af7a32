"""`AsyncClient`: every verb, awaited. What the verbs are stands in `calls.py`; here they are only sent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from ebbtide_client import calls, wire
from ebbtide_client.calls import Call, Reply, Saving, Sending, as_method
from ebbtide_client.errors import EbbtideError, from_httpx
from ebbtide_client.files import Landing, Parcel
from ebbtide_client.models import EventInfo, Page, Restored
from ebbtide_client.reading import LEAST_TIMEOUT_S, Reading
from ebbtide_client.retries import Retries, Tries

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")


def _verb(build: Callable[P, Call[A]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, A]]:
    @as_method(build)
    async def verb(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> A:
        return await self.send(build(*args, **kwargs))

    return verb


def _every(build: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    @as_method(build)
    async def every(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        call = build(*args, **kwargs)
        while True:
            page = await self.send(call)
            for item in page.items:
                yield item
            if not page.next_token:
                return
            call = call.on_page(page.next_token)

    every.__doc__ = f"Page by page: {build.__doc__}"
    return every


def _stream(
    build: Callable[P, Call[EventInfo]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[EventInfo]]:
    @as_method(build)
    async def stream(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[EventInfo]:
        reading = Reading(build(*args, **kwargs), self._retries)
        while True:
            lost: EbbtideError | None = None
            try:
                async with aclosing(self.read(reading)) as found:
                    async for event in found:
                        yield event
            except EbbtideError as error:
                lost = error
            if lost is None and not reading.is_following:
                return
            await asyncio.sleep(reading.pause_s(lost))

    return stream


def _saves(build: Callable[P, Saving]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, int]]:
    @as_method(build)
    async def save(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> int:
        return await self.save(build(*args, **kwargs))

    return save


def _hands_over(
    build: Callable[P, Sending],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, Restored]]:
    @as_method(build)
    async def hand_over(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Restored:
        return await self.hand_over(build(*args, **kwargs))

    return hand_over


class AsyncClient:
    """A daemon, spoken to from an event loop; one client may be used by many tasks of it.

    `timeout_s` is the longest silence of the daemon within a request; where a verb asks it to wait, that time comes
    on top. `ca_file` is the authority of the daemon's certificate (PEM), where everybody's authorities will not do,
    `client_cert` what it is shown (certificate and key, one PEM file); `verify` stands for both. Where they, `url` and
    `api_key` are None, EBBTIDE_CA_FILE, EBBTIDE_CLIENT_CERT, EBBTIDE_URL, and EBBTIDE_API_KEY_FILE or EBBTIDE_API_KEY
    say it; an empty `api_key` is none. `transport` is for tests.
    """

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
        trust = wire.trust(verify, ca_file, client_cert)
        self._http = httpx.AsyncClient(transport=transport, verify=trust, **self._wire.options)

    def __repr__(self) -> str:
        return self._wire.describe("AsyncClient")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the agents stay as they are."""
        await self._http.aclose()

    # --- verbs -------------------------------------------------------------------------------------

    initialise = _verb(calls.initialise)
    update = _verb(calls.update)
    get_agent = _verb(calls.get_agent)
    list_agents = _verb(calls.list_agents)
    close_agent = _verb(calls.close_agent)
    erase = _verb(calls.erase)

    remember = _verb(calls.remember)
    recall = _verb(calls.recall)
    search = _verb(calls.search)

    get_batch = _verb(calls.get_batch)
    list_batches = _verb(calls.list_batches)
    retry_batch = _verb(calls.retry_batch)
    flush = _verb(calls.flush)
    compress = _verb(calls.compress)

    get_focus = _verb(calls.get_focus)
    get_node = _verb(calls.get_node)
    list_nodes = _verb(calls.list_nodes)
    list_links = _verb(calls.list_links)

    update_node = _verb(calls.update_node)
    delete_nodes = _verb(calls.delete_nodes)
    delete_node = _verb(calls.delete_node)
    forget = _verb(calls.forget)

    list_audit = _verb(calls.list_audit)
    verify_audit = _verb(calls.verify_audit)

    list_erased_agents = _verb(calls.list_erased_agents)
    verify_erased_agents = _verb(calls.verify_erased_agents)

    backup = _saves(calls.backup)
    export = _saves(calls.export)
    restore = _hands_over(calls.restore)
    import_agent = _hands_over(calls.import_agent)

    events = _stream(calls.events)

    get_health = _verb(calls.get_health)
    get_readiness = _verb(calls.get_readiness)
    get_model = _verb(calls.get_model)
    get_scheduler = _verb(calls.get_scheduler)
    get_metrics = _verb(calls.get_metrics)

    every_agent = _every(calls.list_agents)
    every_batch = _every(calls.list_batches)
    every_node = _every(calls.list_nodes)
    every_link = _every(calls.list_links)
    every_audit_record = _every(calls.list_audit)
    every_erased_agent = _every(calls.list_erased_agents)

    # --- sending -----------------------------------------------------------------------------------

    async def send(self, call: Call[A]) -> A:
        """Send a call, again where that is safe and may help; its answer."""
        tries = Tries(call, self._retries)
        while True:
            try:
                return await self._once(call)
            except EbbtideError as error:
                pause_s = tries.pause_s(error)
                if pause_s is None:
                    raise
            await asyncio.sleep(pause_s)

    async def _once(self, call: Call[A]) -> A:
        try:
            response = await self._http.request(**self._wire.request(call))
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error
        return call.read(wire.reply_of(response))

    async def read(self, reading: Reading) -> AsyncGenerator[EventInfo, None]:
        """The events of one connection."""
        asked = self._wire.streaming(reading.call, LEAST_TIMEOUT_S)
        try:
            async with self._http.stream(**asked) as response:
                if response.status_code != 200:
                    await response.aread()
                    reading.call.read(wire.reply_of(response))
                async for line in response.aiter_lines():
                    event = reading.line(line)
                    if event is not None:
                        yield event
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error

    # --- files: what blocks is done on a thread, so that the loop goes on --------------------------

    async def save(self, saving: Saving) -> int:
        """Fetch a file, again where it broke off and nothing of it is left; its bytes."""
        landing, tries = Landing(saving.to), Tries(saving.call, self._retries)
        while True:
            try:
                landing.begin()
                await self._fetch(saving, landing)
                await asyncio.to_thread(landing.keep)
                return landing.size
            except EbbtideError as error:
                pause_s = tries.pause_s(error) if landing.can_begin_anew else None
                if pause_s is None:
                    raise
            finally:
                landing.drop()
            await asyncio.sleep(pause_s)

    async def _fetch(self, saving: Saving, landing: Landing) -> None:
        try:
            async with self._http.stream(**self._wire.moving(saving.call, saving.headers)) as response:
                if response.status_code != 200:
                    await response.aread()
                    saving.call.read(wire.reply_of(response))
                if not saving.is_answered_by(response.headers):
                    saving.call.read(Reply(200, response.headers, b""))
                async for piece in response.aiter_bytes():
                    await asyncio.to_thread(landing.put, piece)
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error

    async def hand_over(self, sending: Sending) -> Restored:
        """Send a file; what became of it."""
        parcel = Parcel(sending)

        async def pieces() -> AsyncIterator[bytes]:
            while piece := await asyncio.to_thread(parcel.piece):
                yield piece

        try:
            await asyncio.to_thread(parcel.look)
            asked = {**self._wire.moving(sending.call, sending.headers), "content": pieces()}
            response = await self._http.request(**asked)
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error
        finally:
            parcel.close()
        return sending.call.read(wire.reply_of(response))
