"""Behaviour of gRPC alone: malformed messages, deadlines, health, reflection, and streams at a stop."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.timestamp_pb2 import Timestamp
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.rpc import server as rpc_server
from ebbtide.rpc.problems import MAX_STATUS_BYTES, status_of
from ebbtide.rpc.server import GrpcServer
from ebbtide.v1 import agents_pb2, batches_pb2, daemon_pb2, memory_service_pb2_grpc, recall_pb2, remember_pb2
from tests.contract.test_verbs import AGENT, HELLO, settled
from tests.support.callers import RestCaller, grpc_in, grpc_served
from tests.support.in_process import service_in, settings_for
from tests.support.process import ROOT, Daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import Stopwatch, eventually

Code = grpc.StatusCode
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
REMEMBER = "/ebbtide.v1.MemoryService/Remember"


def stub_on(channel: Any) -> Any:
    """Return the generated stub, as a client would use it."""
    return memory_service_pb2_grpc.MemoryServiceStub(channel)


def hello(**fields: Any) -> remember_pb2.RememberRequest:
    """Return a request to remember one message."""
    message = remember_pb2.Message(role=remember_pb2.ROLE_USER, content="The kettle is blue.")
    return remember_pb2.RememberRequest(**{"agent_id": "ann", "messages": [message], **fields})


async def reason(call: Any, error: grpc.aio.AioRpcError) -> str:
    """Return the reason from the details of an error."""
    found: str = call._refusal(error).json()["error"]["reason"]
    return found


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"\xff", b"\x0a\x02\xff\xfe", b"\x12\x05ab", b"\x0a\x7f"])
async def test_invalid_bytes_are_refused(tmp_path: Path, body: bytes) -> None:
    """Bytes that are not a message, or a text that is not UTF-8, are INVALID_JSON, not an internal error."""
    async with grpc_in(tmp_path) as call:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.channel.unary_unary(REMEMBER)(body)
        assert caught.value.code() is Code.INVALID_ARGUMENT
        assert await reason(call, caught.value) == "INVALID_JSON"


async def test_absent_fields_are_empty_or_refused(tmp_path: Path) -> None:
    """No messages are EMPTY_MESSAGES, no agent id is an invalid one; a message without role or content is refused."""
    async with grpc_in(tmp_path) as call:
        stub = stub_on(call.channel)
        for request, expected in (
            (hello(messages=[]), "EMPTY_MESSAGES"),
            (hello(agent_id=""), "INVALID_AGENT_ID"),
            (hello(messages=[remember_pb2.Message(content="x")]), "MISSING_FIELD"),
            (hello(messages=[remember_pb2.Message(role=remember_pb2.ROLE_USER)]), "MISSING_FIELD"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Remember(request)
            assert await reason(call, caught.value) == expected
        bare = remember_pb2.Message(role=remember_pb2.ROLE_USER, content="")
        assert (await stub.Remember(hello(messages=[bare]))).batch_id == "b1"


async def test_an_unspecified_enum_counts_as_unset(tmp_path: Path) -> None:
    """An optional enum that a client sets to UNSPECIFIED, as some generated clients do, has the default."""
    async with grpc_in(tmp_path) as call:
        request = batches_pb2.ListBatchesRequest(agent_id="ann", state=batches_pb2.BATCH_STATE_UNSPECIFIED)
        assert request.HasField("state")
        await stub_on(call.channel).Remember(hello())
        assert len((await stub_on(call.channel).ListBatches(request)).batches) == 1


async def test_fields_of_another_schema_are_refused(tmp_path: Path) -> None:
    """A field number that the schema does not have is UNKNOWN_FIELD, with its place and number, at any depth."""
    async with grpc_in(tmp_path) as call:
        request = hello()
        request.messages[0].MergeFromString(b"\xb8\x3e\x01")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub_on(call.channel).Remember(request)
        assert caught.value.details().startswith("messages[0].999: no such field in Message")
        assert await reason(call, caught.value) == "UNKNOWN_FIELD"


async def test_times_are_read_in_whole_milliseconds(tmp_path: Path) -> None:
    """Fractions of a millisecond are truncated, also before 1970; a Timestamp out of its range is refused."""
    async with grpc_in(tmp_path) as call:
        stub = stub_on(call.channel)
        for seconds, nanos in ((5, 1_999_999), (-1, 999_999_999)):
            message = remember_pb2.Message(
                role=remember_pb2.ROLE_USER,
                content=f"The kettle number {seconds} whistles loudly.",
                timestamp=Timestamp(seconds=seconds, nanos=nanos),
            )
            await stub.Remember(hello(messages=[message]))
        await stub.Flush(batches_pb2.FlushRequest(agent_id="ann"))
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert [node["sources"][0]["timestamp"] for node in nodes] == [5001, -1]
        for nanos in (-1, 10**9):
            message = remember_pb2.Message(
                role=remember_pb2.ROLE_USER, content="x", timestamp=Timestamp(seconds=1, nanos=nanos)
            )
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Remember(hello(messages=[message]))
            assert await reason(call, caught.value) == "INVALID_VALUE"


async def test_a_batch_is_the_same_over_both_transports(tmp_path: Path) -> None:
    """The same idempotency key and body over gRPC and over REST are one batch, including metadata."""
    body = {
        **HELLO,
        "conversation_id": "c1",
        "idempotency_key": "k1",
        "metadata": {"n": 1, "x": 1.5, "ok": True, "none": None, "list": [1, {"a": "b"}], "空": "y"},
    }
    async with grpc_in(tmp_path) as call:
        rest = RestCaller(call.service)
        for caller in (call, rest, call):
            response = await caller("POST", f"{AGENT}/remember", body)
            assert (response.status_code, response.json()["batch_id"]) == (202, "b1")
        await settled(call)
        for path in ("", "/nodes", "/links", "/focus", "/batches", "/nodes/n1", "/batches/b1"):
            over_grpc, over_rest = await call("GET", AGENT + path), await rest("GET", AGENT + path)
            assert over_grpc.json() == over_rest.json(), path


async def test_metadata_holds_what_json_can_hold(tmp_path: Path) -> None:
    """NaN is refused with its place."""
    async with grpc_in(tmp_path) as call:
        request = hello()
        request.metadata.update({"a": {"b": [1, float("nan")]}})
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub_on(call.channel).Remember(request)
        assert "metadata.a.b[1]" in caught.value.details()
        assert await reason(call, caught.value) == "INVALID_VALUE"


async def test_a_parameter_is_changed_or_reset_not_both(tmp_path: Path) -> None:
    """`reset` names the parameters to reset; one that is also set is refused."""
    async with grpc_in(tmp_path) as call:
        stub = stub_on(call.channel)
        opened = await stub.OpenAgent(
            agents_pb2.OpenAgentRequest(
                agent_id="ann", parameters=agents_pb2.AgentParameters(locale=agents_pb2.LOCALE_ZH)
            )
        )
        assert (opened.created, opened.parameters.locale) == (True, agents_pb2.LOCALE_ZH)
        changed = agents_pb2.UpdateAgentRequest(agent_id="ann", reset=["locale"])
        assert (await stub.UpdateAgent(changed)).parameters.locale == agents_pb2.LOCALE_AUTO
        changed.parameters.locale = agents_pb2.LOCALE_EN
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.UpdateAgent(changed)
        assert await reason(call, caught.value) == "INVALID_VALUE"


async def test_a_message_over_the_limit_is_refused_by_grpc_itself(tmp_path: Path) -> None:
    """A message above `limits.max_body_bytes` is RESOURCE_EXHAUSTED, compressed or not, and nothing is stored."""
    async with grpc_in(tmp_path, limits={"max_body_bytes": 4096}) as call:
        stub = stub_on(call.channel)
        big = hello(messages=[remember_pb2.Message(role=remember_pb2.ROLE_USER, content="x" * 5000)])
        for compression in (None, grpc.Compression.Gzip):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Remember(big, compression=compression)
            assert caught.value.code() is Code.RESOURCE_EXHAUSTED
        assert (await call("GET", "/v1/agents")).json()["agents"] == []
        assert (await stub.Remember(hello(), compression=grpc.Compression.Gzip)).batch_id == "b1"


# --- what is answered ----------------------------------------------------------------------------------


async def test_unknown_calls_are_reported(tmp_path: Path) -> None:
    """Unknown services and methods of any kind are ROUTE_NOT_FOUND as UNIMPLEMENTED."""
    async with grpc_in(tmp_path) as call:
        for path in ("/ebbtide.v1.MemoryService/Forget", "/ebbtide.v2.MemoryService/Recall", "/x/y"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.channel.unary_unary(path)(b"")
            assert caught.value.code() is Code.UNIMPLEMENTED
            assert await reason(call, caught.value) == "ROUTE_NOT_FOUND"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.channel.stream_stream("/x/y")().read()
        assert caught.value.code() is Code.UNIMPLEMENTED


async def test_request_ids_are_returned_or_created(tmp_path: Path) -> None:
    """A valid `x-request-id` is returned, also with an error; any other is replaced."""
    async with grpc_in(tmp_path) as call:
        stub = stub_on(call.channel)
        for given, is_kept in (("abc-1", True), ("a b", False), ("", False), ("a" * 129, False)):
            calling = stub.Remember(hello(), metadata=(("x-request-id", given),))
            await calling
            back = dict(await calling.trailing_metadata())["x-request-id"]
            assert (back == given) is is_kept
            assert back
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Recall(
                recall_pb2.RecallRequest(agent_id="ann", depth=9), metadata=(("x-request-id", "r9"),)
            )
        assert dict(caught.value.trailing_metadata())["x-request-id"] == "r9"


def test_details_fit_into_what_clients_take() -> None:
    """With any number of violations, the details stay below the metadata limit of clients and contain the reason."""
    violations = [FieldViolation("字" * 80, "错" * 200) for _ in range(10)]
    status = status_of(InvalidRequest("字" * 300, violations=violations))
    assert status.ByteSize() <= MAX_STATUS_BYTES
    assert len(status.details) == 2
    assert status_of(InvalidRequest("x", violations=violations[:1])).details[1].ByteSize() > 0


# --- deadlines and callers that go away ----------------------------------------------------------------


async def test_a_call_whose_deadline_passes_before_its_turn_is_not_run(tmp_path: Path) -> None:
    """DEADLINE_EXCEEDED removes the job from the mailbox and stores nothing; the next call is served."""
    async with grpc_in(tmp_path) as call:
        await settled(call)
        agent, gate = call.service.fleet.open_agents[0], threading.Event()
        blocked = asyncio.create_task(agent.run(lambda: gate.wait(20)))
        try:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub_on(call.channel).Remember(hello(), timeout=0.2)
            assert caught.value.code() is Code.DEADLINE_EXCEEDED
            await eventually(lambda: agent.users == 0)
        finally:
            gate.set()
        await blocked
        assert (await call("GET", AGENT)).json()["counts"]["messages"] == 1


async def test_a_call_that_is_cancelled_before_its_turn_is_not_run(tmp_path: Path) -> None:
    """A cancelled call or a closed connection cancels its job."""
    async with grpc_in(tmp_path) as call:
        await settled(call)
        agent, gate = call.service.fleet.open_agents[0], threading.Event()
        blocked = asyncio.create_task(agent.run(lambda: gate.wait(20)))
        await asyncio.sleep(0.02)
        try:
            calling = stub_on(call.channel).Remember(hello())
            await eventually(lambda: agent.users == 1 and agent.mailbox.waiting_count >= 1)
            calling.cancel()
            await eventually(lambda: agent.users == 0)
        finally:
            gate.set()
        await blocked
        assert (await call("GET", AGENT)).json()["counts"]["messages"] == 1


async def test_a_call_that_arrives_too_late_is_not_run(tmp_path: Path) -> None:
    """If a deadline passes while the daemon is blocked, the request is not executed later."""
    async with grpc_in(tmp_path) as call, grpc_served(call.service) as server:

        def ask_in_vain() -> grpc.StatusCode:
            with grpc.insecure_channel(server.target) as channel:
                grpc.channel_ready_future(channel).result(10)
                ready.set()
                held.wait(10)
                try:
                    stub_on(channel).Remember(hello(), timeout=0.1)
                except grpc.RpcError as error:
                    code: grpc.StatusCode = error.code()  # type: ignore[attr-defined]
                    return code
            raise AssertionError("it was done")

        ready, held = threading.Event(), threading.Event()
        asking = asyncio.create_task(asyncio.to_thread(ask_in_vain))
        await eventually(ready.is_set)
        held.set()
        time.sleep(0.5)  # noqa: ASYNC251 - the loop is what is held up
        assert await asking is Code.DEADLINE_EXCEEDED
        await asyncio.sleep(0.1)
        assert (await call("GET", "/v1/agents")).json()["agents"] == []


async def test_a_waiting_call_ends_when_its_caller_disconnects(tmp_path: Path) -> None:
    """A waiting flush or recall releases its agent when the caller disconnects."""
    model = ScriptedModel()
    model.always["segment"] = 3600.0
    async with grpc_in(tmp_path, model) as call:
        await call("POST", f"{AGENT}/remember", HELLO)
        agent = call.service.fleet.open_agents[0]
        stub = stub_on(call.channel)
        for verb, request in (
            (stub.Flush, batches_pb2.FlushRequest(agent_id="ann", timeout_ms=60_000)),
            (stub.Recall, recall_pb2.RecallRequest(agent_id="ann", patience_ms=30_000)),
        ):
            calling = verb(request)
            await eventually(lambda: agent.users == 1)
            calling.cancel()
            await eventually(lambda: agent.users == 0, 2)


# --- health and reflection -----------------------------------------------------------------------------


async def test_health_follows_readiness(tmp_path: Path) -> None:
    """Ready and degraded are SERVING, an unavailable daemon is NOT_SERVING; unknown names are NOT_FOUND."""
    model = ScriptedModel()
    async with grpc_in(tmp_path, model) as call:
        stub = health_pb2_grpc.HealthStub(call.channel)
        for is_available in (True, False):
            model.available = is_available
            for name in ("", "ebbtide.v1.MemoryService"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Check(health_pb2.HealthCheckRequest(service="ebbtide.v9.Nothing"))
        assert caught.value.code() is Code.NOT_FOUND
        listed = await stub.List(health_pb2.HealthListRequest())
        assert {name: s.status for name, s in listed.statuses.items()} == {
            "": SERVING,
            "ebbtide.v1.MemoryService": SERVING,
        }
        call.service.is_accepting = False
        assert (await stub.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING


async def test_the_service_describes_itself(tmp_path: Path) -> None:
    """Reflection lists the services, and its files suffice to send a request without a stub."""

    def look(target: str) -> tuple[list[str], list[str]]:
        with grpc.insecure_channel(target) as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            service = DescriptorPool(database).FindServiceByName("ebbtide.v1.MemoryService")
            fields = service.FindMethodByName("Recall").input_type.fields
            return sorted(database.get_services()), [field.name for field in fields]

    async with service_in(tmp_path) as service, grpc_served(service) as server:
        services, fields = await asyncio.to_thread(look, server.target)
        assert services == [
            "ebbtide.v1.MemoryService",
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
        ]
        assert fields[:4] == ["agent_id", "keywords", "relations", "depth"] and "query" in fields


# --- start and stop ------------------------------------------------------------------------------------


async def test_open_streams_do_not_delay_a_stop(tmp_path: Path) -> None:
    """At a stop, a health watch gets NOT_SERVING and ends, and an idle reflection stream is closed at once."""
    async with service_in(tmp_path, server={"shutdown_grace_s": 30}) as service:
        async with grpc_served(service) as server:
            channel = grpc.aio.insecure_channel(server.target)
            watching = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            assert (await watching.read()).status == SERVING
            reflecting = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
            await reflecting.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            assert (await reflecting.read()).list_services_response.service
            watch = Stopwatch()
        assert watch.s < 15, "half of the grace"
        assert (await watching.read()).status == NOT_SERVING
        assert await watching.read() is grpc.aio.EOF
        await channel.close()


async def test_calls_in_progress_are_completed_at_a_stop(tmp_path: Path) -> None:
    """At a stop, received calls are completed and new ones are refused."""
    async with service_in(tmp_path) as service:
        gate = threading.Event()
        async with grpc_served(service) as server:
            channel = grpc.aio.insecure_channel(server.target)
            stub = stub_on(channel)
            await stub.Remember(hello())
            agent = service.fleet.open_agents[0]
            await stub.Flush(batches_pb2.FlushRequest(agent_id="ann", passes=True))
            await eventually(lambda: agent.mailbox.is_idle and agent.users == 0)
            blocked = asyncio.create_task(agent.run(lambda: gate.wait(20)))
            calling = asyncio.create_task(_finish(stub.Remember(hello())))
            await eventually(lambda: agent.users == 1 and agent.mailbox.waiting_count >= 1)
            server.stop()
            await asyncio.sleep(0.3)
            assert not calling.done()
            gate.set()
            assert (await calling).batch_id == "b2"
            await blocked
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Remember(hello(), timeout=5)
        assert caught.value.code() in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
        await channel.close()


async def _finish(call: Any) -> Any:
    return await call


async def test_a_port_in_use_is_detected_before_the_start(tmp_path: Path) -> None:
    """The error contains the operating system's message and names the gRPC port; the port is not shared."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use") as caught:
            GrpcServer(settings_for(tmp_path, server={"grpc_port": port}))
        assert (caught.value.errno, caught.value.filename) == (errno.EADDRINUSE, "grpc_port")
        command = [sys.executable, "-m", "ebbtide", "serve", "--data-dir", str(tmp_path / "data")]
        ports = ["--rest-port", "0", "--grpc-port", str(port)]
        done = await asyncio.to_thread(
            subprocess.run, [*command, *ports], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == ExitCode.PORT_TAKEN
        assert f"Port {port}" in done.stderr
        assert "--grpc-port" in done.stderr
        assert not (tmp_path / "data").exists()
    first = GrpcServer(settings_for(tmp_path, server={"grpc_port": 0}))
    with pytest.raises(OSError, match="in use"):
        GrpcServer(settings_for(tmp_path, server={"grpc_port": int(first.target.rpartition(":")[2])}))
    await first.release()


async def test_a_default_port_in_use_is_replaced(tmp_path: Path) -> None:
    """If the default port is in use and none was set, a free one is used: a second daemon starts."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = settings_for(tmp_path)
        fields = {**settings.server.model_dump(), "grpc_port": port}
        unset = type(settings.server).model_construct(_fields_set=set(), **fields)
        server = GrpcServer(settings.model_copy(update={"server": unset}))
        assert int(server.target.rpartition(":")[2]) != port
        await server.release()


CLIENT = """
import sys
import grpc
from google.protobuf.timestamp_pb2 import Timestamp
import ebbtide
from ebbtide.v1 import batches_pb2, memory_service_pb2_grpc, recall_pb2, remember_pb2

assert ebbtide.__file__.startswith(sys.argv[2]), ebbtide.__file__
with grpc.insecure_channel(sys.argv[1]) as channel:
    stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
    message = remember_pb2.Message(
        role=remember_pb2.ROLE_USER, content="I moved to Lisbon in May.", speaker="Ann", timestamp=Timestamp(seconds=9)
    )
    print(stub.Remember(remember_pb2.RememberRequest(agent_id="ann", messages=[message])).batch_id)
    print(stub.Flush(batches_pb2.FlushRequest(agent_id="ann", passes=True)).digested)
    print(stub.Recall(recall_pb2.RecallRequest(agent_id="ann", keywords=["lisbon"])).text)
"""


def test_generated_stubs_work_with_a_real_daemon(daemon: Daemon, tmp_path: Path) -> None:
    """A client with stubs generated from the schema remembers and recalls. The daemon then stops with code 0."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    schema = sorted(str(path) for path in (ROOT / "proto" / "ebbtide" / "v1").glob("*.proto"))
    outputs = [f"--python_out={stubs}", f"--grpc_python_out={stubs}"]
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}"]
    subprocess.run([*protoc, *outputs, *schema], check=True, timeout=60)
    for folder in (stubs / "ebbtide", stubs / "ebbtide" / "v1"):
        (folder / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, daemon.grpc_target, str(stubs)],
        env={**os.environ, "PYTHONPATH": str(stubs)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["b1", "True", "[Memory] Ann: I moved to Lisbon in May."]
    assert daemon.recall("ann", "lisbon") == "[Memory] Ann: I moved to Lisbon in May."
    with grpc.insecure_channel(daemon.grpc_target) as channel:
        watching = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert next(watching).status == SERVING
        watch = Stopwatch()
        assert daemon.stop() == 0
        assert watch.s < 10
        assert next(watching).status == NOT_SERVING


async def test_calls_beyond_the_bound_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of concurrent calls over all connections is limited; a refused call succeeds after another ends."""
    monkeypatch.setattr(rpc_server, "MAX_CALLS", 2)
    async with (
        service_in(tmp_path) as service,
        grpc_served(service) as server,
        grpc.aio.insecure_channel(server.target, options=(("grpc.use_local_subchannel_pool", 1),)) as others,
        grpc.aio.insecure_channel(server.target, options=(("grpc.use_local_subchannel_pool", 1),)) as channel,
    ):

        async def code() -> Code:
            try:
                await stub_on(channel).GetModel(daemon_pb2.GetModelRequest())
            except grpc.aio.AioRpcError as error:
                return error.code()
            return Code.OK

        assert await code() is Code.OK
        held = [stub_on(others).RestoreAgent() for _ in range(2)]
        async with asyncio.timeout(60):
            while await code() is not Code.RESOURCE_EXHAUSTED:
                # A call that arrived next to the one above was refused itself.
                held = [stub_on(others).RestoreAgent() if call.done() else call for call in held]
                await asyncio.sleep(0.01)
        for call in held:
            call.cancel()
        async with asyncio.timeout(60):
            while await code() is not Code.OK:
                pass
