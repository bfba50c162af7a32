"""Connections to the other nodes of a cluster, over TCP.

Both sides prove that they know the secret of the cluster: each sends a random number, and an HMAC of both numbers and
of its role. Until then a frame may have a kilobyte. Later frames are neither encrypted nor signed, so nodes connect
over a private network, or through a tunnel.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import socket
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, Protocol
from weakref import WeakSet

import msgspec

from ebbtide.errors import EbbtideError, agent_moving
from ebbtide.forwarding.exchange import ConnectionLost, Exchange, Hello, Proof, Seen, VerbHead, VerbResult
from ebbtide.forwarding.peers import Peers
from ebbtide.ids import MAX_AGENT_ID_LENGTH
from ebbtide.telemetry import get_log, in_background

CONNECT_S = 2.0
"""Longest wait for a connection and its proofs. The other node may be paused, and clients wait."""

NONCE_BYTES = 32

HELLO_BYTES = 1 << 10
"""Largest frame before the proofs."""


class Place(NamedTuple):
    """Where a node is, and a random id of its process."""

    address: str
    life: str


class Routing(Protocol):
    """Where agents and nodes are, as one node knows it."""

    @property
    def version(self) -> int:
        """The version of the table of slots that the node has read."""
        ...

    def owner_name(self, agent_id: str) -> str:
        """Return the name of the node that owns an agent; empty if there is none."""
        ...

    def places(self) -> Mapping[str, Place]:
        """Return the places of the live nodes, by name."""
        ...

    async def settle(self, agent_id: str) -> None:
        """Wait a moment while an agent is moving."""
        ...

    async def catch_up(self, version: int) -> None:
        """Wait a moment until the node has read this version of the table of slots."""
        ...


class NodePeers(Peers):
    """The nodes of a cluster, as one of them uses them. An index is given to each name when it is first seen."""

    own = 0

    def __init__(self, node: str, secret: bytes, routing: Routing) -> None:
        super().__init__()
        self._secret = secret
        self._routing = routing
        self._known: dict[int, Place] = {}
        self._names = [node]
        self._server: asyncio.Server | None = None
        self._used: defaultdict[int, WeakSet[Exchange]] = defaultdict(WeakSet)
        """The connections to each node, idle or with a request."""

    def owner_of(self, agent_id: str) -> int:
        """Return the index of the node that owns an agent; the own one if there is none, or the id is invalid."""
        name = self._routing.owner_name(agent_id) if _has_directory(agent_id) else ""
        return self._index(name or self._names[0])

    async def owner(self, agent_id: str) -> int:
        """Return the same, once an agent that is moving has moved."""
        if _has_directory(agent_id):
            await self._routing.settle(agent_id)
        return self.owner_of(agent_id)

    async def catch_up(self, version: int) -> None:
        """Wait a moment until this node has read a version of the table of slots."""
        await self._routing.catch_up(version)

    async def request_of(self, name: str, head: VerbHead) -> VerbResult:
        """Return the result of an operation from a node, which does not pass it on. Raise AGENT_MOVING."""
        return await self.request(self._index(name), msgspec.structs.replace(head, is_repeated=True))

    @property
    def others(self) -> list[int]:
        """The indices of the other live nodes."""
        return [index for index in map(self._index, self._routing.places()) if index != self.own]

    def _index(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return self._names.index(name)

    def unreachable(self) -> EbbtideError:
        """Return AGENT_MOVING."""
        return agent_moving()

    # --- connections -------------------------------------------------------------------------------

    async def connect(self, peer: int) -> Exchange:
        """Return an idle or a new connection to a node. Raise AGENT_MOVING."""
        place = self._routing.places().get(self._names[peer])
        if place is None:
            raise self.unreachable()
        if self._known.get(peer) != place:
            # Another process has this name now. The idle connections are to the one before it.
            for exchange in self._idle.pop(peer, []):
                exchange.abort()
            self._known[peer] = place
        version, exchange = self._routing.version, await super().connect(peer)
        self._used[peer].add(exchange)
        if version > exchange.seen:
            # The other node may not have read yet that it owns the agent.
            exchange.seen = version
            try:
                await exchange.write(Seen(version))
            except ConnectionLost:
                raise self.unreachable() from None
        return exchange

    def abort_lost(self) -> None:
        """Close the connections to nodes that are not live: a paused one answers nothing, and closes nothing."""
        places = self._routing.places()
        for peer, exchanges in self._used.items():
            place = places.get(self._names[peer])
            if place is None or place != self._known.get(peer):
                for exchange in list(exchanges):
                    exchange.abort()

    async def _connected(self, peer: int) -> Exchange:
        host, _, port = self._known[peer].address.rpartition(":")
        exchange: Exchange | None = None
        try:
            async with asyncio.timeout(CONNECT_S):
                loop = asyncio.get_running_loop()
                _, exchange = await loop.create_connection(self._new_exchange, host, int(port or 0))
                nonce = secrets.token_bytes(NONCE_BYTES)
                await exchange.write(Hello(nonce))
                hello = await exchange.read()
                if not isinstance(hello, Hello):
                    raise ConnectionLost
                await exchange.write(Proof(self._proof(b"client", nonce, hello.nonce)))
                proof = await exchange.read()
                expected = self._proof(b"server", nonce, hello.nonce)
                if not isinstance(proof, Proof) or not hmac.compare_digest(proof.mac, expected):
                    raise ConnectionLost
                exchange.max_frame_bytes = 0
                await exchange.read()
                return exchange
        except (TimeoutError, OSError, ValueError, ConnectionLost):
            if exchange is not None:
                exchange.abort()
            raise self.unreachable() from None
        except BaseException:
            if exchange is not None:
                exchange.abort()
            raise

    async def listen(self, host: str, port: int) -> int:
        """Accept connections from the other nodes. Return the port."""
        loop = asyncio.get_running_loop()

        def accept() -> Exchange:
            exchange = self._new_exchange()
            task = in_background(self._accept(exchange))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
            return exchange

        self._server = await loop.create_server(accept, host, port, family=socket.AF_UNSPEC)
        return int(self._server.sockets[0].getsockname()[1])

    async def _accept(self, exchange: Exchange) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                hello, nonce = await exchange.read(), secrets.token_bytes(NONCE_BYTES)
                if not isinstance(hello, Hello):
                    raise ConnectionLost
                await exchange.write(Hello(nonce))
                proof = await exchange.read()
                expected = self._proof(b"client", hello.nonce, nonce)
                if not isinstance(proof, Proof) or not hmac.compare_digest(proof.mac, expected):
                    get_log("forwarding").warning(
                        "a connection did not prove that it knows the secret of the cluster",
                        address=exchange.peer_address,
                    )
                    raise ConnectionLost
                exchange.max_frame_bytes = 0
                await exchange.write(Proof(self._proof(b"server", hello.nonce, nonce)))
        except (TimeoutError, ConnectionLost):
            exchange.abort()
            return
        await self._serve(exchange)

    def _new_exchange(self) -> Exchange:
        exchange = Exchange()
        exchange.max_frame_bytes = HELLO_BYTES
        return exchange

    def _proof(self, role: bytes, client: bytes, server: bytes) -> bytes:
        return hmac.new(self._secret, b"ebbtide/1 " + role + client + server, hashlib.sha256).digest()

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()


def _has_directory(agent_id: str) -> bool:
    """Return whether an id, which may be invalid, has a directory name."""
    return 0 < len(agent_id) <= MAX_AGENT_ID_LENGTH and not any(
        "\ud800" <= one <= "\udfff" for one in agent_id
    )
