"""Slow, silent, faulty and missing models: the waiting time of callers, and the fate of batches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import EbbtideError, Precondition
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.language.port import BadReply, ModelUnavailable, Segment
from ebbtide.verbs.agents import UpdateAgentRequest, close_agent, update_agent
from ebbtide.verbs.batches import BatchRequest, retry_batch
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.search import SearchRequest, search
from tests.support import looking
from tests.support.in_process import ask, service_in, settle, tell
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import Stopwatch, eventually

FOR_EVER = 3600.0


class Choosy(ScriptedModel):
    """A model without a usable reply for conversations that contain `poison`."""

    def __init__(self, poison: str) -> None:
        super().__init__()
        self.poison = poison

    @property
    def tries(self) -> int:
        return sum(t == "segment" and self.poison in " ".join(texts) for t, texts in self.log)

    async def segment(self, messages: Any, *, max_chars: int) -> list[Segment]:
        answer = await super().segment(messages, max_chars=max_chars)
        if self.poison and any(self.poison in message.text for message in messages):
            raise BadReply("cannot make sense of it")
        return answer


# --- a model that hangs or is slow -------------------------------------------------------------------


@pytest.mark.alone
async def test_hanging_model_delays_neither_remember_nor_recall(tmp_path: Path) -> None:
    """While the model hangs, remember acknowledges at once, and recall answers within its patience."""
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "The kettle is blue.")
        await settle(service, "ann")
        model.always["segment"] = FOR_EVER
        for said in range(1, 4):
            watch = Stopwatch()
            done = await tell(service, "ann", f"Fact number {said}.")
            assert watch.s < 0.5
            assert done.pending_batches == said
        watch = Stopwatch()
        found = await ask(service, "ann", patience_ms=400)
        assert 0.3 < watch.s < 0.9, "it waits its patience, and no longer"
        assert found.pending_batches == 3
        assert "kettle" in found.text


@pytest.mark.alone
async def test_patience_of_the_daemon_is_the_default(tmp_path: Path) -> None:
    """A recall without its own patience waits `recall_patience_ms`."""
    model = ScriptedModel()
    model.always["segment"] = FOR_EVER
    async with service_in(tmp_path / "data", model, fleet={"recall_patience_ms": 300}) as service:
        await tell(service, "ann", "The kettle is blue.")
        watch = Stopwatch()
        assert (await ask(service, "ann")).pending_batches == 1
        assert 0.25 < watch.s < 0.8


async def test_a_query_finds_a_text_that_is_not_digested(tmp_path: Path) -> None:
    """While the model hangs, a query and a search answer with what was just said, and report that it is pending."""
    model = ScriptedModel()
    model.always["segment"] = FOR_EVER
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "The kettle in Lisbon is blue.")
        found = await ask(service, "ann", query="Which colour has the kettle?")
        assert "The kettle in Lisbon is blue." in found.text
        assert found.pending_batches == 1
        listed = await search(service, SearchRequest(agent_id="ann", query="Which colour has the kettle?"))
        assert [memory.content for memory in listed.memories] == ["The kettle in Lisbon is blue."]


@pytest.mark.parametrize(
    ("fields", "daemon_ms", "expected"),
    [
        ({"query": "kettle"}, 2000, []),
        ({"query": "kettle", "archive": "always"}, 2000, []),
        ({"query": "kettle", "patience_ms": 700}, 2000, [0.7]),
        ({"query": "kettle", "archive": "never"}, 2000, [2.0]),
        ({"query": "kettle", "archive": "when_needed"}, 2000, [2.0]),
        ({"relations": ["next"]}, 2000, [2.0]),
    ],
)
async def test_the_default_patience_depends_on_what_a_recall_can_see(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    daemon_ms: int,
    expected: list[float],
) -> None:
    """A query that searches the archive does not wait; a recall of digested memories waits as set."""
    waits: list[float] = []

    async def wait(_: Agent, patience_s: float, __: object) -> None:
        waits.append(patience_s)

    monkeypatch.setattr(Agent, "wait_for_digest", wait)
    async with service_in(tmp_path / "data", fleet={"recall_patience_ms": daemon_ms}) as service:
        await tell(service, "ann", "The kettle is blue.")
        await ask(service, "ann", **fields)
    assert waits == expected


async def test_a_query_after_a_burst_does_not_wait(tmp_path: Path) -> None:
    """While ten batches wait for the model, a query answers at once, and completely."""
    model = ScriptedModel()
    model.always["segment"] = FOR_EVER
    async with service_in(tmp_path / "data", model) as service:
        for number in range(10):
            await tell(service, "ann", f"Kettle number {number} is blue.")
        found = await ask(service, "ann", query="Which colour has kettle number 9?")
        assert "Kettle number 9 is blue." in found.text
        assert found.pending_batches == 10


@pytest.mark.alone
async def test_recall_without_patience_does_not_wait(tmp_path: Path) -> None:
    """With `patience_ms = 0` a recall answers from the digested memories."""
    model = ScriptedModel()
    model.always["segment"] = FOR_EVER
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "The kettle is blue.")
        watch = Stopwatch()
        assert (await ask(service, "ann", patience_ms=0)).pending_batches == 1
        assert watch.s < 0.2


async def test_hang_of_one_agent_leaves_another_alone(tmp_path: Path) -> None:
    """An agent whose model call hangs does not stop another from remembering, digesting and recalling."""
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model, language={"model_concurrency": 2}) as service:
        model.script["segment"].append(FOR_EVER)
        await tell(service, "stuck", "This one never ends.")
        await eventually(lambda: model.running == 1)
        watch = Stopwatch()
        await tell(service, "free", "The kettle is blue.")
        found = await ask(service, "free", "kettle")
        assert watch.s < 1.0
        assert (found.text, found.pending_batches) == ("[Memory] The kettle is blue.", 0)
        assert (await ask(service, "stuck", patience_ms=0)).pending_batches == 1


@pytest.mark.alone
async def test_recall_does_not_wait_when_digests_take_longer_than_it_would(tmp_path: Path) -> None:
    """If this agent's recent digests took longer than the patience, a recall does not wait at all."""
    model = ScriptedModel()
    model.always["segment"] = 0.6
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "The kettle is blue.")
        await settle(service, "ann")
        await tell(service, "ann", "The cup is red.")
        watch = Stopwatch()
        found = await ask(service, "ann", patience_ms=450)
        assert watch.s < 0.3
        assert found.pending_batches == 1
        watch = Stopwatch()
        found = await ask(service, "ann", patience_ms=5000)
        assert watch.s < 1.5
        assert found.pending_batches == 0
        assert "cup" in found.text


async def test_fast_model_recall_finds_the_latest_message(tmp_path: Path) -> None:
    """With a fast model a recall right after a remember finds it, without a flush, every time."""
    async with service_in(tmp_path / "data", ScriptedModel()) as service:
        for turn in range(12):
            await tell(service, "ann", f"Box {turn} holds item{turn}x.")
            found = await ask(service, "ann", f"item{turn}x")
            assert found.pending_batches == 0
            assert f"item{turn}x" in found.text


@pytest.mark.alone
async def test_flush_answers_when_its_time_is_up(tmp_path: Path) -> None:
    """A flush that times out reports the state instead of failing."""
    model = ScriptedModel()
    model.always["segment"] = FOR_EVER
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "The kettle is blue.")
        watch = Stopwatch()
        answer = await settle(service, "ann", timeout_ms=300)
        assert 0.25 < watch.s < 0.8
        assert not answer.digested
        assert answer.pending_batches == 1


# --- no server ---------------------------------------------------------------------------------------


@pytest.mark.alone
async def test_outage_keeps_order_counts_nothing_and_ends_by_itself(tmp_path: Path) -> None:
    """Without a server batches wait in order, uncounted and without delaying requests; then they are digested."""
    model = ScriptedModel()
    model.always["segment"] = ModelUnavailable("connection refused")
    language = {"retry_base_ms": 500, "retry_cap_ms": 500}
    async with service_in(tmp_path / "data", model, language=language) as service:
        for number in range(1, 5):
            await tell(service, "ann", f"Fact number {number}.")
        await eventually(lambda: looking.opened_agent(service, "ann").digest.is_held_up)
        watch = Stopwatch()
        found = await ask(service, "ann", patience_ms=5000)
        assert watch.s < 0.4, "nobody waits for a server that is not there"
        assert found.pending_batches == 4
        await eventually(lambda: model.calls["segment"] >= 3)
        waiting = await looking.batches(service, "ann")
        assert [(b.state, b.attempts) for b in waiting] == [("waiting", 0)] * 4
        assert {texts[0] for task, texts in model.log if task == "segment"} == {"Fact number 1."}
        model.always.clear()
        assert (await settle(service, "ann")).digested
        done = await looking.batches(service, "ann")
        assert [(b.state, b.attempts) for b in done] == [("digested", 0)] * 4
        contents = [node.content for node in await looking.nodes(service, "ann")]
        assert contents == [f"Fact number {number}." for number in range(1, 5)]
        assert [b.node_ids for b in done] == [["n1"], ["n2"], ["n3"], ["n4"]]


async def test_call_is_repeated_with_patience_before_the_batch_waits(tmp_path: Path) -> None:
    """A call survives `max_retries` transport failures without delaying the digest."""
    model = ScriptedModel()
    model.script["segment"].extend([ModelUnavailable("502")] * 3)
    async with service_in(tmp_path / "data", model, language={"max_retries": 3}) as service:
        await tell(service, "ann", "The kettle is blue.")
        await settle(service, "ann")
        assert model.calls["segment"] == 4
        assert service.model_client.tallies["segment"].unavailable == 3


async def test_answers_from_before_an_outage_are_kept(tmp_path: Path) -> None:
    """With an unstable server a digest keeps the replies for the batch at the head."""
    model = ScriptedModel()
    model.script["segment"].append(
        lambda: [Segment("The kettle is blue.", (0,)), Segment("The cup is red.", (0,))]
    )
    for _ in range(2):
        model.script["process"].extend([0.0, ModelUnavailable("reset")])
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "The kettle is blue. The cup is red.")
        await settle(service, "ann")
        assert model.calls["segment"] == 1
        asked = [given[0] for task, given in model.log if task == "process"]
        assert asked == ["The kettle is blue.", "The cup is red.", "The cup is red."]
        contents = [node.content for node in await looking.nodes(service, "ann")]
        assert contents == ["The kettle is blue.", "The cup is red."]


async def test_timeout_of_a_call_is_an_outage_not_a_bad_reply(tmp_path: Path) -> None:
    """A call that exceeds `model_timeout_ms` is an outage, and the batch is not blamed."""
    model = ScriptedModel()
    model.script["segment"].append(FOR_EVER)
    async with service_in(tmp_path / "data", model, language={"model_timeout_ms": 100}) as service:
        await tell(service, "ann", "The kettle is blue.")
        assert (await settle(service, "ann")).digested
        assert (await looking.batch(service, "ann", "b1")).attempts == 0
        assert service.model_client.tallies["segment"].unavailable == 1


# --- replies that cannot be used ---------------------------------------------------------------------


@pytest.mark.alone
async def test_bad_replies_move_a_batch_to_the_tail_then_park_it(tmp_path: Path) -> None:
    """A batch with unusable replies moves to the end, then is parked, listed, and retried by hand. It is never dropped.

    The other batches keep their order, and no request waits for a postponed batch.
    """
    model = Choosy("poison")
    language = {
        "max_bad_replies": 2,
        "park_after_attempts": 3,
        "retry_base_ms": 700,
        "retry_cap_ms": 700,
    }
    async with service_in(tmp_path / "data", model, language=language) as service:
        for text in ("Fact number 1.", "This is poison.", "Fact number 2.", "Fact number 3."):
            await tell(service, "ann", text)
        await eventually(lambda: model.tries >= 2)
        watch = Stopwatch()
        found = await ask(service, "ann", patience_ms=5000)
        assert watch.s < 0.5
        assert found.pending_batches == 1, "the others were digested, the put-off one is not waited for"
        put_off = await looking.batch(service, "ann", "b2")
        assert (put_off.state, put_off.attempts, model.tries) == ("waiting", 1, 2)
        assert put_off.not_before is not None
        assert 0 < put_off.not_before - service.clock.now_ms() <= 700
        assert put_off.last_error == "cannot make sense of it"

        answer = await settle(service, "ann")
        assert (answer.digested, answer.parked_batches) == (True, 1)
        assert model.tries == 6, "two tries a round, three rounds"
        parked = await looking.batches(service, "ann", "parked")
        assert [(b.batch_id, b.attempts) for b in parked] == [("b2", 3)]
        assert (await looking.info(service, "ann")).parked_batches == 1
        assert (await ask(service, "ann")).parked_batches == 1
        contents = [node.content for node in await looking.nodes(service, "ann")]
        assert contents == [f"Fact number {number}." for number in range(1, 4)]

        await close_agent(service, AgentRequest(agent_id="ann"))
        await asyncio.sleep(0.1)
        assert (await looking.batch(service, "ann", "b2")).state == "parked", "also after a close"
        model.poison = ""
        assert (await retry_batch(service, BatchRequest(agent_id="ann", batch_id="b2"))).attempts == 0
        assert (await settle(service, "ann")).parked_batches == 0
        assert (await looking.batch(service, "ann", "b2")).node_ids == ["n4"]
        with pytest.raises(Precondition) as refused:
            await retry_batch(service, BatchRequest(agent_id="ann", batch_id="b2"))
        assert refused.value.reason == "BATCH_NOT_PARKED"


async def test_delayed_batch_is_behind_all_others(tmp_path: Path) -> None:
    """A failed round moves a batch to the tail: the others run first, even after its pause."""
    model = Choosy("poison")
    model.always["segment"] = 0.1
    language = {"max_bad_replies": 1, "retry_base_ms": 10, "park_after_attempts": 2}
    async with service_in(tmp_path / "data", model, language=language) as service:
        for text in ("This is poison.", "Fact number 1.", "Fact number 2.", "Fact number 3."):
            await tell(service, "ann", text)
        await settle(service, "ann")
        asked = [given[0] for task, given in model.log if task == "segment"]
        assert asked == [
            "This is poison.",
            *(f"Fact number {number}." for number in range(1, 4)),
            "This is poison.",
        ]


async def test_delayed_batch_keeps_its_pause_over_a_restart(tmp_path: Path) -> None:
    """The earliest retry time is on disk: a restart neither retries a delayed batch at once nor resets its count."""
    language = {"max_bad_replies": 1, "retry_base_ms": 4000, "retry_cap_ms": 4000}
    model = Choosy("poison")
    async with service_in(tmp_path / "data", model, language=language) as service:
        await tell(service, "ann", "This is poison.")
        await eventually(lambda: model.tries == 1)
        watch = Stopwatch()
        while not (await looking.batch(service, "ann", "b1")).attempts:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    model = Choosy("")
    async with service_in(tmp_path / "data", model, language=language) as service:
        assert model.calls["segment"] == 0
        assert (await looking.batch(service, "ann", "b1")).attempts == 1
        await settle(service, "ann")
        assert 3.5 < watch.s < 40
        assert (await looking.batch(service, "ann", "b1")).state == "digested"


async def test_server_failure_between_bad_replies_is_not_a_round(tmp_path: Path) -> None:
    """Outages and bad replies are counted separately: an outage never brings a batch closer to parking."""
    model = ScriptedModel()
    model.script["segment"].extend(
        [BadReply("?"), ModelUnavailable("gone"), BadReply("?"), ModelUnavailable("gone")]
    )
    language = {"max_bad_replies": 2, "park_after_attempts": 1}
    async with service_in(tmp_path / "data", model, language=language) as service:
        await tell(service, "ann", "The kettle is blue.")
        answer = await settle(service, "ann")
        assert (answer.digested, answer.parked_batches) == (True, 0)
        assert (await looking.batch(service, "ann", "b1")).attempts == 0


async def test_segment_is_the_content_when_no_reply_can_be_used(tmp_path: Path) -> None:
    """If processing fails permanently the segment itself is the memory; the built-in model adds the rest."""
    model = ScriptedModel()
    model.always["process"] = BadReply("not JSON")
    async with service_in(tmp_path / "data", model, language={"max_bad_replies": 3}) as service:
        await tell(service, "ann", "The kettle in Lisbon is blue.")
        await settle(service, "ann")
        [node] = await looking.nodes(service, "ann")
        assert node.content == "The kettle in Lisbon is blue."
        assert node.keywords
        assert node.phrase
        assert model.calls["process"] == 3
        assert (await looking.batch(service, "ann", "b1")).attempts == 0


async def test_relations_without_usable_names_get_the_names_of_the_rules(tmp_path: Path) -> None:
    """If naming fails, rules name the links, so that none is without a name."""
    model = ScriptedModel()
    model.always["relate"] = BadReply("not JSON")
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "The kettle in Lisbon is blue.")
        await tell(service, "ann", "The cup is red.")
        await settle(service, "ann")
        found = {(link.source, link.target, link.relation) for link in await looking.links(service, "ann")}
        memories = [node.id for node in await looking.nodes(service, "ann")]
        between = {link for link in found if {link[0], link[1]} == set(memories)}
        assert between == {(memories[0], memories[1], "after"), (memories[1], memories[0], "before")}
        assert all(relation for _, _, relation in found)
        assert model.calls["relate"] == 6
        assert [b.attempts for b in await looking.batches(service, "ann")] == [0, 0]


async def test_internal_error_is_a_failed_round(tmp_path: Path) -> None:
    """An unexpected exception in a digest neither stops later digests nor loses the batch."""
    model = ScriptedModel()
    model.script["segment"].append(ZeroDivisionError("a bug"))
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "Fact number 1.")
        await tell(service, "ann", "Fact number 2.")
        assert (await settle(service, "ann")).digested
        first = await looking.batch(service, "ann", "b1")
        assert (first.state, first.attempts, first.last_error) == (
            "digested",
            1,
            "internal error: ZeroDivisionError",
        )


# --- closing, restarting, changing meanwhile -----------------------------------------------------------


async def test_close_cancels_the_model_call_and_the_batch_stays_at_the_head(tmp_path: Path) -> None:
    """Close does not wait for the model; the interrupted batch is digested first after the next opening."""
    model = ScriptedModel()
    model.script["segment"].append(FOR_EVER)
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "Fact number 1.")
        await eventually(lambda: model.running == 1)
        watch = Stopwatch()
        assert (await close_agent(service, AgentRequest(agent_id="ann"))).closed
        assert watch.s < 10
        assert model.running == 0
        await asyncio.sleep(0.2)
        assert model.calls["segment"] == 1, "a closed agent rests"
        await tell(service, "ann", "Fact number 2.")
        await settle(service, "ann")
        done = await looking.batches(service, "ann")
        assert [(b.attempts, b.node_ids) for b in done] == [(0, ["n1"]), (0, ["n2"])]


async def test_current_batch_at_a_stop_is_digested_after_the_next_start(tmp_path: Path) -> None:
    """A stop cancels the model call, and the next start digests the batch automatically."""
    model = ScriptedModel()
    model.always["segment"] = FOR_EVER
    watch = Stopwatch()
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", "Fact number 1.")
        await tell(service, "ann", "Fact number 2.")
        await eventually(lambda: model.running == 1)
    assert watch.s < 20
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        await eventually(lambda: model.calls["segment"] == 2)
        await settle(service, "ann")
        assert [b.node_ids for b in await looking.batches(service, "ann")] == [["n1"], ["n2"]]


async def test_disconnect_during_a_commit_leaves_no_orphan(tmp_path: Path) -> None:
    """A batch whose caller disconnected during the commit is either absent or digested like any other."""
    async with service_in(tmp_path / "data", ScriptedModel()) as service:
        await tell(service, "ann", "Fact number 1.")
        await settle(service, "ann")
        begun, may_end = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        workspace = looking.opened_agent(service, "ann").workspace
        accept = workspace.inbox.accept

        def slow(*given: Any) -> Any:
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(may_end.wait(), loop).result(10)
            return accept(*given)

        workspace.inbox.accept = slow  # type: ignore[method-assign]
        request = asyncio.create_task(tell(service, "ann", "Fact number 2."))
        await begun.wait()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        may_end.set()
        answer = await settle(service, "ann", timeout_ms=3000)
        assert answer.digested
        assert answer.pending_batches == 0


async def test_requests_that_store_nothing_leave_the_agent_idle(tmp_path: Path) -> None:
    """Replays and refusals store nothing, so the agent does not appear busy afterwards."""
    async with service_in(tmp_path / "data", ScriptedModel()) as service:
        for agent in ("replayed", "refused", "unparked"):
            await tell(service, agent, "Fact number 1.", idempotency_key="once")
            await settle(service, agent)
        await eventually(lambda: all(agent.is_idle for agent in service.fleet.open_agents))
        await tell(service, "replayed", "Fact number 1.", idempotency_key="once")
        with pytest.raises(EbbtideError):
            await tell(service, "refused", "Another body.", idempotency_key="once")
        with pytest.raises(EbbtideError):
            await retry_batch(service, BatchRequest(agent_id="unparked", batch_id="b77"))
        await eventually(lambda: all(agent.is_idle for agent in service.fleet.open_agents), 3)


async def test_relations_are_requested_again_after_the_focus_moved(tmp_path: Path) -> None:
    """If the focus changes during a model call, the relations are requested again before the commit.

    A digest sees the focus cut to `focus_limit`, so lowering the limit changes it.
    """
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        for number in range(1, 4):
            await tell(service, "ann", f"Fact number {number}.")
        await settle(service, "ann")

        async def change_focus_meanwhile() -> list[str]:
            await update_agent(service, UpdateAgentRequest(agent_id="ann", parameters={"focus_limit": 1}))
            return ["old", "old", "old"]

        model.log.clear()
        model.script["relate"].extend([change_focus_meanwhile, lambda: ["new"]])
        await tell(service, "ann", "Fact number 4.")
        await settle(service, "ann", passes=False)
        asked = [given[1] for task, given in model.log if task == "relate"]
        assert asked == [["Fact number 3.", "Fact number 2.", "Fact number 1."], ["Fact number 3."]]
        assert sum(task == "segment" for task, _ in model.log) == 1, "only the naming is repeated"
        of_new = {
            (link.source, link.target, link.relation)
            for link in await looking.links(service, "ann")
            if "n4" in (link.source, link.target)
        }
        assert of_new == {("n4", "n3", "new"), ("n3", "n4", "new")}
        assert (await looking.info(service, "ann")).focus == ["n4"]
