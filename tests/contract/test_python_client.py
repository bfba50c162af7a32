"""The Python client against the daemon: every operation, every error family, safe retries, and the context window."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import inspect
import json
import os
import pickle
import re
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import httpx
import pytest

import ebbtide_client
from ebbtide.errors import FAMILIES, REASONS
from ebbtide.errors import EbbtideError as DaemonError
from ebbtide.rest.app import create_app
from ebbtide.rest.openapi import body_name, operations
from ebbtide.rest.problems import problem
from ebbtide_client import (
    AsyncClient,
    AsyncContextWindow,
    Client,
    ClientClosed,
    ConnectionFailed,
    ContextWindow,
    EbbtideError,
    Exhausted,
    InvalidRequest,
    Message,
    NotFound,
    Retries,
    UnexpectedAnswer,
    calls,
    errors,
    estimate_tokens,
    models,
)
from ebbtide_client.context_window import HEADING
from ebbtide_client.retries import Attempts
from ebbtide_client.window import SEPARATOR, Window
from ebbtide_client.wire import trust
from tests.contract.test_openapi import parts
from tests.support.in_process import service_in
from tests.support.openapi import openapi_document
from tests.support.process import Daemon
from tests.tidy import generate_client_models, generate_sync_client
from tests.tidy.pages import ROOT, marked_block, read

HOME = ROOT / "clients" / "python"
SAID = [{"role": "user", "speaker": "Ann", "content": "I moved to Lisbon in May."}]
SWIFT = Retries(first_pause_s=0.001)


@contextlib.asynccontextmanager
async def client_in(path: Path, **sections: dict[str, Any]) -> AsyncIterator[AsyncClient]:
    """Run a daemon without servers, with the async client."""
    async with service_in(path, **sections) as service:
        transport = httpx.ASGITransport(create_app(service))
        async with AsyncClient(transport=transport, retries=SWIFT) as client:
            yield client


class Script:
    """A transport with scripted responses, one per request; the last one repeats."""

    def __init__(self, *answers: httpx.Response | type[httpx.RequestError]) -> None:
        self.requests: list[httpx.Request] = []
        self._answers = list(answers)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, httpx.Response):
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        raise answer("scripted", request=request) if answer is not httpx.DecodingError else answer("scripted")

    @property
    def bodies(self) -> list[Any]:
        """Return the bodies that were sent."""
        return [json.loads(request.content) for request in self.requests]


def scripted(*answers: Any, **options: Any) -> tuple[Client, Script]:
    """Return a client on a script."""
    script = Script(*answers)
    options = {"retries": SWIFT, **options}
    return Client(transport=httpx.MockTransport(script), **options), script


async def test_a_memory_is_created_once(tmp_path: Path) -> None:
    """A created memory has the given fields; a repeated key returns it, also the one that the client makes."""
    link = {"target": "n1", "relation": "told by", "strength": 0.5}
    when = datetime(2026, 5, 1, 12, tzinfo=UTC)
    async with client_in(tmp_path) as memory:
        node = await memory.create_node(
            "bea", "Ann is allergic to nuts.", keywords=["Ann"], metadata={"a": 1}, timestamp=when
        )
        assert (node.id, node.keywords, node.sources[0].metadata) == ("n1", ("Ann",), {"a": 1})
        assert node.created_at == round(when.timestamp() * 1000)
        linked = await memory.create_node("bea", "She eats rice.", links=[link], idempotency_key="k")
        again = await memory.create_node("bea", "She eats rice.", links=[link], idempotency_key="k")
        assert linked.id == again.id and ("told by", 0.5) in {
            (one.relation, one.strength) for one in linked.links_out
        }
        assert (await memory.create_node("bea", "She eats rice.")).id != linked.id


async def test_attachments_are_sent_and_read(tmp_path: Path) -> None:
    """A dict with bytes and a model in base64 are the same attachment; a missing one is NotFound."""
    picture, region = b"\x89PNG\xff", {"page": 2, "caption": "A red lantern."}
    model = models.Attachment(
        mime="image/png",
        bytes=base64.b64encode(picture).decode(),
        caption="A lighthouse.",
        regions=[models.Region(page=2, caption="A red lantern.")],
    )
    mapping = {"mime": "image/png", "bytes": picture, "caption": "A lighthouse.", "regions": [region]}
    async with client_in(tmp_path) as memory:
        for attachments in ([model], [mapping]):
            await memory.remember("ann", {"role": "user", "content": "Look!", "attachments": attachments})
        await memory.remember("ann", Message(role="user", content="Look!", attachments=[model]))
        said = (await memory.list_messages("ann")).messages
        assert len({one.attachments for one in said}) == 1 == len(said[0].attachments)
        assert [await memory.get_attachment("ann", one.id, 0) for one in said] == [picture] * 3
        found = (await memory.search("ann", "Where is the lantern?")).memories[0].sources[0].attachment
        assert found is not None and found.region is not None and found.region.page == 2
        with pytest.raises(errors.NotFound) as caught:
            await memory.get_attachment("ann", "m1", 1)
        assert caught.value.reason == "ATTACHMENT_NOT_FOUND"
        with pytest.raises(TypeError):
            await memory.get_attachment("ann", "m1", "0")  # type: ignore[arg-type]


def refused(reason: str, retry_after_s: float | None = None) -> httpx.Response:
    """Return the daemon's own response for a reason."""
    family = FAMILIES[REASONS[reason].family]
    answer = problem(family("why", reason=reason, retry_after_s=retry_after_s))
    return httpx.Response(answer.status_code, headers=dict(answer.headers), content=bytes(answer.body))


ACCEPTED: dict[str, Any] = {
    "batch_id": "b1",
    "pending_batches": 1,
    "pii": {},
    "dropped_recalled": 0,
    "collapsed": 0,
}
DONE = httpx.Response(202, json=ACCEPTED)
RECALLED = httpx.Response(
    200,
    json={
        "text": "[Memory] x",
        "pending_batches": 0,
        "parked_batches": 0,
        "unembedded_messages": 0,
        "relations_unknown": [],
    },
)


# --- verbs -------------------------------------------------------------------------------------------


async def test_every_verb_works_on_a_daemon(tmp_path: Path) -> None:
    """Each method of the async client sends a request that the daemon accepts, and reads its response."""
    async with client_in(tmp_path) as memory:
        made = await memory.open_agent("ann", {"focus_limit": 2})
        assert made.is_new and made.agent.parameters.focus_limit == 2
        assert not (await memory.open_agent("ann")).is_new
        assert (await memory.update_agent("ann", {"decay_rate": 0.9})).parameters.decay_rate == 0.9
        said = [*SAID, Message(role="assistant", content="Lisbon is fine.", id="m2", timestamp=5)]
        done = await memory.remember("ann", said, conversation_id="c1", metadata={"a": [1]})
        assert done.batch_id == "b1"
        flushed = await memory.flush("ann", passes=True)
        assert flushed.digested and flushed.passes_done
        recalled = await memory.recall("ann", ["lisbon"], depth=2, max_results=5, patience_ms=100)
        assert "I moved to Lisbon in May." in recalled.text
        batch = await memory.get_batch("ann", "b1")
        assert (batch.state, batch.message_count, batch.conversation_id) == ("digested", 2, "c1")
        assert (await memory.list_batches("ann", state="digested")).batches == (batch,)
        with pytest.raises(errors.Precondition):
            await memory.retry_batch("ann", "b1")
        focus = await memory.get_focus("ann")
        node = await memory.get_node("ann", focus.nodes[0].id)
        assert node.links_in and node.sources[0].message_id == "m2" and node.sources[0].timestamp == 5
        assert len([n async for n in memory.every_node("ann", page_size=1)]) == 2
        assert [link async for link in memory.every_link("ann", page_size=1)]
        assert (await memory.list_nodes("ann")).next_page_token == ""
        assert len([n async for n in memory.every_node("ann", metadata={"a": 1}, kinds=["episode"])]) == 0
        said = [one async for one in memory.every_message("ann", page_size=1)]
        assert [one.message_id for one in said] == ["", "m2"] and said[1].content == "Lisbon is fine."
        assert (await memory.list_messages("ann", metadata={"b": True})).messages == ()
        assert (await memory.list_links("ann")).links
        assert (await memory.compress("ann", passes=2)).owed_passes >= 1
        assert (await memory.get_agent("ann")).counts.nodes == 2
        assert [a.agent_id async for a in memory.every_agent()] == ["ann"]
        assert (await memory.list_agents(page_size=1)).agents[0].agent_id == "ann"
        assert [b.batch_id async for b in memory.every_batch("ann", page_size=1)] == ["b1"]
        found = await memory.search("ann", "Where is Lisbon?", max_results=1, metadata={})
        assert "Lisbon" in found.memories[0].content and found.memories[0].score > 0
        corrected = await memory.update_node("ann", "n1", content="I moved to Porto.", keywords=["Porto"])
        assert (corrected.content, corrected.keywords) == ("I moved to Porto.", ("Porto",))
        assert (await memory.delete_node("ann", "n1")).node_id == "n1"
        gone = await memory.delete_nodes("ann", ["n1", "n2"])
        assert (gone.deleted_count, gone.results[0].reason) == (1, "NODE_NOT_FOUND")
        looked = await memory.forget_memories("ann", topic="Lisbon", time_range=(0, None), dry_run=True)
        assert looked.dry_run and not looked.compacted
        assert (await memory.forget_memories("ann", messages=["m1"])).counts.messages == 1
        assert [one.action async for one in memory.every_audit_record("ann", page_size=2)][-1] == "forgotten"
        assert (await memory.list_audit_records("ann", page_size=1)).records[0].action == "created"
        assert (await memory.verify_audit("ann")).intact
        assert (await memory.close_agent("ann")).closed
        assert (await memory.delete_agent("ann")).erased
        assert [one.agent_id async for one in memory.every_erased_agent(page_size=1)] == ["ann"]
        assert (await memory.list_erased_agents(agent_id="bob")).records == ()
        await memory.remember("bob", SAID)
        assert (await memory.delete_agent("bob")).record_number == 2
        asked = await memory.verify_erased_agents([SAID[0]["content"]], agent_id="bob")
        assert asked.intact and asked.texts == (models.TextVerdict(erased=True, record=2),)
        assert (await memory.get_health()).status == "ok"
        assert (await memory.get_readiness()).status == "ready"
        assert not (await memory.get_me()).keys_required
        assert (await memory.get_model()).tasks["segment"].calls >= 1
        assert (await memory.get_scheduler()).max_open_agents > 0
        assert "ebbtide_open_agents" in await memory.get_metrics()


def test_the_sync_client_speaks_to_a_real_daemon(daemon: Daemon) -> None:
    """Over real sockets, with Chinese ids and texts, pages and errors."""
    with Client(daemon.url) as memory:
        memory.remember("林月", [{"role": "user", "content": "我五月搬到了青岛，住在海边。"}])
        assert memory.flush("林月", timeout_ms=20_000).digested
        assert memory.recall("林月", ["青岛"]).text == "[记忆] 我五月搬到了青岛，住在海边。"
        assert [a.agent_id for a in memory.every_agent(page_size=1)] == ["林月"]
        with pytest.raises(NotFound) as caught:
            memory.get_agent("nobody")
        assert caught.value.reason == "AGENT_NOT_FOUND"
        assert caught.value.request_id
    with Client("http://127.0.0.1:1", retries=Retries(attempts=1)) as nobody:
        with pytest.raises(ConnectionFailed) as unmet:
            nobody.recall("ann")
        assert not unmet.value.maybe_sent


NOT_RPCS = {"get_health", "get_readiness", "get_metrics", "import_agent"}
"""Methods of the client without an RPC: REST only, and a restore that refuses backups."""


def builders() -> dict[str, Any]:
    """Yield every function that builds a call."""
    return {
        name: build
        for name, build in vars(calls).items()
        if inspect.isfunction(build) and build.__module__ == calls.__name__ and not name.startswith("_")
    }


def test_both_clients_have_every_operation() -> None:
    """Each RPC is a method of both clients under its name in snake case, with one signature and one docstring."""
    proto = read("proto/ebbtide/v1/memory_service.proto")
    names = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in re.findall(r"rpc (\w+)\(", proto)}
    assert builders().keys() == names | NOT_RPCS
    for name, build in builders().items():
        parameters = list(inspect.signature(build).parameters)
        for kind in (Client, AsyncClient):
            method = getattr(kind, name)
            assert list(inspect.signature(method).parameters) == ["self", *parameters]
            assert method.__doc__ == build.__doc__


def test_the_sync_client_is_generated_from_the_async_one() -> None:
    """The committed file equals the generator's output."""
    assert generate_sync_client.render() == generate_sync_client.FILE.read_text()


def test_the_models_are_generated_from_the_document() -> None:
    """The committed models are those of the OpenAPI document."""
    assert generate_client_models.render() == generate_client_models.FILE.read_text()


def test_methods_take_every_field_of_a_request() -> None:
    """Each field of a JSON body is a parameter of the method, and no other; enumerations are equal."""
    document = openapi_document()
    schemas = document["components"]["schemas"]
    count = 0
    for place, operation in operations(document):
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        name = re.sub(r"(?=[A-Z])", "_", operation["operationId"]).lower()
        if not body or name in ("open_agent", "update_agent"):
            continue
        count += 1
        properties = schemas[body_name(operation)]["properties"]
        hints = get_type_hints(builders()[name])
        in_path = set(re.findall(r"\{(\w+)\}", str(place)))
        parameters = [p for p in inspect.signature(builders()[name]).parameters if p not in in_path]
        assert sorted(parameters) == sorted(properties.keys() - in_path), name
        for field in properties.keys() & hints.keys():
            values = [v for part in get_args(hints[field]) for v in get_args(part)]
            allowed = [v for part in parts(properties[field]) for v in part.get("enum", [])]
            if get_origin(next(iter(get_args(hints[field])), None)) is Literal:
                assert values == allowed, (name, field)
    assert count >= 9


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("I love tea", [{"role": "user", "content": "I love tea"}]),
        ({"role": "assistant", "content": "x"}, [{"role": "assistant", "content": "x"}]),
        (Message(role="user", content="x", id="m1"), [{"role": "user", "content": "x", "id": "m1"}]),
        (
            ["a", Message(role="assistant", content="b")],
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        ),
        (({"role": "user", "content": t} for t in "ab"), [{"role": "user", "content": t} for t in "ab"]),
    ],
    ids=["text", "dict", "message", "list", "generator"],
)
def test_remember_takes_a_text_a_message_or_several(given: Any, sent: Any) -> None:
    """A string is a message of the user; a single message needs no list."""
    memory, script = scripted(DONE)
    memory.remember("ann", given)
    assert script.bodies[0]["messages"] == sent


def test_times_may_be_datetimes() -> None:
    """A datetime with a time zone is sent as ISO 8601; one without is refused."""
    memory, script = scripted(DONE)
    time = datetime(2026, 5, 1, 12, tzinfo=UTC)
    memory.remember("ann", {"role": "user", "content": "a", "timestamp": time})
    assert script.bodies[0]["messages"][0]["timestamp"] == "2026-05-01T12:00:00+00:00"
    with pytest.raises(TypeError, match="a datetime with a time zone"):
        memory.remember("ann", {"role": "user", "content": "a", "timestamp": time.replace(tzinfo=None)})


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda m: m.remember("ann", 7),
            "remember() takes messages as a string, a Message, a dict or a list of these",
        ),
        (lambda m: m.remember("ann", [3]), "not a list of int"),
        (lambda m: m.remember(7, "x"), "remember() takes agent_id as a string, not int"),
        (lambda m: m.recall("ann", "lisbon"), "recall() takes keywords as a list of strings, not a string"),
        (lambda m: m.recall("ann", depth="2"), "recall() takes depth as an integer or None, not a string"),
        (lambda m: m.recall("ann", time_range=5), "recall() takes time_range as a pair ("),
        (lambda m: m.search("ann", ["tea"]), "search() takes query as a string or None, not a list of str"),
        (lambda m: m.flush("ann", passes=1), "flush() takes passes as True or False, not int"),
        (
            lambda m: m.update_agent("ann", [1]),
            "update_agent() takes parameters as a dict, not a list of int",
        ),
        (
            lambda m: m.backup_agent("ann", 3),
            "backup_agent() takes to as a string, a path or a file open for writing",
        ),
        (
            lambda m: m.open_agent("ann", decay=1),
            "open_agent(): got an unexpected keyword argument 'decay'. It takes agent_id, parameters.",
        ),
        (
            lambda m: m.flush("ann", timeout=1),
            "flush(): got an unexpected keyword argument 'timeout'. It takes agent_id; by name timeout_ms,",
        ),
        (lambda m: m.remember("ann"), "remember(): missing a required argument: 'messages'."),
        (lambda m: m.get_me("ann"), "get_me(): too many positional arguments. It takes no arguments."),
        (
            lambda m: m.recall("ann", "tea"),
            "not a string. Pass query='tea' to ask a question, or keywords=['tea'] to find words",
        ),
        (lambda m: m.search("ann", speakers="Bob"), "a list of strings, not a string. Pass speakers=['Bob']"),
        (lambda m: m.recall("ann", 7), "recall() takes keywords as a list of strings, not int"),
    ],
)
def test_a_wrong_type_raises_the_allowed_types(call: Callable[[Client], Any], text: str) -> None:
    """A method called with a wrong type raises TypeError with the allowed types; nothing is sent."""
    memory, script = scripted(DONE)
    with pytest.raises(TypeError) as caught:
        call(memory)
    assert text in str(caught.value)
    assert script.requests == []


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((5,), {}, "{kind}() takes url as a string or None, not int"),
        ((), {"timeout_s": "60"}, "{kind}() takes timeout_s as a number, not a string"),
        ((), {"verify": "ca.pem"}, "{kind}() takes verify as an SSLContext or True or False, not a string"),
        (
            (),
            {"apikey": "x"},
            "{kind}(): got an unexpected keyword argument 'apikey'. It takes url; by name api_key",
        ),
    ],
)
def test_a_client_says_what_it_takes(
    kind: type[Client] | type[AsyncClient],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    text: str,
) -> None:
    """A client created with a wrong argument raises TypeError with the allowed arguments or types."""
    with pytest.raises(TypeError) as caught:
        kind(*arguments, **options)
    assert str(caught.value).startswith(text.format(kind=kind.__name__))


def test_a_closed_client_says_so(tmp_path: Path) -> None:
    """Every kind of call on a closed client raises ClientClosed at once, and nothing is sent."""
    memory, script = scripted(DONE)
    memory.close()
    memory.close()
    source = tmp_path / "ann.ebb"
    source.write_bytes(b"x")
    for call in (
        lambda: memory.recall("ann"),
        lambda: next(iter(memory.every_agent())),
        lambda: next(iter(memory.watch_events("ann"))),
        lambda: memory.backup_agent("ann", tmp_path / "new.ebb"),
        lambda: memory.restore_agent("ann", source),
    ):
        with pytest.raises(
            ClientClosed, match=r"Client\('http://127.0.0.1:8420'\) is closed; create another"
        ):
            call()
    assert script.requests == []
    assert [path.name for path in tmp_path.iterdir()] == ["ann.ebb"]


async def test_a_closed_async_client_says_so() -> None:
    """A call on a closed async client raises ClientClosed."""
    memory = AsyncClient()
    await memory.aclose()
    with pytest.raises(ClientClosed, match="AsyncClient"):
        await memory.recall("ann")


def test_an_answer_of_a_newer_daemon_is_read() -> None:
    """Unknown fields are ignored; a missing field or one of another type is an unexpected response."""
    newer = {**ACCEPTED, "mood": {"calm": True}}
    memory, _ = scripted(httpx.Response(202, json=newer))
    assert memory.remember("ann", SAID) == models.Remembered(
        batch_id="b1", pending_batches=1, pii={}, dropped_recalled=0, collapsed=0
    )
    for odd in ({"batch_id": "b1"}, {**ACCEPTED, "batch_id": 7}, [], "b1", None):
        memory, script = scripted(httpx.Response(202, json=odd))
        with pytest.raises(UnexpectedAnswer):
            memory.remember("ann", SAID)
        assert len(script.requests) == 1
    memory, _ = scripted(httpx.Response(202, json={**ACCEPTED, "pending_batches": True}))
    with pytest.raises(UnexpectedAnswer):
        memory.remember("ann", SAID)


# --- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_arrives_in_its_family(reason: str) -> None:
    """Every error of the daemon becomes the exception of its family, with reason and status."""
    told = REASONS[reason]
    memory, _ = scripted(refused(reason), retries=Retries(attempts=1))
    with pytest.raises(EbbtideError) as caught:
        memory.get_agent("ann")
    assert type(caught.value).__name__ == told.family
    assert (caught.value.reason, caught.value.http_status) == (reason, told.http)


def test_the_families_are_those_of_the_daemon() -> None:
    """The client has an exception with the name of every family, all with one base class."""
    for name in FAMILIES:
        assert issubclass(getattr(ebbtide_client, name), EbbtideError)
    assert not issubclass(EbbtideError, DaemonError)


async def test_an_error_has_every_field(tmp_path: Path) -> None:
    """Message, reason, violations and metadata arrive complete, and survive pickling and copying."""
    async with client_in(tmp_path) as memory:
        with pytest.raises(InvalidRequest) as caught:
            await memory.remember("ann", [{"role": "boss", "content": 3}])
        error = caught.value
        assert [v.field for v in error.violations] == ["messages[0].role", "messages[0].content"]
        assert error.message in str(error) and error.reason in str(error)
        for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(same) is InvalidRequest
            assert (str(same), same.violations) == (str(error), error.violations)
        await memory.open_agent("ann", {"decay_rate": 0.9})
        with pytest.raises(errors.Conflict) as differs:
            await memory.open_agent("ann", {"decay_rate": 0.8})
        assert differs.value.metadata == {"parameter": "decay_rate"}
        with pytest.raises(errors.InvalidRequest) as unknown:
            await memory.remember("ann", SAID, idempotency_key="")
        assert unknown.value.reason == "INVALID_VALUE"


@pytest.mark.parametrize("agent_id", ["", ".", "..", "a/b", "\ud800", " a", "../ann", "a\\b"])
async def test_hostile_agent_ids_never_become_another_path(tmp_path: Path, agent_id: str) -> None:
    """An id that no agent can have is InvalidRequest, and never changes the path."""
    async with client_in(tmp_path) as memory:
        await memory.open_agent("ann")
        for verb in (memory.delete_agent, memory.get_agent, memory.close_agent, memory.recall):
            with pytest.raises(InvalidRequest) as caught:
                await verb(agent_id)
            assert caught.value.reason == "INVALID_AGENT_ID"
        assert [agent.agent_id async for agent in memory.every_agent()] == ["ann"]


async def test_odd_texts_are_refused_by_the_daemon_and_not_by_python(tmp_path: Path) -> None:
    """A lone surrogate and NaN reach the daemon, whose error names them."""
    async with client_in(tmp_path) as memory:
        for said, metadata in (("\ud800", None), ("x", {"n": float("nan")})):
            with pytest.raises(InvalidRequest):
                await memory.remember("ann", [{"role": "user", "content": said}], metadata=metadata)
        with pytest.raises(TypeError):
            await memory.recall("ann", "lisbon")  # type: ignore[arg-type]


def test_failures_of_the_connection_are_all_translated() -> None:
    """Every httpx error becomes an exception of the client, which says whether the daemon may have acted."""

    def below(kind: type[httpx.RequestError]) -> set[type[httpx.RequestError]]:
        return {kind}.union(*(below(lower) for lower in kind.__subclasses__()))

    for kind in below(httpx.RequestError):
        error = errors.from_httpx(kind("scripted"), "there")
        assert type(error) in (ConnectionFailed, UnexpectedAnswer), kind
        if isinstance(error, ConnectionFailed):
            assert error.maybe_sent == (not issubclass(kind, errors.NOTHING_SENT)), kind
    memory, _ = scripted(httpx.ReadError, retries=Retries(attempts=1))
    with pytest.raises(ConnectionFailed, match="was lost"):
        memory.recall("ann")


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "TLS_NOT_SPOKEN"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "CERTIFICATE_NOT_TRUSTED"),
    ],
)
def test_a_wrong_use_of_tls_is_reported_at_once(cause: str, reason: str) -> None:
    """A connection that fails for a reason of TLS has a reason of its own and is not retried."""
    attempts = []

    def handle(request: httpx.Request) -> httpx.Response:
        attempts.append(request)
        raise httpx.ConnectError(cause, request=request)

    memory = Client("https://h:1", transport=httpx.MockTransport(handle), retries=SWIFT)
    with pytest.raises(ConnectionFailed) as caught:
        memory.get_health()
    assert (caught.value.reason, caught.value.maybe_sent, len(attempts)) == (reason, False, 1)


def test_an_unusable_file_of_tls_is_named(tmp_path: Path) -> None:
    """A missing or invalid `ca_file` or `client_cert` is a ValueError with the argument and the path."""
    missing, wrong = tmp_path / "none.pem", tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for kind in (Client, AsyncClient):
        for name in ("ca_file", "client_cert"):
            for file, why in ((missing, "cannot be read: No such file"), (wrong, "does not contain")):
                with pytest.raises(ValueError, match=f"^{name}: {re.escape(str(file))} {why}"):
                    kind("https://h:1", **{name: file})


def test_a_plain_address_trusts_no_certificate_and_loads_none() -> None:
    """The public authorities are trusted for an https address only; a given context is used for any address."""
    plain, secure = httpx.URL("http://h:1"), httpx.URL("https://h:1")
    context = trust(plain, True, None, None)
    assert isinstance(context, ssl.SSLContext) and context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509"] == 0
    assert trust(secure, True, None, None) is True
    assert trust(plain, context, None, None) is context and trust(plain, False, None, None) is False


def test_a_plain_address_of_a_server_with_tls_gets_a_hint() -> None:
    """A server with TLS closes a plain connection without a response; the error names the https address."""

    def handle(request: httpx.Request) -> httpx.Response:
        raise httpx.RemoteProtocolError("Server disconnected without sending a response.", request=request)

    memory = Client("http://h:1", transport=httpx.MockTransport(handle), retries=Retries(attempts=1))
    with pytest.raises(ConnectionFailed, match="use https://h:1 "):
        memory.get_health()


def test_responses_of_other_servers_are_distinguished() -> None:
    """A web page instead of a daemon is an unexpected response; a proxy's 502 is Unavailable, 429 Exhausted."""
    for status, kind in ((200, UnexpectedAnswer), (404, UnexpectedAnswer), (302, UnexpectedAnswer)):
        memory, script = scripted(httpx.Response(status, text="<html>hello</html>"))
        with pytest.raises(kind):
            memory.get_health()
        assert len(script.requests) == 1
    for status, family in ((502, errors.Unavailable), (503, errors.Unavailable), (429, Exhausted)):
        memory, script = scripted(httpx.Response(status, text="<html>busy</html>"))
        with pytest.raises(family):
            memory.get_readiness()
        assert len(script.requests) == 4
    stopping = {"status": "unavailable", "reasons": ["the daemon is stopping"]}
    memory, _ = scripted(httpx.Response(503, json=stopping))
    assert memory.get_readiness() == models.Readiness(
        status="unavailable", reasons=("the daemon is stopping",)
    )
    newer = {"error": {"status": "TEAPOT", "reason": "NEW", "message": "new"}}
    memory, _ = scripted(httpx.Response(409, json=newer))
    with pytest.raises(errors.Conflict):
        memory.get_agent("ann")


def test_secrets_are_sent_only_to_the_daemon() -> None:
    """The key is sent as a bearer token. No repr and no message contains it, or a password of the URL."""
    script = Script(httpx.ConnectError)
    with Client(
        "http://me:pass-word@127.0.0.1:9",
        api_key="ebb_k_secret",
        transport=httpx.MockTransport(script),
        retries=Retries(attempts=1),
    ) as memory:
        with pytest.raises(ConnectionFailed) as caught:
            memory.get_health()
        told = f"{memory!r} {caught.value!r} {caught.value} {memory._wire!r} {AsyncClient(api_key='ebb_k_secret')!r}"
    assert "secret" not in told.replace("[secret]", "")
    assert "pass-word" not in told
    stranger = Client(api_key="ebb_k_secret\n", transport=httpx.MockTransport(script))
    with stranger, pytest.raises(ConnectionFailed):
        stranger.delete_agent("ann")
    assert script.requests[-1].headers["authorization"] == "Bearer ebb_k_secret"
    for key in ("ebb_k\nsecret", "ebb_k_sécret", "ebb k_secret"):
        with pytest.raises(ValueError, match="no API key has") as bad:
            Client(api_key=key)
        assert "cret" not in str(bad.value)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8420", "ftp://x", "http://", "http://[::1"])
def test_an_invalid_url_is_refused_at_once(url: str) -> None:
    """An invalid URL or a timeout of zero is refused when the client is created."""
    with pytest.raises(ValueError, match="http://127"):
        Client(url)
    with pytest.raises(ValueError, match="timeouts"):
        Client(timeout_s=0)


# --- retries -----------------------------------------------------------------------------------------

PASSING = [
    httpx.ConnectError,
    httpx.ReadError,
    httpx.ReadTimeout,
    refused("AGENT_BUSY"),
    refused("SHUTTING_DOWN"),
]


@pytest.mark.parametrize("failure", PASSING, ids=str)
def test_safe_requests_are_retried(failure: Any) -> None:
    """Reads, flush and remember are retried after transient failures, with the same bytes and key."""
    answers: list[tuple[Callable[[Client], Any], httpx.Response]] = [
        (lambda memory: memory.recall("ann", ["x"]), RECALLED),
        (lambda memory: memory.get_health(), httpx.Response(200, json={"status": "ok", "version": "9"})),
        (lambda memory: memory.remember("ann", SAID), DONE),
    ]
    for ask, answer in answers:
        memory, script = scripted(failure, failure, answer)
        ask(memory)
        assert len(script.requests) == 3
        assert len({request.content for request in script.requests}) == 1


@pytest.mark.parametrize("failure", PASSING, ids=str)
def test_unsafe_requests_are_sent_once(failure: Any) -> None:
    """Changes without an idempotency key are sent once."""
    for ask in (
        lambda memory: memory.compress("ann"),
        lambda memory: memory.open_agent("ann"),
        lambda memory: memory.update_agent("ann", {}),
        lambda memory: memory.delete_agent("ann"),
        lambda memory: memory.close_agent("ann"),
        lambda memory: memory.retry_batch("ann", "b1"),
    ):
        memory, script = scripted(failure)
        with pytest.raises(EbbtideError):
            ask(memory)
        assert len(script.requests) == 1


@pytest.mark.parametrize("reason", [r for r, told in REASONS.items() if told.http not in (429, 503, 504)])
def test_permanent_errors_are_not_retried(reason: str) -> None:
    """No 4xx except 429, and neither 500 nor 507, is retried."""
    memory, script = scripted(refused(reason))
    with pytest.raises(EbbtideError):
        memory.recall("ann")
    assert len(script.requests) == 1


def tries_of(retries: Retries, clock: Callable[[], float] = lambda: 0.0) -> Attempts:
    """Return the attempts of a recall, without random jitter."""
    return Attempts(calls.recall("ann"), retries, clock, lambda low, high: high)


def test_pauses_grow_and_are_bounded() -> None:
    """Pauses double up to the maximum, attempts are counted, and none begins after the total time."""
    lost = ConnectionFailed("lost")
    tries = tries_of(Retries(attempts=6, first_pause_s=1, longest_pause_s=4))
    assert [tries.pause_s(lost) for _ in range(6)] == [1, 2, 4, 4, 4, None]
    now = [0.0]
    tries = tries_of(Retries(attempts=99, first_pause_s=1, total_s=10), lambda: now[0])
    now[0] = 8.0
    assert tries.pause_s(lost) == 1
    now[0] = 9.0
    assert tries.pause_s(lost) is None
    assert tries_of(Retries(attempts=1)).pause_s(lost) is None
    with pytest.raises(ValueError, match="attempts"):
        Retries(attempts=0)


def test_retry_after_is_honoured_with_a_cap() -> None:
    """Retry-After is obeyed up to the longest pause. A longer value is reported without waiting."""

    def full(after_s: float) -> Exhausted:
        return Exhausted("full", http_status=429, retry_after_s=after_s)

    tries = tries_of(Retries(first_pause_s=0.5, longest_pause_s=5))
    assert tries.pause_s(full(3)) == 3
    assert tries.pause_s(full(0)) == 1
    assert tries.pause_s(full(6)) is None
    memory, script = scripted(refused("QUEUE_FULL", 999))
    with pytest.raises(Exhausted) as caught:
        memory.remember("ann", SAID)
    assert (caught.value.retry_after_s, len(script.requests)) == (999, 1)
    for odd in ("Wed, 21 Oct 2026 07:28:00 GMT", "-3", "nan", "1e9"):
        memory, script = scripted(httpx.Response(503, headers={"Retry-After": odd}))
        with pytest.raises(errors.Unavailable):
            memory.recall("ann")
        assert len(script.requests) == 4


class LosesAnswers(httpx.AsyncBaseTransport):
    """A transport whose connection breaks after the daemon has responded, a given number of times."""

    def __init__(self, inner: httpx.AsyncBaseTransport, times: int) -> None:
        self._inner = inner
        self.left = times

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        if self.left:
            self.left -= 1
            raise httpx.ReadError("lost", request=request)
        return response


async def test_a_lost_answer_never_doubles_a_batch(tmp_path: Path) -> None:
    """If the response of a stored batch is lost, the retry finds the batch, which exists once."""
    async with service_in(tmp_path) as service:
        transport = LosesAnswers(httpx.ASGITransport(create_app(service)), 2)
        async with AsyncClient(transport=transport, retries=SWIFT) as memory:
            assert (await memory.remember("ann", SAID)).batch_id == "b1"
            assert (await memory.remember("ann", SAID)).batch_id == "b2"
            assert len((await memory.list_batches("ann")).batches) == 2


def test_waiting_calls_extend_the_timeout() -> None:
    """A flush or patient recall extends the timeout by its own wait; others use the client's."""
    flushed = {
        "digested": True,
        "passes_done": True,
        "pending_batches": 0,
        "owed_passes": 0,
        "parked_batches": 0,
        "unembedded_messages": 0,
        "unextracted_messages": 0,
        "extraction_paused": "",
    }
    memory, script = scripted(httpx.Response(200, json=flushed), timeout_s=7, connect_timeout_s=2)
    memory.flush("ann", timeout_ms=600_000)
    assert script.requests[0].extensions["timeout"] == {"connect": 2, "read": 607, "write": 607, "pool": 607}
    memory, script = scripted(RECALLED, timeout_s=7)
    memory.recall("ann", patience_ms=30_000)
    memory.recall("ann")
    memory.recall("ann", patience_ms=-90_000)
    assert [r.extensions["timeout"]["read"] for r in script.requests] == [37, 7, 7]


# --- the context window ------------------------------------------------------------------------------


def turn(number: int, chars: int = 70) -> list[dict[str, Any]]:
    """Return a user's message and its answer, 24 tokens each."""
    text = f"{number}".ljust(chars, "x")
    return [{"role": "user", "content": text}, {"role": "assistant", "content": text}]


def contents(messages: list[dict[str, Any]]) -> list[str]:
    """Return the first letter of each message."""
    return [message["content"][:1] for message in messages]


SYSTEM = {"role": "system", "content": "s"}


def test_tokens_are_guessed_cautiously() -> None:
    """The estimate is one token per CJK character, one per 3.5 other characters, none for an empty text."""
    assert estimate_tokens("") == 0
    assert estimate_tokens("x" * 7) == 2
    assert estimate_tokens("x" * 8) == 3
    assert estimate_tokens("我五月搬到了青岛。") == 9
    assert estimate_tokens("日本語ハングル한국어") == 10
    assert estimate_tokens("我 xxx") == 1 + 2


def test_the_overflow_is_one_batch_of_whole_turns() -> None:
    """Over 80 % the oldest turns become one batch, the system prompt and the newest turn stay, memory comes first."""
    memory, script = scripted(RECALLED)
    window = ContextWindow(memory, "ann", context_max_tokens=300, conversation_id="c1")
    window.add(SYSTEM, *turn(1), *turn(2), *turn(3), *turn(4))
    assert window.token_count == 5 + 8 * 24 < 240
    assert [m["content"] for m in window.prepare("x")[:2]] == [
        "What you remember from earlier conversations:\n[Memory] x",
        "s",
    ]
    assert [request.url.path for request in script.requests] == ["/v1/agents/ann/recall"]
    memory, script = scripted(DONE, RECALLED)
    window._client = memory
    window.add(*turn(5))
    assert window.is_over_threshold
    prepared = window.prepare("x", depth=1)
    assert contents(prepared) == ["W", "s", "5", "5"]
    remembered, recalled = script.bodies
    assert contents(remembered["messages"]) == ["1", "1", "2", "2", "3", "3", "4", "4"]
    assert remembered["conversation_id"] == "c1"
    assert all(m["timestamp"] > 1_600_000_000_000 for m in remembered["messages"])
    question = turn(5)[0]["content"]
    assert recalled == {"keywords": ["x"], "relations": [], "depth": 1, "dates": True, "query": question}
    assert (window.last_error, window.is_over_threshold) == (None, False)


def test_the_window_asks_what_the_user_said_last() -> None:
    """The query is the end of the last text of the user, unless the caller gives another or recalls by association."""
    memory, script = scripted(RECALLED)
    window = ContextWindow(memory, "ann", context_max_tokens=100_000)
    window.add(SYSTEM)
    window.prepare()
    window.add({"role": "user", "content": [{"type": "text", "text": " Who plays? "}]}, *turn(1)[1:])
    window.add({"role": "user", "content": None}, {"role": "tool", "content": "42"})
    for options in (
        {},
        {"query": "Where?"},
        {"query": None},
        {"relations": ["about"]},
        {"mode": "associative"},
    ):
        window.prepare(**options)
    window.add({"role": "user", "content": "x" * 50_000 + "Why?"})
    window.prepare()
    asked = [body.get("query") for body in script.bodies]
    assert asked[:-1] == [None, "Who plays?", "Where?", None, None, None]
    assert asked[-1] == "x" * 1996 + "Why?"
    assert all(body["dates"] for body in script.bodies)


@pytest.mark.parametrize("failure", [httpx.ReadError, httpx.ConnectError, refused("QUEUE_FULL", 99)], ids=str)
def test_nothing_is_lost_when_remember_fails(failure: Any) -> None:
    """Messages stay in the window; the next attempt sends the same batch under the same key, then newer messages."""
    memory, script = scripted(failure, retries=Retries(attempts=1))
    window = ContextWindow(memory, "ann", context_max_tokens=100)
    window.add(SYSTEM, *turn(1), *turn(2))
    before = window.messages
    assert window.prepare() == before
    assert isinstance(window.last_error, (ConnectionFailed, Exhausted))
    window.add(*turn(3))
    with pytest.raises(EbbtideError):
        window.submit()
    first, _recall, second = script.bodies
    assert contents(window.messages) == ["s", "1", "1", "2", "2", "3", "3"]
    memory, script = scripted(DONE, DONE, RECALLED)
    window._client = memory
    window.prepare()
    third, fourth = script.bodies[:2]
    assert first == second == third
    assert (contents(third["messages"]), contents(fourth["messages"])) == (["1", "1"], ["2", "2"])
    assert third["idempotency_key"] != fourth["idempotency_key"]
    assert contents(window.messages) == ["s", "3", "3"]


def test_a_permanent_error_is_raised_and_loses_nothing() -> None:
    """`prepare` raises a permanent error and keeps every message in the window."""
    memory, _ = scripted(refused("METADATA_TOO_LARGE"))
    window = ContextWindow(memory, "ann", context_max_tokens=100)
    window.add(*turn(1), *turn(2))
    with pytest.raises(InvalidRequest):
        window.prepare()
    assert contents(window.messages) == ["1", "1", "2", "2"]


def test_the_end_of_a_conversation_is_remembered_whole() -> None:
    """submit(everything=True) sends every turn as one batch and keeps the system prompt; a repetition sends nothing."""
    memory, script = scripted(DONE)
    window = ContextWindow(memory, "ann", context_max_tokens=1000)
    assert window.submit() is None
    window.add(SYSTEM, *turn(1), Message(role="user", content="2", speaker="Ann", id="m", timestamp=7))
    assert window.messages[-1] == {"role": "user", "content": "2"}
    assert window.submit(everything=True) == models.Remembered(
        batch_id="b1", pending_batches=1, pii={}, dropped_recalled=0, collapsed=0
    )
    assert window.submit(everything=True) is None
    (sent,) = script.bodies
    assert contents(sent["messages"]) == ["1", "1", "2"]
    assert sent["messages"][-1] == {
        "role": "user",
        "content": "2",
        "speaker": "Ann",
        "id": "m",
        "timestamp": 7,
    }
    assert window.messages == [SYSTEM]


def test_messages_of_tools_and_of_parts_are_remembered_as_text() -> None:
    """A tool's answer is remembered under its role's name, parts as their text; a bare tool call is skipped."""
    memory, script = scripted(DONE)
    window = ContextWindow(memory, "ann", context_max_tokens=1000)
    window.add(
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": "x"}],
        },
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t1"}]},
        {"role": "tool", "content": "42", "tool_call_id": "t1"},
    )
    assert window.messages[2] == {"role": "tool", "content": "42", "tool_call_id": "t1"}
    window.submit(everything=True)
    sent = [(m["role"], m.get("speaker"), m["content"]) for m in script.bodies[0]["messages"]]
    assert sent == [("user", None, "look"), ("assistant", "tool", "42")]
    window.add({"role": "assistant", "content": None, "tool_calls": []})
    assert window.submit(everything=True) is None
    assert window.messages == []
    with pytest.raises(ValueError, match="role"):
        window.add({"content": "x"})


async def test_large_overflows_are_sent_in_several_batches(tmp_path: Path) -> None:
    """More than 1000 messages, and a text beyond 100 000 characters, are split to fit the daemon's limits."""
    async with client_in(tmp_path, fleet={"recall_patience_ms": 0}) as memory:
        window = AsyncContextWindow(memory, "ann", context_max_tokens=10**7)
        window.add({"role": "user", "content": "y" * 250_000})
        window.add(*({"role": "user", "content": f"{n}"} for n in range(1100)))
        await window.submit(everything=True)
        assert window.messages == []
        counts = [batch.message_count async for batch in memory.every_batch("ann")]
        assert counts == [1000, 103]
        await memory.close_agent("ann")


def test_memory_gets_half_of_what_is_free() -> None:
    """As many whole memories as fit are included, strongest first; without room there is no empty message."""
    window = Window(max_tokens=100, threshold_ratio=0.8, keep_ratio=0.2, count_tokens=len)
    window.add({"role": "user", "content": "u" * 16}, 0)
    blocks = ["[Memory] " + letter * 6 for letter in "abc"]
    (memory, _) = window.with_memory("H", SEPARATOR.join(blocks))
    assert memory == {"role": "system", "content": "H" + blocks[0]}
    assert window.with_memory("H", "") == window.messages
    window.add({"role": "user", "content": "u" * 90}, 0)
    assert window.with_memory("H", blocks[0]) == window.messages


@pytest.mark.parametrize(
    "options",
    [
        {"context_max_tokens": 0},
        {"context_threshold_ratio": 0},
        {"context_threshold_ratio": 1.1},
        {"context_keep_ratio": 0.8},
        {"context_keep_ratio": -0.1},
    ],
    ids=str,
)
def test_a_window_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """Ratios and limits outside their ranges are ValueErrors at construction."""
    memory, _ = scripted(DONE)
    with pytest.raises(ValueError, match="context_"):
        ContextWindow(memory, "ann", **{"context_max_tokens": 100, **options})


async def test_a_window_recalls_removed_messages(tmp_path: Path) -> None:
    """A question brings removed messages back with their date; one overflow is one batch even if responses got lost."""
    async with service_in(tmp_path) as service:
        transport = LosesAnswers(httpx.ASGITransport(create_app(service)), 0)
        async with AsyncClient(transport=transport, retries=Retries(attempts=1)) as memory:
            window = AsyncContextWindow(memory, "ann", context_max_tokens=200)
            window.add(SYSTEM, {"role": "user", "content": "My sister Clara plays the cello in Porto."})
            assert await window.prepare() == window.messages
            for number in range(4):
                window.add(*turn(number))
            window.add({"role": "user", "content": "What does Clara play?"})
            transport.left = 2
            assert contents(await window.prepare())[:2] == ["s", "M"]
            assert isinstance(window.last_error, ConnectionFailed)
            prepared = await window.prepare()
            line = r"\[Memory\] \[\d{4}-\d\d-\d\d\] user: My sister Clara plays the cello in Porto\."
            assert re.match(HEADING + line, prepared[0]["content"])
            assert all("cello" not in message["content"] for message in prepared[1:])
            assert len((await memory.list_batches("ann")).batches) == 1


async def test_concurrent_prepare_calls_send_one_batch(tmp_path: Path) -> None:
    """Both may send the batch; the daemon stores it once, and only its messages leave the window."""
    async with client_in(tmp_path) as memory:
        window = AsyncContextWindow(memory, "ann", context_max_tokens=100)
        window.add(*turn(1), *turn(2))
        both = asyncio.gather(window.prepare(), window.prepare())
        await asyncio.sleep(0)
        window.add({"role": "user", "content": "3"})
        await both
        assert contents(window.messages) == ["2", "2", "3"]
        assert len((await memory.list_batches("ann")).batches) == 1


# --- samples and pages -------------------------------------------------------------------------------


def run(daemon: Daemon, *command: str) -> str:
    """Run Python with the client on its path and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(HOME / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_samples_and_the_readme_run_as_they_are(daemon: Daemon, tmp_path: Path) -> None:
    """Every sample, and the Python code in the README and docs/clients.md, works as described on a real daemon."""
    told = {path.name: run(daemon, str(path), daemon.url) for path in sorted((HOME / "samples").glob("*.py"))}
    assert "I moved to Lisbon in May." in told.pop("first_recall.py")
    assert "青岛" in told.pop("many_agents.py")
    assert "What does Clara play? She plays the cello." in told.pop("chat_with_memory.py")
    assert "NODE_NOT_FOUND" in told.pop("look_inside.py")
    assert told == {}
    for page, mark in (("clients/python/README.md", "first recall"), ("docs/clients.md", "python")):
        block = marked_block(read(page), mark).replace("http://127.0.0.1:8420", daemon.url)
        assert daemon.url in block
        assert "I moved to Lisbon in May." in run(daemon, "-c", block)
    block = marked_block(read("clients/python/README.md"), "files").replace(
        "http://127.0.0.1:8420", daemon.url
    )
    before = f"import os; os.chdir({str(tmp_path)!r})\n"
    assert "Counts(nodes=" in run(daemon, "-c", before + block)
    assert daemon.recall("eve", "Lisbon") and (tmp_path / "ann.ebb").stat().st_size


def test_the_curl_lines_of_the_page_work(daemon: Daemon) -> None:
    """The curl commands of docs/clients.md remember, retry with the same key, and recall."""
    script = marked_block(read("docs/clients.md"), "curl").replace("http://127.0.0.1:8420", daemon.url)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"batch_id":"b1"') == 2
    assert re.search(r"\[Memory\] \[\d{4}-\d\d-\d\d\] I moved to Lisbon in May\.", done.stdout)
