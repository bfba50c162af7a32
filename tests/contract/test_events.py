"""Events of a memory arrive in order, exactly once, from any number, over every transport."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import grpc.aio
import httpx
import msgspec
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

from ebbtide.access.key_file import KeyFile
from ebbtide.clock import SystemClock
from ebbtide.errors import Unavailable
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.ids import AgentId
from ebbtide.language.port import BadReply
from ebbtide.rest.app import create_app
from ebbtide.v1 import events_pb2
from ebbtide.verbs import events as verb
from ebbtide.verbs.moving import RestoreAgentRequest, restore_agent
from ebbtide.verbs.service import Service
from ebbtide_client import AsyncClient, NotFound, Retries
from tests.cluster.test_forwarding import GoneFrom
from tests.support.callers import CALLERS, SERVICE, CallerIn, as_json, grpc_served, reason_of, rest_in
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.in_process import service_in, settle, tell
from tests.support.keys import KEYS_ON, bearer, id_of, new_key
from tests.support.rest_in_process import served
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

EVENTS = "/v1/agents/ann/events"


@pytest.fixture(params=[*CALLERS, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return ALL_CALLERS[request.param]


async def told(call: Any, **params: Any) -> list[dict[str, Any]]:
    """Return the available events."""
    reply = await call("GET", EVENTS, params={"follow": False, **params})
    assert reply.status_code == 200, reply.text
    if call.transport == "grpc":
        items: list[dict[str, Any]] = reply.json()["items"]
        return items
    assert reply.headers["content-type"].startswith("text/event-stream")
    return [frame["data"] for frame in frames(reply.text)]


def frames(text: str) -> list[dict[str, Any]]:
    """Return the events of a text/event-stream, after a check that their headers match their data."""
    found = []
    for block in filter(None, text.split("\n\n")):
        if block.startswith(":"):
            continue
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        data = json.loads(fields["data"])
        if fields["event"] != "StreamEnded":
            assert (fields["id"], fields["event"]) == (str(data["sequence"]), data["kind"])
        found.append({"event": fields["event"], "data": data})
    return found


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["kind"] for event in events]


async def test_a_batch_has_events_from_its_digest_to_its_pass(tmp_path: Path, caller_in: CallerIn) -> None:
    """New memories with their batch and length, the focus, the digest and the pass are numbered without a gap."""
    async with caller_in(tmp_path) as call:
        await tell(call.service, "ann", "I moved to Lisbon in May.", "My dog is called Rex.")
        await settle(call.service, "ann")
        events = await told(call)
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    entities = [event for event in events if event["kind"] == "EntityMade"]
    created, second, focus, digested, completed = [event for event in events if event not in entities]
    assert entities and {event["node_id"] for event in entities}.isdisjoint({"n1", "n2"})
    assert (created["kind"], created["node_id"], created["batch_id"]) == ("NodeCreated", "n1", "b1")
    assert (created["length"], created["length_before"]) == (len("I moved to Lisbon in May."), None)
    assert second["node_id"] == "n2"
    assert (focus["kind"], focus["focus"]) == ("FocusMoved", ["n2", "n1"])
    assert (digested["kind"], digested["batch_id"], digested["node_count"]) == ("BatchDigested", "b1", 2)
    assert (completed["kind"], completed["pass_number"]) == ("PassCompleted", 1)
    assert all(event["happened_at"] > 1_700_000_000_000 for event in events)
    assert "Lisbon" not in json.dumps(events)


async def test_changes_by_the_owner_are_events(tmp_path: Path, caller_in: CallerIn) -> None:
    """Corrections, deletions of memories and of remaining messages, and changed parameters are events."""
    async with caller_in(tmp_path) as call:
        await tell(call.service, "ann", "I moved to Lisbon in May.", "My dog is called Rex.")
        await settle(call.service, "ann")
        before = (await told(call))[-1]["sequence"]
        await call("PATCH", "/v1/agents/ann/nodes/n1", {"content": "I moved to Porto."})
        await call("DELETE", "/v1/agents/ann/nodes/n2")
        await call("PATCH", "/v1/agents/ann", {"decay_rate": 0.9, "locale": "en"})
        await call("PATCH", "/v1/agents/ann", {"decay_rate": 0.9})
        events = await told(call, after=before)
    moves = [event for event in events if event["kind"] == "FocusMoved"]
    assert {"EntityMade", "EntityGone"} <= set(kinds(events)) and moves[-1]["focus"] == ["n1"]
    corrected, erased, changed = [
        event for event in events if event not in moves and "Entity" not in event["kind"]
    ]
    assert kinds([corrected, erased, changed]) == ["NodeCorrected", "MemoryErased", "ParametersChanged"]
    assert [corrected["node_id"], erased["node_id"]] == ["n1", "n2"]
    assert changed["parameters"] == ["decay_rate", "locale"]


async def test_a_failing_batch_has_events(tmp_path: Path, caller_in: CallerIn) -> None:
    """A batch is reported as parked with its attempts, as retried, and as digested."""
    model = ScriptedModel()
    model.always["segment"] = BadReply("nonsense")
    async with caller_in(tmp_path, model, language={"park_after_attempts": 2, "max_bad_replies": 1}) as call:
        await tell(call.service, "ann", "I moved to Lisbon in May.")
        await eventually_parked(call.service)
        model.always.clear()
        await call("POST", "/v1/agents/ann/batches/b1/retry")
        await settle(call.service, "ann", passes=False)
        events = await told(call)
    assert kinds(events)[:2] == ["BatchParked", "BatchRetried"]
    assert (events[0]["batch_id"], events[0]["attempts"]) == ("b1", 2)
    assert "BatchDigested" in kinds(events)


async def eventually_parked(service: Service) -> None:
    """Wait until a batch of ann's is parked."""
    for _ in range(2000):
        async with service.fleet.using(AgentId("ann")) as agent:
            if (await agent.run(agent.workspace.counts)).parked_batches:
                return
        await asyncio.sleep(0.01)
    raise AssertionError("nothing was parked")


async def test_a_pass_reports_its_changes(tmp_path: Path, caller_in: CallerIn) -> None:
    """A pass reports each shortened memory, and once each forgotten memory and each broken link."""
    fading = {"decay_rate": 0.3, "link_break_threshold": 0.05, "long_term_factor": 0.0, "focus_limit": 1}
    async with caller_in(tmp_path, memory=fading) as call:
        for text in ("My sister Clara plays the cello in Porto every morning.", "Rex is a dog.", "It rains."):
            await tell(call.service, "ann", text)
            await settle(call.service, "ann")
        await call("POST", "/v1/agents/ann/compress", {"passes": 6})
        await settle(call.service, "ann")
        events = await told(call)
        living = {node["id"] for node in (await call("GET", "/v1/agents/ann/nodes")).json()["nodes"]}
    forgotten = [event["node_id"] for event in events if event["kind"] == "NodeForgotten"]
    created = {event["node_id"] for event in events if event["kind"] == "NodeCreated"}
    assert len(created) == 3 and sorted(created - living) == sorted(forgotten)
    assert forgotten
    shortened = [event for event in events if event["kind"] == "NodeCompressed"]
    assert all(e["length"] < e["length_before"] and e["pass_number"] for e in shortened)
    broken = {(e["node_id"], e["target_id"]) for e in events if e["kind"] == "LinkBroken"}
    assert broken
    assert all(event["pass_number"] for event in events if event["kind"] in ("LinkBroken", "NodeForgotten"))


async def test_a_stream_starts_after_any_number(tmp_path: Path, caller_in: CallerIn) -> None:
    """A stream starts after a given number; -1 is the end. Lower numbers and unused numbers are refused."""
    async with caller_in(tmp_path) as call:
        await tell(
            call.service, "ann", "Clara plays the cello.", "Bruno paints old boats.", "Dana bakes bread."
        )
        await settle(call.service, "ann")
        everything = await told(call)
        for after in range(len(everything) + 1):
            assert await told(call, after=after) == everything[after:]
        assert await told(call, after=-1) == []
        assert await call.refused("GET", EVENTS, params={"after": -2}) == "INVALID_VALUE"
        assert await call.refused("GET", EVENTS, params={"after": len(everything) + 1}) == "EVENTS_GONE"
        assert await call.refused("GET", "/v1/agents/nobody/events") == "AGENT_NOT_FOUND"


async def test_numbers_continue_after_a_restart(tmp_path: Path, caller_in: CallerIn) -> None:
    """After a restart, earlier events are the same, and new events follow them."""
    async with caller_in(tmp_path) as call:
        await tell(call.service, "ann", "Clara plays the cello.")
        await settle(call.service, "ann")
        before = await told(call)
    async with caller_in(tmp_path) as call:
        await tell(call.service, "ann", "Bruno paints old boats.")
        await settle(call.service, "ann")
        after = await told(call)
    assert after[: len(before)] == before
    assert [event["sequence"] for event in after] == list(range(1, len(after) + 1))


async def test_missing_events_are_an_error(tmp_path: Path, caller_in: CallerIn) -> None:
    """EVENTS_GONE names the first available event; without a number a stream begins with it."""
    async with caller_in(tmp_path, store={"events_keep": 100}) as call:
        for number in range(40):
            await tell(call.service, "ann", f"This is message {number}.")
        await settle(call.service, "ann")
        await call("POST", "/v1/agents/ann/compress", {"passes": 60})
        await settle(call.service, "ann")
        reply = await call("GET", EVENTS, params={"after": 0})
        assert reply.status_code == 410
        error = reply.json()["error"]
        first, last = (int(error["metadata"][f"{end}_sequence"]) for end in ("first", "last"))
        events = await told(call)
        assert error["reason"] == "EVENTS_GONE"
    assert [event["sequence"] for event in events] == list(range(first, last + 1))
    assert 100 <= len(events) < 200


async def gone_after(call: Any, number: int) -> dict[str, Any]:
    """Return the available events of an error that says that some are missing."""
    reply = await call("GET", EVENTS, params={"after": number, "follow": False})
    assert (reply.status_code, reason_of(reply)) == (410, "EVENTS_GONE"), reply.text
    metadata: dict[str, Any] = reply.json()["error"]["metadata"]
    return metadata


@pytest.mark.parametrize("form", ["backup", "export"])
async def test_numbers_never_come_back_with_an_agent(tmp_path: Path, caller_in: CallerIn, form: str) -> None:
    """After a restore of an older backup, every watcher gets an error with the number to continue from.

    This includes a watcher that had seen all events. The replaced agent may have been open or closed.
    """
    async with caller_in(tmp_path) as call:
        await tell(call.service, "ann", "Clara plays the cello.")
        await settle(call.service, "ann")
        content = await call.download(f"/v1/agents/ann/{form}")
        for begin in range(2):
            await tell(call.service, "ann", "Bruno paints old boats.", "Dana bakes bread.")
            await settle(call.service, "ann")
            before = [event["sequence"] for event in await told(call)]
            if begin:
                await call("POST", "/v1/agents/ann/close")
            assert (await call.upload("/v1/agents/ann/restore", content, replace=True)).json()["replaced"]
            for seen in (before[0] - 1, *before):
                there = await gone_after(call, seen)
            await tell(
                call.service, "ann", "Erik repairs clocks.", "Fiona grows roses.", "Greta writes songs."
            )
            await settle(call.service, "ann")
            assert await gone_after(call, before[-1])
            events = await told(call, after=int(there["last_sequence"]))
            numbers = [event["sequence"] for event in events]
            assert numbers == list(range(int(there["first_sequence"]), numbers[-1] + 1))
            assert numbers[0] > before[-1] + 1 and numbers[-1] < 2**53
            assert await told(call) == events, "nothing of before comes along"


async def test_numbers_continue_after_the_clock_was_set_back(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers grow with each replacement, also after the clock was set back."""
    async with caller_in(tmp_path) as call:
        await tell(call.service, "ann", "Clara plays the cello.")
        await settle(call.service, "ann")
        content = await call.download("/v1/agents/ann/backup")
        last = 0
        for now_ms in (2_000_000_000_000, 1_000_000_000_000):
            monkeypatch.setattr(call.service, "clock", Standing(now_ms))
            assert (await call.upload("/v1/agents/ann/restore", content, replace=True)).status_code == 200
            await tell(call.service, "ann", "Bruno paints old boats.")
            await settle(call.service, "ann")
            numbers = [event["sequence"] for event in await told(call)]
            assert numbers[0] > last + 1
            last = numbers[-1]


class Standing(SystemClock):
    """A clock that does not move."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms


async def test_numbers_continue_when_an_agent_is_created_again(tmp_path: Path, caller_in: CallerIn) -> None:
    """An agent created again continues the numbers, whether by a message, PUT or a file, also after a restart."""
    async with caller_in(tmp_path) as call:
        await tell(call.service, "ann", "Clara plays the cello.", "Bruno paints old boats.")
        await settle(call.service, "ann")
        content = await call.download("/v1/agents/ann/backup")
    seen = 0
    for how in ("message", "put", "message", "file"):
        async with caller_in(tmp_path) as call:
            seen = [event["sequence"] for event in await told(call)][-1]
            await call("DELETE", "/v1/agents/ann")
            if how == "put":
                await call("PUT", "/v1/agents/ann", {"decay_rate": 0.9})
            elif how == "file":
                await call.upload("/v1/agents/ann/restore", content)
            await tell(call.service, "ann", "Dana bakes bread.")
            await settle(call.service, "ann")
            there = await gone_after(call, seen)
            numbers = [event["sequence"] for event in await told(call)]
            assert numbers[0] == int(there["first_sequence"]) > seen + 1
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_streams_are_bounded(tmp_path: Path, caller_in: CallerIn) -> None:
    """TOO_MANY_STREAMS above `limits.max_event_streams`; a stream that ends frees its place."""
    async with caller_in(tmp_path, limits={"max_event_streams": 1}) as call:
        await tell(call.service, "ann", "Clara plays the cello.")
        stream = await verb.watch_events(call.service, verb.WatchEventsRequest(agent_id="ann"))
        assert await call.refused("GET", EVENTS) == "TOO_MANY_STREAMS"
        stream.close()
        stream.close()
        assert await told(call) is not None
        assert await call.refused("GET", EVENTS, params={"after": 99}) == "EVENTS_GONE"
        assert call.service.fleet.event_streams.count == 0


async def test_one_key_gets_half_of_the_places(tmp_path: Path, caller_in: CallerIn) -> None:
    """One key gets at most half of the streams; the error says which limit applies, and other keys are admitted."""
    first, second = new_key(tmp_path, "read"), new_key(tmp_path, "read")
    async with caller_in(tmp_path, access=KEYS_ON, limits={"max_event_streams": 5}) as call:
        await tell(call.service, "ann", "Clara plays the cello.")
        event_streams = call.service.fleet.event_streams
        held = [event_streams.admit(AgentId("ann"), id_of(first)) for _ in range(2)]

        async def answered(key: str) -> tuple[int, Any]:
            call.show(key)
            reply = await call("GET", EVENTS, params={"follow": False})
            return reply.status_code, reply.json()["error"] if reply.status_code != 200 else None

        status, error = await answered(first)
        assert (status, error["reason"]) == (429, "TOO_MANY_STREAMS")
        assert (error["metadata"]["limit"], error["metadata"]["most"]) == ("key", "2")
        assert "key" in error["message"]
        assert (await answered(second))[0] == 200
        others = [event_streams.admit(AgentId("ann"), name) for name in ("a", "b", "c")]
        status, error = await answered(second)
        assert (status, error["metadata"]["limit"]) == (429, "daemon")
        for subscription in (*held, *others):
            subscription.end()
        assert (await answered(first))[0] == 200
        assert event_streams.count == 0


# --- as it happens -----------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def followed_over_rest(
    service: Service, after: int | None = None, key: str | None = None
) -> AsyncIterator[AsyncIterator[Any]]:
    """Yield the events of ann as they arrive, over a socket."""
    async with served(service) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        params = {} if after is None else {"after": after}
        async with client.stream("GET", EVENTS, params=params, headers=bearer(key)) as response:
            assert response.status_code == 200

            async def events() -> AsyncIterator[Any]:
                block = ""
                async for line in response.aiter_lines():
                    block += line + "\n"
                    if not line:
                        for frame in frames(block):
                            yield frame["data"]
                        block = ""

            yield events()


@contextlib.asynccontextmanager
async def followed_over_grpc(
    service: Service, after: int | None = None, key: str | None = None
) -> AsyncIterator[AsyncIterator[Any]]:
    """Yield the events of ann as they arrive, over gRPC."""
    async with grpc_served(service) as server, grpc.aio.insecure_channel(server.target) as channel:
        call = channel.unary_stream(
            f"/{SERVICE.full_name}/WatchEvents",
            request_serializer=events_pb2.WatchEventsRequest.SerializeToString,
            response_deserializer=events_pb2.WatchEventsResponse.FromString,
        )(events_pb2.WatchEventsRequest(agent_id="ann", after=after), metadata=(*bearer(key).items(),))

        async def events() -> AsyncIterator[Any]:
            async for message in call:
                yield as_json(message)

        yield events()
        call.cancel()


FOLLOWED = {"rest": followed_over_rest, "grpc": followed_over_grpc}


async def up_to(events: AsyncIterator[Any], kind: str) -> list[Any]:
    """Return the events up to the first of a kind."""
    found = []
    async with asyncio.timeout(20):
        async for event in events:
            found.append(event)
            if event["kind"] == kind:
                return found
    raise AssertionError(f"the stream ended without {kind}: {found}")


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_a_follower_gets_events_as_they_happen(tmp_path: Path, transport: str) -> None:
    """A follower gets the existing events, then new ones, without a gap; a disconnect frees its place."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service) as events:
            first = await up_to(events, "PassCompleted")
            await tell(service, "ann", "Bruno paints old boats.")
            second = await up_to(events, "PassCompleted")
            assert service.fleet.event_streams.count == 1
        await eventually(lambda: service.fleet.event_streams.count == 0)
    numbers = [event["sequence"] for event in first + second]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "BatchDigested" in kinds(second)


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_a_follower_holds_no_agent_open(tmp_path: Path, transport: str) -> None:
    """A watched agent is closed when idle and stays closed. Its events arrive when it is open again."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service) as events:
            await up_to(events, "PassCompleted")
            await eventually(lambda: all(agent.is_idle for agent in service.fleet.open_agents))
            await service.fleet.close(AgentId("ann"))
            await asyncio.sleep(0.5)
            assert service.fleet.open_agents == []
            await tell(service, "ann", "Bruno paints old boats.")
            assert kinds(await up_to(events, "PassCompleted"))[0] == "NodeCreated"


async def end_of(events: AsyncIterator[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the remaining events of a stream and its final error, in REST form."""
    found: list[Any] = []
    try:
        async with asyncio.timeout(10):
            async for event in events:
                if "error" in event:
                    return found, event["error"]
                found.append(event)
    except grpc.aio.AioRpcError as error:
        return found, status_as_error(error)
    raise AssertionError(f"the stream ended without a reason: {found}")


def status_as_error(error: grpc.aio.AioRpcError) -> dict[str, Any]:
    """Return the error that ended a call."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type]
    assert status is not None, error
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    told = {"reason": info.reason, "status": error.code().name, "message": status.message}
    return {**told, "metadata": dict(info.metadata)}


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_a_move_to_another_node_ends_a_stream(tmp_path: Path, transport: str) -> None:
    """The old owner gets no more events, so the client must connect again, to the new one."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service) as events:
            await up_to(events, "PassCompleted")
            service.fleet.data.replication = cast(Any, GoneFrom())
            try:
                rest, error = await end_of(events)
            finally:
                service.fleet.data.replication = None
            assert (rest, error["reason"], error["status"]) == ([], "AGENT_MOVING", "UNAVAILABLE")


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_a_stop_ends_a_stream(tmp_path: Path, transport: str) -> None:
    """A stream ends at once with SHUTTING_DOWN when the daemon begins to stop."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service) as events:
            await up_to(events, "PassCompleted")
            service.is_accepting = False
            service.fleet.wake_waiters()
            rest, error = await end_of(events)
            assert (rest, error["reason"], error["status"]) == ([], "SHUTTING_DOWN", "UNAVAILABLE")
            assert "stopping" in error["message"]
        service.is_accepting = True


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_a_stop_ends_a_stream_that_reads_events(tmp_path: Path, transport: str) -> None:
    """A stop during the collection of new events ends the stream at once, not at the next keep-alive."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service) as events:
            await up_to(events, "PassCompleted")
            service.fleet.event_streams.notify(AgentId("ann"))
            await asyncio.sleep(verb.GATHERING_S / 4)
            service.is_accepting = False
            service.fleet.wake_waiters()
            assert (await end_of(events))[1]["reason"] == "SHUTTING_DOWN"
        service.is_accepting = True


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_a_stop_ends_a_stream_whose_agent_is_busy(
    tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that waits for a busy agent ends at once when the daemon stops."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service) as events:
            await up_to(events, "PassCompleted")
            asked = asyncio.Event()

            async def refusing(*_: Any) -> Any:
                asked.set()
                raise Unavailable("closing", reason="AGENT_CLOSING", retry_after_s=60.0)

            with monkeypatch.context() as closing:
                closing.setattr(Agent, "run", refusing)
                service.fleet.event_streams.notify(AgentId("ann"))
                await asked.wait()
                service.is_accepting = False
                service.fleet.wake_waiters()
                assert (await end_of(events))[1]["reason"] == "SHUTTING_DOWN"
        service.is_accepting = True


def changed(path: Path, key: str, **fields: Any) -> None:
    """Change the record of a key in the key file."""
    KeyFile(path).change(
        lambda known: (
            [msgspec.structs.replace(k, **fields) if k.id == id_of(key) else k for k in known],
            None,
        )
    )


LESS: dict[str, tuple[dict[str, Any], str, str]] = {
    "revoked": ({"revoked_at_ms": 1}, "INVALID_KEY", "UNAUTHENTICATED"),
    "expired": ({"expires_at_ms": 1}, "INVALID_KEY", "UNAUTHENTICATED"),
    "another scope": ({"scopes": ("write",)}, "SCOPE_MISSING", "PERMISSION_DENIED"),
    "another agent": ({"all_agents": False, "agents": ("bob",)}, "KEY_NOT_FOR_AGENT", "PERMISSION_DENIED"),
}
"""Changes of a key while its stream is open, and how each ends the stream."""


@pytest.mark.parametrize("transport", FOLLOWED)
@pytest.mark.parametrize("change", LESS)
async def test_a_stream_ends_when_its_key_no_longer_allows_it(
    tmp_path: Path, transport: str, change: str
) -> None:
    """An idle stream ends soon after its key loses access, with the error of a request, and sends no more events.

    A stream with another key continues.
    """
    fields, reason, status = LESS[change]
    first, second = new_key(tmp_path, "read"), new_key(tmp_path, "read")
    async with service_in(tmp_path, access=KEYS_ON) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        follow = FOLLOWED[transport]
        async with follow(service, key=first) as ending, follow(service, key=second) as lasting:
            await up_to(ending, "PassCompleted")
            await up_to(lasting, "PassCompleted")
            changed(tmp_path, first, **fields)
            rest, error = await end_of(ending)
            assert (rest, error["reason"], error["status"]) == ([], reason, status)
            assert "key" in error["message"]
            await tell(service, "ann", "Bruno paints old boats.")
            await up_to(lasting, "PassCompleted")
            await eventually(lambda: service.fleet.event_streams.count == 1)


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_a_stream_ends_when_its_key_expires(tmp_path: Path, transport: str) -> None:
    """A stream ends when its key expires, without any change of the key file."""
    hour_ms = 3_600_000
    key = new_key(tmp_path, "read", expires_at_ms=SystemClock().now_ms() + hour_ms)

    class Tomorrow(SystemClock):
        def now_ms(self) -> int:
            return super().now_ms() + 24 * hour_ms

    async with service_in(tmp_path, access=KEYS_ON) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service, key=key) as events:
            await up_to(events, "PassCompleted")
            service.authentication._clock = Tomorrow()
            rest, error = await end_of(events)
            assert (rest, error["reason"]) == ([], "INVALID_KEY")
            assert "expired" in error["message"]


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_no_event_is_sent_after_the_key_was_revoked(tmp_path: Path, transport: str) -> None:
    """A stream checks its key before it sends a new event."""
    key = new_key(tmp_path, "read")
    async with service_in(tmp_path, access=KEYS_ON) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service, key=key) as events:
            await up_to(events, "PassCompleted")
            keyring: Any = service.authentication._keyring
            changed(tmp_path, key, revoked_at_ms=1)
            keyring.load()
            await tell(service, "ann", "Bruno paints old boats.")
            rest, error = await end_of(events)
            assert (rest, error["reason"]) == ([], "INVALID_KEY")


@pytest.mark.parametrize("transport", FOLLOWED)
async def test_a_stream_whose_agent_is_replaced_ends_at_once(tmp_path: Path, transport: str) -> None:
    """The stream ends with EVENTS_GONE, even if the new agent has no event."""
    async with service_in(tmp_path) as service, rest_in(tmp_path / "elsewhere") as call:
        await tell(call.service, "ann", "Clara plays the cello.")
        await settle(call.service, "ann")
        content = await call.download("/v1/agents/ann/backup")
        await tell(service, "ann", "Clara plays the cello.", "Bruno paints old boats.")
        await settle(service, "ann")
        async with FOLLOWED[transport](service) as events:
            await up_to(events, "PassCompleted")

            async def pieces() -> AsyncIterator[bytes]:
                yield content

            await restore_agent(service, RestoreAgentRequest(agent_id="ann", replace=True), pieces())
            rest, error = await end_of(events)
            assert (rest, error["reason"]) == ([], "EVENTS_GONE")


async def test_a_stream_whose_agent_is_erased_ends_with_the_reason(tmp_path: Path) -> None:
    """Over REST the last event is StreamEnded with the body of an error."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with followed_over_rest(service, after=-1) as events:
            await service.fleet.delete_agent(AgentId("ann"))
            async with asyncio.timeout(10):
                last = [event async for event in events]
    assert [event["error"]["reason"] for event in last] == ["AGENT_NOT_FOUND"]


async def test_a_reader_that_falls_behind_gets_an_error(tmp_path: Path) -> None:
    """If the next event of a stream was dropped meanwhile, the stream ends with EVENTS_GONE."""
    async with service_in(tmp_path, store={"events_keep": 100}) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        stream = await verb.watch_events(service, verb.WatchEventsRequest(agent_id="ann", after=0))
        pages = stream.pages()
        assert (await anext(pages))[0].sequence == 1
        for number in range(80):
            await tell(service, "ann", f"This is message {number}.")
        await settle(service, "ann")
        with pytest.raises(verb.NotFound) as caught:
            async with asyncio.timeout(20):
                await anext(pages)
        assert caught.value.reason == "EVENTS_GONE"
        stream.close()


async def test_a_busy_agent_only_delays_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an agent is closing while a page is read, the page is read again and no event is lost."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        stream = await verb.watch_events(service, verb.WatchEventsRequest(agent_id="ann", after=-1))
        run, refusals = Agent.run, [1, 1]

        async def refusing(self: Agent, job: Any) -> Any:
            if refusals:
                refusals.pop()
                raise Unavailable("closing", reason="AGENT_CLOSING", retry_after_s=0.01)
            return await run(self, job)

        await tell(service, "ann", "Bruno paints old boats.")
        await settle(service, "ann")
        monkeypatch.setattr(Agent, "run", refusing)
        async with asyncio.timeout(10):
            page = await anext(stream.pages())
        assert page[0].kind == "NodeCreated"
        assert refusals == []
        stream.close()


async def test_signs_of_life_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without events an empty page is sent, over REST as a comment; the agent is not opened for it."""
    monkeypatch.setattr(verb, "HEARTBEAT_S", 0.05)
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        async with (
            served(service) as url,
            httpx.AsyncClient(base_url=url, timeout=30) as client,
            client.stream("GET", EVENTS, params={"after": -1}) as response,
        ):
            await service.fleet.close(AgentId("ann"))
            lines = response.aiter_lines()
            assert [await anext(lines) for _ in range(4)] == [": still here", "", ": still here", ""]
            assert service.fleet.open_agents == []


async def test_a_reconnecting_browser_misses_nothing(tmp_path: Path) -> None:
    """`Last-Event-ID` takes precedence over `after`; one that is no number is refused."""
    async with rest_in(tmp_path) as call:
        await tell(call.service, "ann", "Clara plays the cello.")
        await settle(call.service, "ann")
        everything = await told(call)
        reply = await call(
            "GET", EVENTS, params={"follow": False, "after": 0}, headers={"Last-Event-ID": "2"}
        )
        assert [frame["data"] for frame in frames(reply.text)] == everything[2:]
        assert await call.refused("GET", EVENTS, headers={"Last-Event-ID": "two"}) == "INVALID_VALUE"


# --- the Python client -------------------------------------------------------------------------------------


async def test_the_python_client_follows_across_connections(tmp_path: Path) -> None:
    """The client returns events as values, continues after a lost connection, and raises its own errors."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "Clara plays the cello.")
        await settle(service, "ann")
        lost: list[str] = []
        app = create_app(service)

        class Breaking(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                lost.append(str(request.url.params.get("after")))
                response = await httpx.ASGITransport(app).handle_async_request(request)
                body = await response.aread()
                if len(lost) > 1:
                    return httpx.Response(response.status_code, content=body)
                first_two = b"\n\n".join(body.split(b"\n\n")[:2]) + b"\n\n"

                async def broken() -> AsyncIterator[bytes]:
                    yield first_two
                    raise httpx.ReadError("scripted")

                return httpx.Response(200, content=broken())

        retries = Retries(first_pause_s=0.001)
        async with AsyncClient(transport=Breaking(), retries=retries) as memory:
            events = [event async for event in memory.watch_events("ann", follow=False)]
            with pytest.raises(NotFound) as caught:
                _ = [event async for event in memory.watch_events("ann", after=99)]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert lost[:2] == ["None", "2"]
    assert events[0].kind == "NodeCreated" and events[0].node_id == "n1"
    assert (caught.value.reason, caught.value.metadata["first_sequence"]) == ("EVENTS_GONE", "1")
