"""Work that grows with its input runs outside the event loop, and only as much of it as is needed.

No test measures time. The tests check which thread does the work, what is sent to worker processes, or how often
something is done.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.rest import documents
from ebbtide.verbs.remember import Message, RememberRequest, body_hash
from ebbtide.verbs.requests import MAX_VIOLATIONS
from ebbtide.verbs.service import LARGE_BYTES
from tests.support import looking
from tests.support.callers import grpc_in, rest_in
from tests.support.in_process import ask, service_in, settle, tell
from tests.support.scripted_model import ScriptedModel

AGENT = "/v1/agents/ann"
LARGE = {"messages": [{"role": "system", "content": "The kettle is blue. " * (LARGE_BYTES // 16)}]}
SMALL = {"messages": [{"role": "system", "content": "The kettle is blue."}]}
NUMEROUS = {"messages": [{"role": "system", "content": "Hm."}] * 1000}


@pytest.fixture
def threads_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], list[str]]:
    """Record the names of the threads that call a module's function from now on."""

    def watch(module: str, name: str) -> list[str]:
        found: list[str] = []
        place = importlib.import_module(module)
        inner = getattr(place, name)

        def noted(*given: Any, **more: Any) -> Any:
            found.append(threading.current_thread().name)
            return inner(*given, **more)

        monkeypatch.setattr(place, name, noted)
        return found

    return watch


@pytest.fixture
def offloaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the functions that are sent to worker processes from now on."""
    found: list[str] = []
    inner = TextWorkers._submit

    def noted(self: TextWorkers, size: int, function: Any, arguments: tuple[Any, ...]) -> Any:
        inside = [one for one in arguments if callable(one) and not isinstance(one, type)]
        found.append((inside or [function])[0].__name__)
        return inner(self, size, function, arguments)

    monkeypatch.setattr(TextWorkers, "_submit", noted)
    return found


def in_thread(names: list[str]) -> set[bool]:
    """Whether the work ran on the offload thread, and not on the event loop."""
    return {name.startswith("offload") for name in names}


@pytest.mark.parametrize(
    ("body", "decoded_by", "prepared_by", "sent"),
    [
        (SMALL, {False}, {False}, []),
        (LARGE, set(), set(), ["read_request", "screen", "arrival_of"]),
        (NUMEROUS, {False}, {True}, []),
    ],
    ids=["small", "large", "numerous"],
)
async def test_large_body_is_read_in_a_worker_process(
    tmp_path: Path,
    threads_of: Callable[[str, str], list[str]],
    offloaded: list[str],
    body: Any,
    decoded_by: set[bool],
    prepared_by: set[bool],
    sent: list[str],
) -> None:
    """A worker process parses a body of LARGE_BYTES and prepares long texts; a thread prepares many short ones."""
    decoding = threads_of("ebbtide.verbs.requests", "from_json")
    preparing = threads_of("ebbtide.verbs.remember", "text_key")
    async with rest_in(tmp_path) as call:
        assert (await call("POST", f"{AGENT}/remember", body)).status_code == 202
        assert in_thread(decoding) == decoded_by
        assert in_thread(preparing) == prepared_by
        assert offloaded[: len(sent)] == sent


async def test_sentence_of_a_long_statement_is_read_in_a_worker_process(
    tmp_path: Path, offloaded: list[str]
) -> None:
    """Denial, plan, time and personal data of a long sentence are found in a worker process."""
    async with rest_in(tmp_path) as call:
        said = {
            "subject": "Ann",
            "topic": "residence",
            "object": "Porto",
            "content": "She lives in Porto. " * 300,
        }
        assert (await call("POST", f"{AGENT}/statements", said)).status_code == 201
        assert offloaded == ["_with_meaning", "_arriving"]


async def test_large_body_that_is_refused_is_read_in_a_worker_process_too(
    tmp_path: Path, threads_of: Callable[[str, str], list[str]], offloaded: list[str]
) -> None:
    """A worker process finds the errors of a large body; the response is that for a small one."""
    decoding = threads_of("ebbtide.verbs.requests", "from_json")
    async with rest_in(tmp_path) as call:
        body = {"messages": [*LARGE["messages"], {"role": "nobody", "content": "x"}]}
        assert await call.refused("POST", f"{AGENT}/remember", body) == "INVALID_VALUE"
        assert await call.refused("PUT", AGENT, {"x" * LARGE_BYTES: 1}) == "UNKNOWN_FIELD"
        assert decoding == []
        assert offloaded == ["read_request", "read_request"]


async def test_large_request_and_long_listing_of_grpc_are_converted_off_the_loop(
    tmp_path: Path, threads_of: Callable[[str, str], list[str]], offloaded: list[str]
) -> None:
    """A worker process reads a large request, a thread writes a long listing; small ones stay on the event loop."""
    reading = threads_of("ebbtide.rpc.servicer", "parse")
    writing = threads_of("ebbtide.rpc.servicer", "to_message")
    async with grpc_in(tmp_path) as call:
        assert (await call("POST", f"{AGENT}/remember", LARGE)).status_code == 202
        assert offloaded[0] == "read_message"
        assert (reading, in_thread(writing)) == ([], {False})
        lines = {"messages": [{"role": "user", "content": f"Fact number {n} is known."} for n in range(300)]}
        assert (await call("POST", f"{AGENT}/remember", lines)).status_code == 202
        assert (await call("POST", f"{AGENT}/flush", {})).status_code == 200
        reading.clear()
        writing.clear()
        nodes = (await call("GET", f"{AGENT}/nodes", params={"page_size": 1000})).json()["nodes"]
        assert len(nodes) >= 150
        assert (in_thread(reading), in_thread(writing)) == ({False}, {True})


async def test_openapi_document_is_generated_once_off_the_loop(
    tmp_path: Path, threads_of: Callable[[str, str], list[str]]
) -> None:
    """The document is generated on the offload thread, at the first request for it, because that takes long."""
    making = threads_of("ebbtide.rest.openapi_document", "get_openapi")
    documents._encoded_document.cache_clear()
    async with rest_in(tmp_path) as call:
        first, second = [await call("GET", "/openapi.json") for _ in range(2)]
        assert first.content == second.content
        assert first.headers["content-type"] == "application/json"
        assert in_thread(making) == {True}
        assert len(making) == 1


async def test_recall_text_is_formatted_in_the_agents_job(
    tmp_path: Path, threads_of: Callable[[str, str], list[str]]
) -> None:
    """Any number of memories is formatted on the thread of recalls."""
    wording = threads_of("ebbtide.memory.association", "joined")
    async with service_in(tmp_path / "data") as service:
        await tell(service, "ann", "The kettle is blue.")
        await settle(service, "ann")
        assert (await ask(service, "ann")).text == "[Memory] The kettle is blue."
    assert {name.startswith("recall") for name in wording} == {True}


async def test_request_has_no_thread_of_its_own(tmp_path: Path) -> None:
    """A small request uses only the event loop and the job's thread, because a further thread costs too much."""
    before = set(threading.enumerate())
    async with rest_in(tmp_path) as call:
        assert (await call("POST", f"{AGENT}/remember", SMALL)).status_code == 202
        assert (await call("POST", f"{AGENT}/recall", {})).status_code == 200
        assert (await call("GET", f"{AGENT}/nodes")).status_code == 200
        assert await call.refused("GET", f"{AGENT}?nothing=1") == "UNKNOWN_FIELD"
        new = {thread.name.partition("_")[0] for thread in set(threading.enumerate()) - before}
    assert new <= {"job", "recall", "background", "language"}


async def test_long_batch_becomes_memories_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests run between two segments of a batch: no memory waits for the whole batch."""
    model = ScriptedModel()
    made_after: list[int] = []
    digest = importlib.import_module("ebbtide.fleet.runtime.digest")
    inner = digest.memory_of

    def noted(*given: Any) -> Any:
        made_after.append(model.calls["process"])
        return inner(*given)

    monkeypatch.setattr(digest, "memory_of", noted)
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", *(f"Fact number {n} is well known here." for n in range(5)))
        await settle(service, "ann")
        assert len(await looking.nodes(service, "ann")) == 5
    assert made_after == [1, 2, 3, 4, 5]


# --- no more than is needed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("remember", {"messages": [{"role": "nobody"}] * 50_000}, "messages"),
        ("remember", {"messages": [[]] * 200_000}, "messages"),
        ("remember", {"messages": [], **{f"k{n}": 1 for n in range(100_000)}}, "messages"),
        ("remember", {"messages": [{f"k{n}": 1 for n in range(100_000)}]}, "messages[0].role"),
        ("recall", {"keywords": [1] * 500_000}, "keywords"),
        ("recall", {"relations": [1] * 500_000}, "relations"),
    ],
    ids=["messages", "no messages", "fields", "fields of a message", "keywords", "relations"],
)
async def test_no_more_violations_are_searched_than_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, body: Any, field: str
) -> None:
    """A body with a hundred thousand errors costs no more than parsing it, and the response names the first few."""
    faults: list[int] = []
    requests = importlib.import_module("ebbtide.verbs.requests")
    inner = requests.refusal

    def counted(error: Any, form: Any = None) -> Any:
        faults.append(error.error_count())
        return inner(error, form)

    monkeypatch.setattr(requests, "refusal", counted)
    # The pool processes everything here, so that faults are counted.
    monkeypatch.setattr(TextWorkers, "_submit", type(INLINE)._submit)
    async with rest_in(tmp_path) as call:
        response = await call("POST", f"{AGENT}/{verb}", body)
    error = response.json()["error"]
    assert response.status_code == 400
    assert error["field_violations"][0]["field"] == field
    assert len(error["field_violations"]) <= MAX_VIOLATIONS
    # Required fields of a message, and the reported unknown ones.
    assert faults[0] <= MAX_VIOLATIONS + 2


async def test_unknown_parameters_without_number_are_refused(tmp_path: Path) -> None:
    """Known parameters are still accepted among them, and the first unknown ones are named."""
    async with rest_in(tmp_path) as call:
        given = {**{f"k{n}": 1 for n in range(100_000)}, "decay_rate": "x"}
        response = await call("PUT", AGENT, given)
        assert response.status_code == 400
        fields = {v["field"] for v in response.json()["error"]["field_violations"]}
        assert {"decay_rate", "k0", "k1"} <= fields
        assert len(fields) == MAX_VIOLATIONS


async def test_metadata_is_encoded_only_up_to_its_limit(tmp_path: Path) -> None:
    """Metadata of any size is refused as soon as it exceeds the limit."""
    async with rest_in(tmp_path) as call:
        for metadata in ({"k": ["v" * 50] * 100_000}, {"k": "v" * 5000}, {"k" * 5000: 1}):
            body = {**SMALL, "metadata": metadata}
            assert await call.refused("POST", f"{AGENT}/remember", body) == "METADATA_TOO_LARGE"
        exact = {"k": "v" * (4096 - len('{"k": ""}'))}
        assert (await call("POST", f"{AGENT}/remember", {**SMALL, "metadata": exact})).status_code == 202
        exact["k"] += "v"
        assert await call.refused("POST", f"{AGENT}/remember", {**SMALL, "metadata": exact})


async def test_only_a_key_costs_a_hash(
    tmp_path: Path, threads_of: Callable[[str, str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of a body belongs to an idempotency key; without a key it is not computed."""
    monkeypatch.setattr(TextWorkers, "_submit", type(INLINE)._submit)
    hashing = threads_of("ebbtide.verbs.remember", "body_hash")
    async with rest_in(tmp_path) as call:
        await call("POST", f"{AGENT}/remember", SMALL)
        assert hashing == []
        await call("POST", f"{AGENT}/remember", {**SMALL, "idempotency_key": "k"})
        await call("POST", f"{AGENT}/remember", LARGE)
        assert len(hashing) == 1
        await call("POST", f"{AGENT}/remember", LARGE, headers={"Idempotency-Key": "l"})
        assert len(hashing) == 2


def test_hash_of_a_body_stays_as_it_is() -> None:
    """Receipts on disk contain it, so every version computes the same hash: of the JSON with sorted fields."""
    messages = [
        Message(role="user", content='a "quote"\n青岛 😀', timestamp=5, id="x", speaker="Ann"),
        Message(role="assistant", content="b"),
    ]
    fields = {"conversation_id": "ü", "metadata": {"b": 1, "a": [1.5, None]}}
    for command in (
        RememberRequest(agent_id="ann", messages=messages, idempotency_key="k", **fields),
        RememberRequest(agent_id="ann", messages=messages[:1]),
        RememberRequest(agent_id="bob", messages=messages[1:]),
    ):
        plain = command.model_dump(exclude={"agent_id", "idempotency_key"})
        for message in plain["messages"]:
            # Receipts are older than these fields: without them the JSON contains none.
            for later in message.keys() - {"role", "content", "timestamp", "id", "speaker"}:
                del message[later]
        assert body_hash(command) == hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).digest()
    assert (
        body_hash(RememberRequest(agent_id="ann", messages=messages, **fields))
        .hex()
        .startswith("0f77a50e4546e385")
    )
