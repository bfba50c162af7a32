"""Forwarding over HTTP: a worker passes a request on to the worker that owns its agent.

The worker that accepts a connection reads only the path of a request. The owner does the rest: the HTTP checks,
authentication, limits, the log line and the metrics. Parts of bodies are passed on as they arrive, in both directions.
If the client disconnects, the owner's work is cancelled.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ebbtide.errors import EbbtideError, stopping
from ebbtide.forwarding.exchange import ConnectionLost, Exchange, Part, RestHead, RestStart
from ebbtide.forwarding.peers import Peers
from ebbtide.rest.connections import HELD
from ebbtide.rest.http_checks import FAILURE
from ebbtide.telemetry import get_log

AGENTS = "/v1/agents/"


class Forwarding:
    """Passes requests on to the owners of their agents, and answers those that other workers pass on."""

    def __init__(self, app: ASGIApp, peers: Peers, max_buffered_bytes: int) -> None:
        self._app = app
        self._peers = peers
        self._budget = _Budget(max_buffered_bytes)
        peers.answer(RestHead, self.answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request here, or pass it on."""
        agent_id = _agent_of(scope)
        worker = await self._peers.owner(agent_id)
        if worker != self._peers.own:
            error = await _Passage(self._peers, worker, agent_id, scope, receive, send).run()
            if error is None:
                return
            # The app responds with the error, after the checks of every request.
            scope = {**scope, FAILURE: error}
        await self._app(scope, receive, send)

    async def answer(self, head: Any, exchange: Exchange) -> bool:
        """Answer a request that another worker passed on. Return whether both sides are complete."""
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": head.http_version,
            "method": head.method,
            "path": head.path,
            "raw_path": head.raw_path,
            "query_string": head.query,
            "root_path": "",
            "headers": head.headers,
            "client": head.client,
            "server": head.server,
            "scheme": head.scheme,
            "state": {},
            HELD: _Held(self._budget),
        }
        is_received = is_sent = False

        async def receive() -> Message:
            nonlocal is_received
            if is_received:
                await exchange.lost.wait()
                return {"type": "http.disconnect"}
            try:
                part = await exchange.read()
            except ConnectionLost:
                return {"type": "http.disconnect"}
            assert isinstance(part, Part)
            is_received = not part.more
            return {"type": "http.request", "body": part.data, "more_body": part.more}

        async def send(message: Message) -> None:
            nonlocal is_sent
            if message["type"] == "http.response.start":
                frame: RestStart | Part = RestStart(message["status"], list(message["headers"]))
            else:
                more = message.get("more_body", False)
                frame = Part(message.get("body", b""), more)
                is_sent = not more
            try:
                await exchange.write(frame)
            except ConnectionLost:
                # Ignored, as servers do: the app gets the disconnect from `receive`.
                return

        await self._app(scope, receive, send)
        while is_sent and not is_received:
            # The app has refused a body early. The other worker sends the rest, or closes the connection.
            part = await exchange.read()
            is_received = isinstance(part, Part) and not part.more
        return is_received and is_sent


def _agent_of(scope: Scope) -> str:
    """Return the id of the agent in the path of a request, or an empty text. The checks refuse an invalid one."""
    path: str = scope.get("path", "")
    return path[len(AGENTS) :].partition("/")[0] if path.startswith(AGENTS) else ""


async def pass_on(
    peers: Peers, worker: int, agent_id: str, scope: Scope, receive: Receive, send: Send
) -> None:
    """Pass a request whose agent is not in the path it was sent to on to the owner of the agent.

    Raise the error to respond with if there was no response.
    """
    error = await _Passage(peers, worker, agent_id, scope, receive, send).run()
    if error is not None:
        raise error


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that begins with a body that was read."""
    is_read = False

    async def replay() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class _Passage:
    """One request to another worker: its body is passed on to the owner of the agent, the response to the client."""

    def __init__(
        self, peers: Peers, worker: int, agent_id: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """`worker` is the owner of the agent."""
        self._peers = peers
        self._worker = worker
        self._agent_id = agent_id
        self._scope = scope
        self._receive = receive
        self._send = send
        self._has_begun = False
        """Whether a part of the response was sent to the client."""
        self._is_uploaded = False
        self._is_complete = False
        self._is_client_gone = False

    async def run(self) -> EbbtideError | None:
        """Pass on both bodies. Return the error to respond with if there was no response."""
        error: EbbtideError | None = None
        try:
            self._exchange = await self._peers.connect(self._worker)
        except EbbtideError as unreachable:
            return unreachable
        uploading = asyncio.ensure_future(self._upload())
        try:
            await self._download()
        except ConnectionLost:
            if self._has_begun and not self._is_client_gone:
                # The status was sent already. The server closes the connection, so the client sees the failure.
                get_log("forwarding").warning("response cut off", owner=self._worker)
            elif not self._is_client_gone:
                # The owner may have carried out the request.
                error = self._peers.unreachable()
        except asyncio.CancelledError:
            # The server cancels running requests at the end of the grace period of a stop.
            task = asyncio.current_task()
            if self._has_begun or task is None:
                raise
            task.uncancel()
            error = stopping()
        finally:
            uploading.cancel()
            if self._is_uploaded and self._is_complete:
                self._peers.give_back(self._worker, self._exchange)
            else:
                self._exchange.abort()
        if error is not None:
            # `receive` has one reader at a time.
            await asyncio.gather(uploading, return_exceptions=True)
        return error

    async def _upload(self) -> None:
        """Pass on the body of the request, then wait for the client to disconnect."""
        scope, exchange = self._scope, self._exchange
        head = RestHead(
            scope["method"],
            scope["path"],
            scope.get("raw_path") or b"",
            scope["query_string"],
            list(scope["headers"]),
            scope.get("client"),
            scope.get("server"),
            scope["scheme"],
            scope["http_version"],
            self._agent_id,
        )
        try:
            await exchange.write(head)
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    self._is_client_gone = not self._is_complete
                    if self._is_client_gone:
                        exchange.abort()
                    return
                more = message.get("more_body", False)
                if not self._is_uploaded:
                    await exchange.write(Part(message.get("body", b""), more))
                    self._is_uploaded = not more
        except ConnectionLost:
            return

    async def _download(self) -> None:
        """Pass on the response."""
        while not self._is_complete:
            frame = await self._exchange.read()
            if isinstance(frame, RestStart):
                self._has_begun = True
                await self._send(
                    {"type": "http.response.start", "status": frame.status, "headers": frame.headers}
                )
                continue
            assert isinstance(frame, Part)
            self._is_complete = not frame.more
            await self._send({"type": "http.response.body", "body": frame.data, "more_body": frame.more})


class _Budget:
    """The bytes buffered for all requests that other workers have passed on."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held_bytes = 0


class _Held:
    """The bytes buffered for one such request, in place of those that `Connection` counts."""

    def __init__(self, budget: _Budget) -> None:
        self._budget = budget
        self.held_bytes = 0

    def hold(self, size: int) -> bool:
        """Add buffered bytes. Return whether all of them are within the limit."""
        self.held_bytes += size
        self._budget.held_bytes += size
        return self._budget.held_bytes <= self._budget.most

    def release(self, size: int) -> None:
        """Subtract buffered bytes."""
        size = min(size, self.held_bytes)
        self.held_bytes -= size
        self._budget.held_bytes -= size
