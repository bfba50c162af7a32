"""A text that takes too long to process is refused or parked, over both transports, and harms nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import InvalidRequest
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.offload.pool import TextWorkers
from ebbtide.verbs.batches import BatchRequest, retry_batch
from ebbtide.verbs.forget import ForgetRequest, forget_memories
from ebbtide.verbs.memories import UpdateNodeRequest, update_node
from tests.support import looking, worker_tasks
from tests.support.callers import CALLERS, CallerIn
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.in_process import ask, service_in, settle, tell

AGENT = "/v1/agents/ann"
LINES = "".join(f"Kettle {n} is blue, and my sister Clara plays the cello on day {n}.\n" for n in range(900))
"""Long enough for a worker process, and otherwise valid."""

NO_TIME = {"text_timeout_ms": 1}


@pytest.fixture(params=[*CALLERS, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return ALL_CALLERS[request.param]


class HurriedWorkers(TextWorkers):
    """Workers that time out every call: they sleep instead, because a busy machine may notice a short limit late."""

    def _submit(self, size: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Future[Any]:
        return super()._submit(size, worker_tasks.sleep, ("", 600.0))


@pytest.fixture
def hurried() -> Iterator[TextWorkers]:
    """Workers that time out every call."""
    made = HurriedWorkers(time_limit_s=0.01)
    yield made
    made.close()


async def test_request_that_takes_too_long_is_refused(caller_in: CallerIn, tmp_path: Path) -> None:
    """A body, the texts of a batch or a query over the time limit is TEXT_TOO_COMPLEX; nothing is stored."""
    async with caller_in(tmp_path, limits=NO_TIME) as call:
        hello = {"messages": [{"role": "user", "content": "The kettle is blue."}]}
        assert (await call("POST", f"{AGENT}/remember", hello)).status_code == 202
        body = {"messages": [{"role": "user", "content": LINES}] * 30}
        assert await call.refused("POST", f"{AGENT}/remember", body) == "TEXT_TOO_COMPLEX"
        text = {"messages": [{"role": "user", "content": LINES[:12_000]}]}
        assert await call.refused("POST", f"{AGENT}/remember", text) == "TEXT_TOO_COMPLEX"
        question = {"query": LINES[:10_000]}
        assert await call.refused("POST", f"{AGENT}/recall", question) == "TEXT_TOO_COMPLEX"
        assert (await call("POST", f"{AGENT}/flush", {})).status_code == 200
        answer = await call("POST", f"{AGENT}/recall", {"query": "What is blue?", "dates": False})
        assert answer.json()["text"] == "[Memory] The kettle is blue."


async def test_long_texts_are_remembered_and_found(caller_in: CallerIn, tmp_path: Path) -> None:
    """Within the limit a long text becomes memories, cites its bytes, and is found, like a short one."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "tag"})
        content = LINES + "My address is ann@example.org."
        body = {"messages": [{"role": "user", "content": content}]}
        done = await call("POST", f"{AGENT}/remember", body)
        assert done.json()["pii"] == {"email": 1}
        assert (await call("POST", f"{AGENT}/flush", {})).status_code == 200
        found = await call("POST", f"{AGENT}/search", {"query": "kettle 777", "max_results": 1})
        [memory] = found.json()["memories"]
        [source] = memory["sources"]
        assert "Kettle 777 is blue" in source["quote"]
        assert source["quote"] == content.encode()[source["offset"] :][: source["length"]].decode()


async def test_batch_that_takes_too_long_is_parked(tmp_path: Path, hurried: TextWorkers) -> None:
    """A batch that exceeds the time limit is parked, and the next one is digested. A retry with more time succeeds."""
    async with service_in(tmp_path / "data") as service:
        builtin_model = service.fleet.shared.fallback
        assert isinstance(builtin_model, BuiltinModel)
        patient, builtin_model.texts = builtin_model.texts, hurried
        await tell(service, "ann", LINES)
        await tell(service, "ann", "The kettle is blue.")
        await settle(service, "ann")
        parked = await looking.batch(service, "ann", "b1")
        assert (parked.state, parked.attempts) == ("parked", 1)
        assert parked.last_error.startswith("TEXT_TOO_COMPLEX: ")
        assert (await ask(service, "ann")).text == "[Memory] The kettle is blue."
        builtin_model.texts = patient
        await retry_batch(service, BatchRequest(agent_id="ann", batch_id="b1"))
        await settle(service, "ann", passes=False)
        assert (await looking.batch(service, "ann", "b1")).state == "digested"


async def test_correction_and_erasure_that_take_too_long_are_refused(
    tmp_path: Path, hurried: TextWorkers
) -> None:
    """A memory keeps its content, and a topic erases nothing; with more time both succeed."""
    async with service_in(tmp_path / "data") as service:
        await tell(service, "ann", "The kettle is blue.")
        await tell(service, "ann", LINES)
        await settle(service, "ann", passes=False)
        [agent] = service.fleet.open_agents
        builtin_model, patient = agent.builtin_model, agent.workspace.texts
        assert isinstance(builtin_model, BuiltinModel)
        agent.workspace.texts = builtin_model.texts = hurried
        with pytest.raises(InvalidRequest) as corrected:
            await update_node(service, UpdateNodeRequest(agent_id="ann", node_id="n1", content=LINES))
        with pytest.raises(InvalidRequest) as erased:
            await forget_memories(service, ForgetRequest(agent_id="ann", topic="kettle 777"))
        assert (corrected.value.reason, erased.value.reason) == ("TEXT_TOO_COMPLEX", "TEXT_TOO_COMPLEX")
        agent.workspace.texts = builtin_model.texts = patient
        assert (await ask(service, "ann", "blue.")).text
        assert (await forget_memories(service, ForgetRequest(agent_id="ann", topic="kettle 777"))).partly == [
            "m2"
        ]
