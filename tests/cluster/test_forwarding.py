"""Requests between nodes while an agent moves: they wait, or are passed on a second time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from ebbtide.errors import EbbtideError, agent_moving
from ebbtide.forwarding.exchange import (
    CallEnd,
    CallHead,
    CallMessage,
    ConnectionLost,
    Exchange,
    Part,
    RestHead,
    RestStart,
    VerbHead,
    VerbResult,
)
from ebbtide.forwarding.nodes import NodePeers, Place
from ebbtide.verbs import merging
from ebbtide.verbs.catalogue import OPERATIONS
from ebbtide.verbs.service import Service
from tests.support.in_process import service_in

SECRET = b"x" * 16
NAMES = ("a", "b", "c")


@dataclass
class Node:
    """One node, and who it believes owns the agent."""

    name: str
    peers: NodePeers
    owner: str
    version: int = 0
    moving: asyncio.Event | None = None
    newest: tuple[int, str] = (0, "")
    """The version of the table of slots and the owner in it, which the node has not read yet."""
    served: list[Any] = field(default_factory=list)
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Knowledge:
    """The knowledge of one node about the others."""

    name: str
    nodes: dict[str, Node]
    addresses: dict[str, Place]

    @property
    def version(self) -> int:
        return self.nodes[self.name].version

    def owner_name(self, _: str) -> str:
        return self.nodes[self.name].owner

    def places(self) -> dict[str, Place]:
        return self.addresses

    async def settle(self, _: str) -> None:
        if (moving := self.nodes[self.name].moving) is not None:
            await moving.wait()

    async def catch_up(self, version: int) -> None:
        node = self.nodes[self.name]
        if node.version < version <= node.newest[0]:
            node.version, node.owner = node.newest


@pytest.fixture
async def nodes() -> AsyncIterator[dict[str, Node]]:
    """Three nodes: the first sends requests to the second, which has given the agent to the third."""
    places: dict[str, Place] = {}
    found: dict[str, Node] = {}

    for name in NAMES:
        peers = NodePeers(name, SECRET, Knowledge(name, found, places))
        found[name] = node = Node(name, peers, "b" if name == "a" else "c")
        for kind in (RestHead, CallHead, VerbHead):
            node.peers.answer(kind, answering(node))
        places[name] = Place(f"127.0.0.1:{await node.peers.listen('127.0.0.1', 0)}", name)
    yield found
    for node in found.values():
        await node.peers.close()


def answering(node: Node) -> Any:
    """Return a function that answers a request with the texts of its body and the name of the node."""

    async def answer(head: Any, exchange: Exchange) -> bool:
        node.served.append(head)
        if isinstance(head, VerbHead):
            await exchange.write(VerbResult(head.request + node.name.encode()))
            return True
        body = b""
        try:
            if isinstance(head, RestHead):
                more = True
                while more:
                    part = await exchange.read()
                    assert isinstance(part, Part)
                    body, more = body + part.data, part.more
                await exchange.write(RestStart(200, []))
                if head.path == "/events":
                    await exchange.lost.wait()
                    raise ConnectionLost
                await exchange.write(Part(body, True))
                await exchange.write(Part(node.name.encode(), False))
            else:
                body = head.first
                while head.is_upload and isinstance(message := await exchange.read(), CallMessage):
                    body += message.data
                await exchange.write(CallMessage(body + node.name.encode()))
                await exchange.write(CallEnd())
        except ConnectionLost:
            node.disconnected.set()
            raise
        return True

    return answer


def rest(path: str = "/") -> RestHead:
    """Return the head of a request."""
    return RestHead("POST", path, b"", b"", [], None, None, "http", "1.1", "ann")


async def text_of(exchange: Exchange) -> bytes:
    """Return the body of a response."""
    assert isinstance(await exchange.read(), RestStart)
    text = b""
    while True:
        part = await exchange.read()
        assert isinstance(part, Part)
        text += part.data
        if not part.more:
            return text


async def test_a_node_that_has_not_read_that_it_owns_the_agent_reads_it(nodes: dict[str, Node]) -> None:
    """It would pass the request back to the node that had the agent before, which refuses it."""
    first, other, owner = nodes["a"], nodes["b"], nodes["c"]
    first.owner, first.version = "c", 5
    owner.owner, owner.version, owner.newest = "b", 4, (5, "c")
    for number in range(2):
        head = VerbHead("Flush", f"{number} ".encode(), b"", "ann")
        assert (await first.peers.request(first.peers.owner_of("ann"), head)).body == f"{number} c".encode()
    assert not other.served
    # The version is written once for each connection.
    owner.newest, first.version = (6, "b"), 6
    assert (
        await first.peers.request(first.peers.owner_of("ann"), VerbHead("Flush", b"", b"", "ann"))
    ).body == b"b"


async def test_a_node_that_gave_the_agent_away_passes_requests_on(nodes: dict[str, Node]) -> None:
    """REST with a body in parts, an upload over gRPC, and an operation, one after the other on one connection."""
    peers = nodes["a"].peers
    exchange = await peers.connect(await peers.owner("ann"))
    for _ in range(2):
        for frame in (rest(), Part(b"one ", True), Part(b"two ", False)):
            await exchange.write(frame)
        assert await text_of(exchange) == b"one two c"
        for call in (
            CallHead("Restore", b"one ", True, [], "", None, "ann"),
            CallMessage(b"two "),
            CallEnd(),
        ):
            await exchange.write(call)
        assert await exchange.read() == CallMessage(b"one two c")
        assert isinstance(await exchange.read(), CallEnd)
        await exchange.write(CallHead("Recall", b"one ", False, [], "", None, "ann"))
        assert await exchange.read() == CallMessage(b"one c")
        assert isinstance(await exchange.read(), CallEnd)
    peers.give_back(peers.owner_of("ann"), exchange)
    assert (
        await peers.request(peers.owner_of("ann"), VerbHead("Recall", b"one ", b"", "ann"))
    ).body == b"one c"
    assert await peers.connect(peers.owner_of("ann")) is exchange
    assert all(head.is_repeated for head in nodes["c"].served) and not nodes["b"].served


async def test_a_request_is_passed_on_twice_at_most(nodes: dict[str, Node]) -> None:
    """Nodes that each name another owner do not send a request around: the third one answers it."""
    nodes["c"].owner = "a"
    peers = nodes["a"].peers
    result = await peers.request(await peers.owner("ann"), VerbHead("Recall", b"", b"", "ann"))
    assert result.body == b"c"


async def test_a_client_that_leaves_ends_the_work(nodes: dict[str, Node]) -> None:
    """The owner learns of it, although another node is in between."""
    peers = nodes["a"].peers
    exchange = await peers.connect(await peers.owner("ann"))
    await exchange.write(rest("/events"))
    await exchange.write(Part(b"", False))
    assert isinstance(await exchange.read(), RestStart)
    exchange.abort()
    await asyncio.wait_for(nodes["c"].disconnected.wait(), 10)


async def test_an_owner_that_is_gone_is_reported(nodes: dict[str, Node]) -> None:
    """The client learns that the agent is moving; the connection in between is closed, not left open."""
    await nodes["c"].peers.close()
    peers = nodes["a"].peers
    with pytest.raises(EbbtideError) as moving:
        await peers.request(await peers.owner("ann"), VerbHead("Recall", b"", b"", "ann"))
    assert moving.value.reason == "AGENT_MOVING"


async def test_a_request_to_a_node_whose_lease_has_lapsed_ends(nodes: dict[str, Node]) -> None:
    """A paused node closes no connection. Those to live nodes stay open, also if they are idle."""
    peers = nodes["a"].peers
    nodes["b"].owner = "b"
    await peers.request(peers.owner_of("ann"), VerbHead("Recall", b"", b"", "ann"))
    nodes["a"].owner = "c"
    exchange = await peers.connect(peers.owner_of("ann"))
    await exchange.write(rest("/events"))
    await exchange.write(Part(b"", False))
    assert isinstance(await exchange.read(), RestStart)
    peers.abort_lost()
    await asyncio.sleep(0.05)
    assert not exchange.lost.is_set()
    routing = cast(Knowledge, peers._routing)
    routing.addresses = {name: place for name, place in routing.addresses.items() if name != "c"}
    peers.abort_lost()
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(exchange.read(), 10)
    nodes["a"].owner = "b"
    assert (await peers.connect(peers.owner_of("ann"))) is not exchange
    assert [one.lost.is_set() for one in peers._used[peers.owner_of("ann")]] == [False]


async def test_requests_wait_while_the_agent_moves(nodes: dict[str, Node]) -> None:
    """A node that is giving an agent away decides where a request goes once it has moved."""
    node, moving = nodes["b"], asyncio.Event()
    node.owner, node.moving = "b", moving
    peers = nodes["a"].peers
    request = asyncio.create_task(
        peers.request(await peers.owner("ann"), VerbHead("Recall", b"", b"", "ann"))
    )
    own = asyncio.create_task(node.peers.owner("ann"))
    done, _ = await asyncio.wait({request, own}, timeout=0.1)
    assert not done
    node.owner = "c"
    moving.set()
    assert (await request).body == b"c"
    assert await own == node.peers.owner_of("ann") != node.peers.own


async def test_ids_without_a_directory_are_answered_here(nodes: dict[str, Node]) -> None:
    """An id that is empty, too long, or no Unicode text is refused by the node that received it."""
    peers = nodes["a"].peers
    assert [await peers.owner(one) for one in ("", "a" * 500, "\ud800")] == [peers.own] * 3


# --- a request whose agent moves away before it is opened ------------------------------------------------


class GoneFrom:
    """The log of a cluster for a node that owns its agents until `is_gone`."""

    is_gone = True

    def owns(self, _: str) -> bool:
        return not self.is_gone

    def refusal(self) -> EbbtideError:
        return agent_moving()

    def take(self, _: str, path: Path) -> bool:
        return (path / "data.mdb").exists()

    def log(self, _: str) -> Any:
        return None

    def data_keys(self, _: str) -> bytes | None:
        return None


class NewOwner:
    """The peers of that node: the process 1 owns every agent."""

    own = 0

    def __init__(self, service: Service) -> None:
        self._service = service
        self.heads: list[VerbHead] = []
        self.owned_by = 1

    async def owner(self, _: str) -> int:
        return self.owned_by

    async def request(self, peer: int, head: VerbHead) -> VerbResult:
        assert peer == 1
        self.heads.append(head)
        return VerbResult(await merging._answer(self._service, head))


async def test_an_operation_is_passed_on_if_its_agent_moves_before_it_is_opened(tmp_path: Path) -> None:
    """Nothing was done, so the new owner does it: once, and with the caller's response."""
    remember = OPERATIONS["Remember"]
    request = remember.request(agent_id="ann", messages=[{"role": "user", "content": "The boat is blue."}])
    async with service_in(tmp_path / "old") as old, service_in(tmp_path / "new") as new:
        peers = NewOwner(new)
        old.peers, old.cluster = cast(Any, peers), cast(Any, object())
        old.fleet.data.replication = cast(Any, GoneFrom())
        try:
            assert (await merging.perform(old, remember, request)).batch_id
            listed = await merging.perform(
                old, OPERATIONS["ListMessages"], OPERATIONS["ListMessages"].request(agent_id="ann")
            )
            assert [one.content for one in listed.messages] == ["The boat is blue."]
            assert [one.name for one in peers.heads] == ["Remember", "ListMessages"]
            # If the agent has not moved after the wait, the refusal is the response.
            peers.owned_by = 0
            with pytest.raises(EbbtideError) as refused:
                await merging.perform(old, remember, request)
            assert refused.value.reason == "AGENT_MOVING"
        finally:
            old.peers = old.cluster = old.fleet.data.replication = None


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "The boat is blue.", "name": "Ann"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": [{"type": "text", "text": "42"}], "tool_call_id": "c1"},
    ],
)
async def test_another_process_reads_a_request_as_it_was_read(message: dict[str, Any]) -> None:
    """A message in a form of OpenAI's clients is read once, also if the request is passed on afterwards."""
    remember = OPERATIONS["Remember"]
    request = remember.request(agent_id="ann", messages=[message])
    assert remember.request.model_validate_json(merging._head(remember, request).request) == request


async def test_an_operation_that_has_opened_its_agent_is_not_repeated(tmp_path: Path) -> None:
    """Something may have been done: the client decides, with its idempotency key."""
    async with service_in(tmp_path / "old") as old:
        peers = NewOwner(old)
        old.peers, old.cluster = cast(Any, peers), cast(Any, object())

        async def verb(service: Service, request: Any) -> Any:
            async with service.fleet.using(request.owner, create=True):
                raise agent_moving()

        remember = OPERATIONS["Remember"]
        request = remember.request(
            agent_id="ann", messages=[{"role": "user", "content": "The boat is blue."}]
        )
        try:
            with pytest.raises(EbbtideError) as refused:
                await merging.perform(old, replace(remember, verb=verb), request)
            assert (refused.value.reason, peers.heads) == ("AGENT_MOVING", [])
        finally:
            old.peers = old.cluster = None


async def test_a_node_that_stops_completes_the_requests_of_others(nodes: dict[str, Node]) -> None:
    """It closes no connection on which a response is due, and accepts no further ones."""
    second, third = nodes["b"], nodes["c"]
    third.moving = asyncio.Event()
    second.owner, second.moving = "c", third.moving
    first = nodes["a"].peers
    request = asyncio.create_task(first.request(first.owner_of("ann"), VerbHead("Recall", b"", b"", "ann")))
    async with asyncio.timeout(5):
        while second.peers._has_answered.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    stop = asyncio.create_task(second.peers.close())
    await asyncio.sleep(0.01)
    assert not stop.done()
    third.moving.set()
    assert (await request).body == b"c"
    await stop
