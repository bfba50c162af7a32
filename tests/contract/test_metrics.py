"""Metrics count the same events over each transport. No label names an agent by default."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ebbtide.errors import Corrupted, Exhausted
from ebbtide.ids import AgentId
from ebbtide.language.port import BadReply
from ebbtide.verbs.agents import delete_agent
from ebbtide.verbs.metrics import get_metrics
from ebbtide.verbs.moving import RestoreAgentRequest, backup_agent, restore_agent
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service, get_readiness
from tests.support.callers import CALLERS, Caller, CallerIn, rest_in
from tests.support.in_process import service_in, settle, tell
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

HELLO = {"messages": [{"role": "user", "content": "I moved to Lisbon in May."}]}
Samples = dict[tuple[str, frozenset[str]], float]


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def scraped(service: Service) -> Samples:
    """Return every sample by its name and its labels."""
    text = (await get_metrics(service)).decode()
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def scraped_when_read(service: Service) -> Samples:
    """Return every sample after the figures of all agents were read."""
    for agent in service.fleet.open_agents:
        while (task := agent.refresh_figures()) is not None:
            await task
    return await scraped(service)


def of(samples: Samples, name: str, *labels: str) -> float:
    return samples.get((name, frozenset(labels)), 0.0)


async def test_records_and_uses_of_the_archive_are_counted(tmp_path: Path, caller_in: CallerIn) -> None:
    """The gauges count the records of open agents, and queries count by whether the archive was in memory."""
    async with caller_in(tmp_path) as call:
        await call("POST", "/v1/agents/ann/remember", HELLO)
        await call("POST", "/v1/agents/ann/flush", {})
        for _ in range(3):
            await call("POST", "/v1/agents/ann/recall", {"query": "Where did I move?"})
        samples = await scraped(call.service)
        stored = {
            kind: of(samples, "ebbtide_stored", kind) for kind in ("message", "memory", "entity", "link")
        }
        assert stored["message"] == stored["memory"] == 1
        assert stored["entity"] >= 1 and stored["link"] >= stored["entity"]
        assert of(samples, "ebbtide_archive_uses_total", "loaded") == 1
        assert of(samples, "ebbtide_archive_uses_total", "in_memory") == 2
        await call("POST", "/v1/agents/ann/forget", {"nodes": ["n1"]})
        samples = await scraped(call.service)
        assert of(samples, "ebbtide_stored", "memory") == 0
        assert of(samples, "ebbtide_compactions_total") == 1
        assert of(samples, "ebbtide_compactions_due") == 0


async def test_statements_are_gauged_by_kind_and_state(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each statement counts once, in its present state; a conflict is open until it is settled or deleted."""
    ann = "/v1/agents/ann"

    async def says(call: Caller, **fields: str) -> str:
        body = {"subject": "I", "topic": "residence", **fields}
        answer = await call("POST", f"{ann}/statements", body)
        return str(answer.json()["id"])

    async with caller_in(tmp_path) as call:
        assert of(await scraped(call.service), "ebbtide_open_conflicts") == 0
        first = await says(call, object="Lisbon")
        await says(call, object="Porto", replaces=first)
        await says(call, topic="likes", object="tea", kind="preference")
        contested = await says(call, object="Faro")
        samples = await scraped_when_read(call.service)
        assert of(samples, "ebbtide_statements", "fact", "superseded") == 1
        assert of(samples, "ebbtide_statements", "fact", "contested") == 2
        assert of(samples, "ebbtide_statements", "preference", "current") == 1
        assert of(samples, "ebbtide_open_conflicts") == 1
        assert 0 < of(samples, "ebbtide_store_used_bytes") <= of(samples, "ebbtide_store_bytes")
        await call("DELETE", f"{ann}/nodes/{contested}")
        samples = await scraped_when_read(call.service)
        assert of(samples, "ebbtide_open_conflicts") == 0
        assert of(samples, "ebbtide_statements", "fact", "current") == 1
        assert of(samples, "ebbtide_statements", "fact", "contested") == 0


async def test_requests_are_counted_by_verb_and_outcome(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each request is counted once, with its error family if it failed, and its duration."""
    async with caller_in(tmp_path) as call:
        await call("POST", "/v1/agents/ann/remember", HELLO)
        await call("POST", "/v1/agents/ann/remember", {"messages": []})
        await call("POST", "/v1/agents/nobody/flush", {})
        samples = await scraped(call.service)
        transport = call.transport
    requests = "ebbtide_requests_total"
    assert of(samples, requests, transport, "remember", "ok") == 1
    assert of(samples, requests, transport, "remember", "InvalidRequest") == 1
    assert of(samples, requests, transport, "flush", "NotFound") == 1
    assert of(samples, "ebbtide_request_duration_seconds_count", transport, "remember") == 2


async def test_batches_and_memories_are_counted(tmp_path: Path) -> None:
    """Accepted, digested, created, passes and model calls by task are counted; a replayed batch does not count."""
    async with service_in(tmp_path) as service:
        for _ in range(2):
            await tell(service, "ann", "I moved to Lisbon.", "My dog is Rex.", idempotency_key="k1")
        await settle(service, "ann")
        samples = await scraped(service)
    assert of(samples, "ebbtide_batches_total", "accepted") == 1
    assert of(samples, "ebbtide_batches_total", "digested") == 1
    assert of(samples, "ebbtide_nodes_total", "created") == 2
    assert of(samples, "ebbtide_passes_total") == 1
    assert of(samples, "ebbtide_model_calls_total", "segment", "ok") == 1
    assert of(samples, "ebbtide_open_agents") == 1
    assert of(samples, "ebbtide_pending_batches") == 0
    assert of(samples, "ebbtide_store_bytes") > 0
    assert of(samples, "ebbtide_disk_free_bytes") > 0
    assert of(samples, "ebbtide_ready") == 2


async def test_entities_pins_fillers_and_ignored_relations_are_counted(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Each change counts once: an entity made and gone, a pin set and removed, a courtesy, an unknown relation."""
    ann = "/v1/agents/ann"
    said = ("Clara plays the cello in Porto.", "Thanks, that was great!")
    async with caller_in(tmp_path) as call:
        messages = [{"role": "user", "content": text} for text in said]
        await call("POST", f"{ann}/remember", {"messages": messages})
        await call("POST", f"{ann}/flush", {})
        made = len((await call("GET", f"{ann}/entities")).json()["entities"])
        for method in ("PUT", "PUT", "DELETE"):
            await call(method, f"{ann}/nodes/n1/pin")
        await call("POST", f"{ann}/recall", {"relations": ["about", "colleague", "cause"]})
        await call("DELETE", f"{ann}/nodes/n1")
        samples = await scraped(call.service)
    assert made >= 2
    assert (
        of(samples, "ebbtide_entities_total", "made") == of(samples, "ebbtide_entities_total", "gone") == made
    )
    assert of(samples, "ebbtide_pins_total", "pinned") == of(samples, "ebbtide_pins_total", "unpinned") == 1
    assert of(samples, "ebbtide_fillers_total") == 1
    assert of(samples, "ebbtide_relations_ignored_total") == 2


async def test_a_parked_batch_is_counted_at_once(tmp_path: Path) -> None:
    """The gauge is updated without a further request to the agent, and bad replies are a separate count."""
    model = ScriptedModel()
    model.always["segment"] = BadReply("nonsense")
    bounds = {"park_after_attempts": 1, "max_bad_replies": 1}
    async with service_in(tmp_path, model, language=bounds) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        [agent] = service.fleet.open_agents
        await eventually(lambda: agent.counts.parked_batches == 1)
        samples = await scraped(service)
    assert of(samples, "ebbtide_parked_batches") == 1
    assert of(samples, "ebbtide_batches_total", "parked") == 1
    assert of(samples, "ebbtide_model_calls_total", "segment", "bad_reply") >= 1


async def test_agents_are_labels_only_if_configured(tmp_path: Path) -> None:
    """No id by default; with `metrics.per_agent`, a limited number of ids."""
    for name, apart, most in (("a", False, 100), ("b", True, 100), ("c", True, 2)):
        options = {"per_agent": apart, "max_agents": most}
        async with service_in(tmp_path / name, metrics=options) as service:
            for agent in ("secret-ann", "secret-bea", "secret-cid"):
                await tell(service, agent, "I moved to Lisbon in May.")
                await settle(service, agent)
            samples = await scraped(service)
            told = {label for _, labels in samples for label in labels if label.startswith("secret")}
            assert len(told) == (min(3, most) if apart else 0)


async def test_metrics_are_served_as_prometheus_reads_them(tmp_path: Path) -> None:
    """Metrics have Prometheus' content type and format, and contain no message text."""
    async with rest_in(tmp_path) as call:
        await call("POST", "/v1/agents/ann/remember", HELLO)
        response = await call("GET", "/metrics")
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "ebbtide_requests_total" in response.text
        assert "Lisbon" not in response.text
        assert "ann" not in {word for line in response.text.splitlines() for word in line.split('"')}


def taking(saved: bytearray) -> Callable[[bytes], Awaitable[object]]:
    """Consume the pieces of a file."""

    async def take(piece: bytes) -> None:
        saved.extend(piece)

    return take


async def in_pieces(content: bytes) -> AsyncIterator[bytes]:
    """Yield a file in pieces, as it is uploaded."""
    yield content


# --- readiness -----------------------------------------------------------------------------------------------


async def test_agents_that_cannot_be_opened_degrade_readiness(tmp_path: Path) -> None:
    """Unfinished work that cannot be resumed degrades readiness until it resumes or the agent is erased."""
    model = ScriptedModel()
    model.always["segment"] = 1000.0
    async with service_in(tmp_path, model) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
    data = tmp_path / "agents" / "ann" / "data.mdb"
    kept = data.read_bytes()
    data.write_bytes(b"\xff" * len(kept))
    async with service_in(tmp_path, ScriptedModel()) as service:
        await eventually(lambda: bool(service.fleet.unresumed))
        readiness = await get_readiness(service)
        assert readiness.status == "degraded"
        assert "agents with waiting work that could not be opened: 1 (STORE_CORRUPTED)" in readiness.reasons
        data.write_bytes(kept)
        await settle(service, "ann")
        assert (await get_readiness(service)).status == "ready"


async def test_agents_that_are_deleted_or_restored_during_the_start_do_not_degrade_readiness(
    tmp_path: Path,
) -> None:
    """A deleted agent is not resumed, and one that is being restored is resumed after that."""
    async with service_in(tmp_path, ScriptedModel()) as service:
        fleet, ann = service.fleet, AgentId("ann")
        await tell(service, "ann", "I moved to Lisbon in May.")
        await fleet.close(ann)
        fleet._restoring.add(ann)
        resuming = asyncio.create_task(fleet._resume_one(ann))
        await fleet._resume_one(AgentId("gone"))
        await asyncio.sleep(0.05)
        assert not resuming.done()
        assert not fleet.unresumed
        fleet._restoring.discard(ann)
        fleet._room.notify()
        await resuming
        assert [agent.id for agent in fleet.open_agents] == ["ann"]


@pytest.mark.parametrize("mending", ["put back", "erased", "restored"])
async def test_agents_with_damaged_data_degrade_readiness(tmp_path: Path, mending: str) -> None:
    """A damaged agent degrades readiness, counted without its id, until it is erased, restored or repaired."""
    async with service_in(tmp_path) as service:
        for name in ("ann", "bea"):
            await tell(service, name, "I moved to Lisbon in May.")
            await settle(service, name)
        saved = bytearray()
        with await backup_agent(service, AgentRequest(agent_id="ann")) as leaving:
            await leaving.hand_over(taking(saved))
    data = tmp_path / "agents" / "ann" / "data.mdb"
    sound = data.read_bytes()
    data.write_bytes(b"\xff" * len(sound))
    async with service_in(tmp_path) as service:
        assert (await get_readiness(service)).status == "ready"
        for _ in range(2):
            with pytest.raises(Corrupted):
                await tell(service, "ann", "Hello.")
        await tell(service, "bea", "Hello.")
        readiness = await get_readiness(service)
        assert readiness.status == "degraded"
        assert readiness.reasons == ["agents whose data is damaged: 1 (STORE_CORRUPTED)"]
        if mending == "put back":
            data.write_bytes(sound)
            await tell(service, "ann", "Hello.")
        elif mending == "erased":
            await delete_agent(service, AgentRequest(agent_id="ann"))
        else:
            request = RestoreAgentRequest(agent_id="ann", replace=True)
            await restore_agent(service, request, in_pieces(bytes(saved)))
        await eventually(lambda: not service.fleet.damaged)
        assert (await get_readiness(service)).status == "ready"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_data_directory_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    """A data directory that cannot be written is unavailable, and readiness says so."""
    async with service_in(tmp_path) as service:
        (tmp_path / "work").chmod(0o500)
        try:
            assert (await get_readiness(service)).status == "unavailable"
        finally:
            (tmp_path / "work").chmod(0o700)


async def test_a_waiting_digest_degrades_readiness(tmp_path: Path) -> None:
    """A digest that waits because its store refuses writes degrades readiness, with a message."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "One.")
        await settle(service, "ann")
        [agent] = service.fleet.open_agents

        def refuse(*_: object) -> object:
            raise Exhausted("the disk is full", reason="STORE_FULL")

        inbox: Any = agent.workspace.inbox
        next_task, inbox.next_task = inbox.next_task, refuse
        await tell(service, "ann", "Two.")
        await eventually(lambda: agent.digest.is_held_up)
        assert (await get_readiness(service)).reasons == ["digests wait: the store refused"]
        inbox.next_task = next_task
        await settle(service, "ann")
        assert (await get_readiness(service)).status == "ready"
