"""`Client`: every verb, blocking. What the verbs are stands in `calls.py`; here they are only sent."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

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


def _verb(build: Callable[P, Call[A]]) -> Callable[Concatenate[Client, P], A]:
    @as_method(build)
    def verb(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> A:
        return self.send(build(*args, **kwargs))

    return verb


def _every(build: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[Client, P], Iterator[T]]:
    @as_method(build)
    def every(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        call = build(*args, **kwargs)
        while True:
            page = self.send(call)
            yield from page.items
            if not page.next_token:
                return
            call = call.on_page(page.next_token)

    every.__doc__ = f"Page by page: {build.__doc__}"
    return every


def _stream(build: Callable[P, Call[EventInfo]]) -> Callable[Concatenate[Client, P], Iterator[EventInfo]]:
    @as_method(build)
    def stream(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[EventInfo]:
        reading = Reading(build(*args, **kwargs), self._retries)
        while True:
            lost: EbbtideError | None = None
            try:
                yield from self.read(reading)
            except EbbtideError as error:
                lost = error
            if lost is None and not reading.is_following:
                return
            time.sleep(reading.pause_s(lost))

    return stream


def _saves(build: Callable[P, Saving]) -> Callable[Concatenate[Client, P], int]:
    @as_method(build)
    def save(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> int:
        return self.save(build(*args, **kwargs))

    return save


def _hands_over(build: Callable[P, Sending]) -> Callable[Concatenate[Client, P], Restored]:
    @as_method(build)
    def hand_over(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Restored:
        return self.hand_over(build(*args, **kwargs))

    return hand_over


class Client:
    """A daemon, spoken to from ordinary code; one client may be used by many threads.

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._wire = wire.to(url, timeout_s, connect_timeout_s, api_key, headers)
        self._retries = retries or Retries()
        trust = wire.trust(verify, ca_file, client_cert)
        self._http = httpx.Client(transport=transport, verify=trust, **self._wire.options)

    def __repr__(self) -> str:
        return self._wire.describe("Client")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the agents stay as they are."""
        self._http.close()

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

    def send(self, call: Call[A]) -> A:
        """Send a call, again where that is safe and may help; its answer."""
        tries = Tries(call, self._retries)
        while True:
            try:
                return self._once(call)
            except EbbtideError as error:
                pause_s = tries.pause_s(error)
                if pause_s is None:
                    raise
            time.sleep(pause_s)

    def _once(self, call: Call[A]) -> A:
        try:
            response = self._http.request(**self._wire.request(call))
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error
        return call.read(wire.reply_of(response))

    def read(self, reading: Reading) -> Iterator[EventInfo]:
        """The events of one connection."""
        asked = self._wire.streaming(reading.call, LEAST_TIMEOUT_S)
        try:
            with self._http.stream(**asked) as response:
                if response.status_code != 200:
                    response.read()
                    reading.call.read(wire.reply_of(response))
                for line in response.iter_lines():
                    event = reading.line(line)
                    if event is not None:
                        yield event
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error

    # --- files -------------------------------------------------------------------------------------

    def save(self, saving: Saving) -> int:
        """Fetch a file, again where it broke off and nothing of it is left; its bytes."""
        landing, tries = Landing(saving.to), Tries(saving.call, self._retries)
        while True:
            try:
                landing.begin()
                self._fetch(saving, landing)
                landing.keep()
                return landing.size
            except EbbtideError as error:
                pause_s = tries.pause_s(error) if landing.can_begin_anew else None
                if pause_s is None:
                    raise
            finally:
                landing.drop()
            time.sleep(pause_s)

    def _fetch(self, saving: Saving, landing: Landing) -> None:
        try:
            with self._http.stream(**self._wire.moving(saving.call, saving.headers)) as response:
                if response.status_code != 200:
                    response.read()
                    saving.call.read(wire.reply_of(response))
                if not saving.is_answered_by(response.headers):
                    saving.call.read(Reply(200, response.headers, b""))
                for piece in response.iter_bytes():
                    landing.put(piece)
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error

    def hand_over(self, sending: Sending) -> Restored:
        """Send a file; what became of it."""
        parcel = Parcel(sending)
        try:
            parcel.look()
            asked = {**self._wire.moving(sending.call, sending.headers), "content": parcel.pieces()}
            response = self._http.request(**asked)
        except httpx.RequestError as error:
            raise from_httpx(error, self._wire.place) from error
        finally:
            parcel.close()
        return sending.call.read(wire.reply_of(response))
