"""Compression with a language model: requests, use of the replies, and scheduling."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ebbtide.changes import Change
from ebbtide.fleet.compression import passes
from ebbtide.fleet.runtime import slice as slices
from ebbtide.language.builtin.shortening import shorten
from ebbtide.language.port import BadReply, ModelUnavailable, Processed, TextToProcess
from ebbtide.language.served.replies import cut_at_clause
from ebbtide.memory.draft import Draft
from ebbtide.verbs.agents import OpenAgentRequest, close_agent, open_agent
from ebbtide.verbs.batches import CompressRequest, compress
from ebbtide.verbs.inspect import NodeInfo
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service
from tests.support import looking
from tests.support.fading import GARDEN, HARBOUR, KETTLE, QUICKLY, fading
from tests.support.in_process import ask, service_in, settle, tell
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import Stopwatch, eventually

FOR_EVER = 3600.0


async def one_pass(service: Service, agent: str, count: int = 1) -> None:
    """Run this many more passes."""
    await compress(service, CompressRequest(agent_id=agent, passes=count))
    assert (await settle(service, agent)).passes_done


def shortenings(model: ScriptedModel) -> list[tuple[str, int]]:
    """Return (text, target) of every shortening that the model received."""
    return [given for task, given in model.log if task == "process" and given[1] is not None]


def only_shortening(model: ScriptedModel, step: Callable[[str, int], Any]) -> None:
    """Use `step` for shortenings, and the default for everything else."""
    plain = ScriptedModel()

    async def answer() -> Processed:
        text, target = model.log[-1][1]
        if target is None:
            return await plain.process(text)
        told = step(text, target)
        if isinstance(told, Exception):
            raise told
        if asyncio.iscoroutine(told):
            told = await told
        return told if isinstance(told, Processed) else Processed(told, "phrase", ("keyword",))

    model.always["process"] = answer


async def kettle(service: Service) -> NodeInfo:
    """Return the first memory of Ann."""
    return (await looking.nodes(service, "ann"))[0]


# --- what is taken of an answer ------------------------------------------------------------------------


async def test_slightly_long_reply_is_cut_at_the_end_of_a_clause(tmp_path: Path) -> None:
    """A reply of up to 1.25 times the target is cut at the end of a clause, at or below the target."""
    model = ScriptedModel()
    only_shortening(model, lambda text, target: text[: target * 5 // 4])
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        [(text, target)] = shortenings(model)
        assert text == KETTLE
        assert target == len(KETTLE) // 2
        node = await kettle(service)
        assert node.content == "The blue kettle whistles on the old stove every morning"
        assert node.content == cut_at_clause(KETTLE[: target * 5 // 4], target)
        assert (node.phrase, node.keywords) == ("phrase", ["keyword"])
        [rewrite] = node.rewrites
        assert (rewrite.model, rewrite.importance) == ("scripted", 0.5)
        assert (rewrite.length_before, rewrite.length_after) == (len(KETTLE), len(node.content))


class ShortensMany(ScriptedModel):
    """A scripted model that answers up to three texts in one call."""

    async def process_many(self, texts: Sequence[TextToProcess]) -> list[Processed]:
        self.calls["process_many"] += 1
        return [await self.process(t, target_length=most) for t, most, *_ in texts[:3]]


async def test_texts_are_shortened_together_if_the_model_supports_it(tmp_path: Path) -> None:
    """Seven memories that fade in one pass are shortened in three requests, each once and with its own target."""
    model = ShortensMany()
    only_shortening(model, lambda text, target: text[:target])
    texts = [f"{number}: {KETTLE}" for number in range(7)]
    async with service_in(tmp_path / "data", model) as service:
        model.calls.clear()
        await fading(service, "ann", *texts)
        before = model.calls["process_many"]
        await settle(service, "ann")
        asked = shortenings(model)
        assert sorted(text for text, _ in asked) == texts
        nodes = (await looking.nodes(service, "ann"))[:7]
        assert [node.content for node in nodes] == [text[: len(text) // 2] for text in texts]
        assert [len(node.rewrites) for node in nodes] == [1] * 7
        assert 3 <= model.calls["process_many"] <= before + 3


async def test_texts_without_an_answer_are_requested_singly(tmp_path: Path) -> None:
    """A model that fails at many texts, or at the first of them, still shortens every one of them."""
    model = ShortensMany()
    failures = iter([ModelUnavailable("refused"), BadReply("not JSON"), BadReply("not JSON")])
    only_shortening(model, lambda text, target: next(failures, text[:target]))
    texts = [f"{number}: {KETTLE}" for number in range(5)]
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", *texts)
        await settle(service, "ann")
        nodes = (await looking.nodes(service, "ann"))[:5]
        assert [node.content for node in nodes] == [text[: len(text) // 2] for text in texts]


async def test_too_long_reply_is_retried_then_left_to_the_builtin_model(tmp_path: Path) -> None:
    """A reply beyond 1.25 times the target is unusable; after `max_bad_replies` the built-in model shortens."""
    model = ScriptedModel()
    only_shortening(model, lambda text, target: text[: target * 5 // 4 + 1])
    async with service_in(tmp_path / "data", model, language={"max_bad_replies": 3}) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        [(_, target), *again] = shortenings(model)
        assert len(again) == 2
        node = await kettle(service)
        assert node.content == shorten(KETTLE, target)
        assert [rewrite.model for rewrite in node.rewrites] == ["builtin"]
        assert node.scan_count == 2


async def test_second_reply_counts_when_the_first_was_too_long(tmp_path: Path) -> None:
    """A usable reply ends the retries."""
    model = ScriptedModel()
    replies = iter([BadReply("not JSON"), "A kettle, blue."])
    only_shortening(model, lambda text, target: next(replies))
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        assert (await kettle(service)).content == "A kettle, blue."
        assert len(shortenings(model)) == 2


@pytest.mark.alone
async def test_absent_server_keeps_the_content_and_counts_the_scan(tmp_path: Path) -> None:
    """A scan never waits for a server: the content stays, the scan counts, and the next pass tries once again."""
    model = ScriptedModel()
    only_shortening(model, lambda text, target: ModelUnavailable("connection refused"))
    language = {"max_retries": 5, "retry_base_ms": 2000, "retry_cap_ms": 2000}
    async with service_in(tmp_path / "data", model, language=language) as service:
        watch = Stopwatch()
        await fading(service, "ann", KETTLE)
        assert (await settle(service, "ann")).passes_done
        assert watch.s < 1.5, "no back-off is waited for"
        assert len(shortenings(model)) == 1
        node = await kettle(service)
        assert (node.content, node.rewrites, node.scan_count) == (KETTLE, [], 2)
        only_shortening(model, lambda text, target: "A kettle, blue.")
        await one_pass(service, "ann")
        assert [target for _, target in shortenings(model)] == [len(KETTLE) // 2, len(KETTLE) // 4]
        node = await kettle(service)
        assert (node.content, node.scan_count) == ("A kettle, blue.", 3)
        assert node.original_length == len(KETTLE)


async def test_short_targets_are_left_to_the_builtin_model(tmp_path: Path) -> None:
    """The model is used from a target of 20 characters; the built-in model handles shorter ones."""
    text = "The blue kettle sings at dawn, loud."
    assert len(text) // 2 < 20 <= (len(text) + 4) // 2
    model = ScriptedModel()
    only_shortening(model, lambda text, target: "It sings.")
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", text)
        await settle(service, "ann")
        assert shortenings(model) == []
        node = await kettle(service)
        assert node.content == shorten(text, len(text) // 2)
        assert [rewrite.model for rewrite in node.rewrites] == ["builtin"]
        await fading(service, "ben", text.replace("kettle", "old kettle"))
        await settle(service, "ben")
        assert [target for _, target in shortenings(model)] == [20]


async def test_every_shortening_starts_from_the_present_content(tmp_path: Path) -> None:
    """The second shortening starts from the first one, so that nothing that was left out comes back."""
    model = ScriptedModel()
    only_shortening(model, lambda text, target: "The old cat sleeps on it.")
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        assert (await kettle(service)).content == "The old cat sleeps on it."
        # A quarter of the first length is longer than that: nothing to gain. Then an eighth, by the built-in model.
        await one_pass(service, "ann", 2)
        node = await kettle(service)
        assert node.content and set(node.content.split()) <= {"The", "old", "cat", "sleeps", "on", "it."}
        assert [rewrite.model for rewrite in node.rewrites] == ["scripted", "builtin"]
    model = ScriptedModel()
    only_shortening(model, lambda text, target: "x" * target)
    async with service_in(tmp_path / "other", model) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        await one_pass(service, "ann")
        length = len(KETTLE)
        assert shortenings(model) == [(KETTLE, length // 2), ("x" * (length // 2), length // 4)]
        node = await kettle(service)
        assert node.content == "x" * (length // 4)
        assert [(r.length_before, r.length_after) for r in node.rewrites] == [
            (length, length // 2),
            (length // 2, length // 4),
        ]


async def test_first_content_outlives_a_restart(tmp_path: Path) -> None:
    """The built-in model ranks the first content, also after the agent was closed and opened again."""
    async with service_in(tmp_path / "data") as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        half = (await kettle(service)).content
        await close_agent(service, AgentRequest(agent_id="ann"))
        await one_pass(service, "ann")
        quarter = (await kettle(service)).content
    assert half == shorten(KETTLE, len(KETTLE) // 2)
    assert quarter == shorten(half, len(KETTLE) // 4, KETTLE)


async def test_latest_sixteen_rewrites_are_kept(tmp_path: Path) -> None:
    """A node lists its latest 16 rewrites with pass, importance and lengths, oldest first."""
    model = ScriptedModel()
    only_shortening(model, lambda text, target: text[:target].ljust(target, "."))
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", KETTLE * 10, decay_rate=0.9, min_shrink=0.0, segment_max_chars=2000)
        await settle(service, "ann")
        for _ in range(2):
            await one_pass(service, "ann", 10)
        rewrites = (await kettle(service)).rewrites
        passes = [rewrite.pass_number for rewrite in rewrites]
        assert passes == list(range(passes[-1] - 15, passes[-1] + 1))
        assert passes[-1] == (await looking.info(service, "ann")).finished_passes == 22
        for earlier, later in pairwise(rewrites):
            assert later.importance < earlier.importance
            assert later.length_before == earlier.length_after > later.length_after


async def test_content_that_stays_is_no_rewrite(tmp_path: Path) -> None:
    """A model that returns the content unchanged rewrites nothing, and the memory keeps its phrase and keywords."""
    model = ScriptedModel()
    only_shortening(model, lambda text, target: text)
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        after = await kettle(service)
        assert shortenings(model) == [(KETTLE, len(KETTLE) // 2)]
        assert after.content == KETTLE
        assert after.phrase != "phrase" and after.keywords != ["keyword"]
        assert not after.rewrites


async def test_node_changed_during_shortening_is_not_overwritten(tmp_path: Path) -> None:
    """A shortening is applied only if the content has not changed since the request."""
    model = ScriptedModel()

    async def changed_meanwhile(text: str, target: int) -> str:
        agent = looking.opened_agent(service, "ann")
        await agent.run(lambda: rewritten(agent.workspace))
        return "y" * target

    def rewritten(workspace: Any) -> None:
        node = workspace.store.read(lambda txn: txn.nodes.get(1))
        short = msgspec.structs.replace(node, content=node.content[:70])
        workspace.commit(Change(nodes=[short]))

    only_shortening(model, changed_meanwhile)
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        node = await kettle(service)
        assert node.content == KETTLE[:70], "half of the first length saves less than a quarter of it"
        assert node.rewrites == []
        assert node.scan_count == 2


# --- slices ------------------------------------------------------------------------------------------


async def test_model_that_hangs_on_one_text_does_not_stop_a_memory_from_forgetting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a request for a node times out twice, the node keeps its content, its scan counts, and the pass continues."""
    monkeypatch.setattr(slices, "MIN_MODEL_TIME_S", 0.1)
    model = ScriptedModel()
    only_shortening(model, lambda text, target: asyncio.sleep(FOR_EVER) if text == KETTLE else "x" * target)
    async with service_in(tmp_path / "data", model, fleet={"time_slice_ms": 100}) as service:
        await fading(service, "ann", KETTLE, HARBOUR)
        assert (await settle(service, "ann")).passes_done
        assert [text for text, _ in shortenings(model)] == [KETTLE, KETTLE, HARBOUR]
        first, second, *_ = await looking.nodes(service, "ann")
        assert (first.content, first.scan_count, first.rewrites) == (KETTLE, 2, [])
        assert len(second.content) < len(HARBOUR)
        assert model.running == 0


async def test_slice_cuts_a_model_call_off_and_the_node_is_first_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model call ends with its slice; the interrupted node starts the next slice, and its scan counts only then."""
    monkeypatch.setattr(slices, "MIN_MODEL_TIME_S", 0.2)
    model = ScriptedModel()
    counts_at_cut: list[int] = []

    def step(text: str, target: int) -> Any:
        if len(shortenings(model)) == 1:
            return asyncio.sleep(FOR_EVER)
        if len(shortenings(model)) == 2:
            network = looking.opened_agent(service, "ann").workspace.network
            counts_at_cut.append(network.scan_count(1))
        return "x" * target

    only_shortening(model, step)
    async with service_in(tmp_path / "data", model, fleet={"time_slice_ms": 100}) as service:
        watch = Stopwatch()
        await fading(service, "ann", KETTLE, HARBOUR)
        assert (await settle(service, "ann")).passes_done
        assert 0.2 < watch.s < 15
        assert [text for text, _ in shortenings(model)] == [KETTLE, KETTLE, HARBOUR]
        assert counts_at_cut == [1]
        assert model.running == 0
        first, second, *_ = await looking.nodes(service, "ann")
        assert [r.pass_number for node in (first, second) for r in node.rewrites] == [2, 2]
        assert (first.scan_count, second.scan_count) == (2, 2)
        assert (await looking.info(service, "ann")).finished_passes == 2


async def test_model_call_gets_five_seconds_however_short_the_slice(tmp_path: Path) -> None:
    """A slow model call is not cancelled by a slice that is nearly over."""
    assert slices.MIN_MODEL_TIME_S == 5.0
    model = ScriptedModel()

    async def slowly(text: str, target: int) -> str:
        await asyncio.sleep(0.6)
        return "x" * target

    only_shortening(model, slowly)
    async with service_in(tmp_path / "data", model, fleet={"time_slice_ms": 100}) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        assert len(shortenings(model)) == 1
        assert (await kettle(service)).content == "x" * (len(KETTLE) // 2)


async def test_agents_take_turns_slice_by_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When its time is up an agent moves to the end of the ring: two agents alternate, and neither starves."""
    model = ScriptedModel()

    both_wait = asyncio.Event()

    async def slowly(text: str, target: int) -> str:
        await both_wait.wait()
        await asyncio.sleep(0.12)
        return "x" * target

    only_shortening(model, slowly)
    fleet = {"time_slice_ms": 100}
    # Digests must reach the model while a shortening uses one of its slots.
    language = {"model_concurrency": 4}
    async with service_in(tmp_path / "data", model, fleet=fleet, language=language) as service:
        for agent in ("ann", "ben"):
            mine = [text.replace("The", f"{agent}'s") for text in (KETTLE, HARBOUR, GARDEN)]
            await open_agent(service, OpenAgentRequest(agent_id=agent, parameters=QUICKLY))
            await tell(service, agent, *mine, "A ladder stands beside it.", "A lantern is in focus.")
            await settle(service, agent)
        for agent in ("ann", "ben"):
            await tell(service, agent, "The postman looks elsewhere now.")
            await settle(service, agent, passes=False)
        both_wait.set()
        for agent in ("ann", "ben"):
            await settle(service, agent)
        order = [text.partition("'")[0] for text, _ in shortenings(model)]
        assert order == ["ann", "ben"] * 3


@pytest.mark.alone
async def test_slice_yields_to_foreground_work_of_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice ends after its current step while jobs of the same agent wait, and the pass continues later."""
    monkeypatch.setattr(passes, "SCANS_PER_COMMIT", 1)
    async with service_in(tmp_path / "data", ScriptedModel()) as service:
        await open_agent(service, OpenAgentRequest(agent_id="ann", parameters={"long_term_factor": 0.0}))
        for number in range(5):
            await tell(service, "ann", *(f"Fact {number} {index}." for index in range(20)))
        await settle(service, "ann")
        agent = looking.opened_agent(service, "ann")
        scheduler = service.fleet.scheduler
        plain = agent.workspace.passes.compress
        steps = 0

        def one_node_a_step(finished: Any, is_time_up: Any, most_tasks: int) -> Any:
            nonlocal steps
            steps += 1
            time.sleep(0.02)
            return plain(finished, lambda: True, most_tasks)

        agent.workspace.passes.compress = one_node_a_step  # type: ignore[method-assign]
        await compress(service, CompressRequest(agent_id="ann", passes=1))
        # Background jobs of the agent, such as those after a digest, may interrupt the first slices.
        for _ in range(5):
            reached, before = steps, scheduler.tally.slices
            await eventually(lambda until=reached + 4: steps >= until)
            if scheduler.tally.slices == before:
                break
        assert scheduler.tally.slices == before, "undisturbed, a slice goes on"
        watch = Stopwatch()
        await asyncio.gather(*(ask(service, "ann", f"{number}") for number in range(8)))
        assert watch.s < 1.5, "a pass of a hundred steps takes longer than two seconds"
        assert scheduler.tally.slices > before, "disturbed, it ended"
        assert (await looking.info(service, "ann")).owed_passes == 1, "before its pass was through"
        assert (await settle(service, "ann")).passes_done


# --- whose turn it is at the model ---------------------------------------------------------------------


async def test_foreground_model_calls_go_first(tmp_path: Path) -> None:
    """A later model call of a digest runs before a shortening that has waited longer."""
    model = ScriptedModel()
    gate_is_shut = asyncio.Event()

    async def held(text: str, target: int) -> str:
        await gate_is_shut.wait()
        return "x" * target

    only_shortening(model, held)
    async with service_in(tmp_path / "data", model, fleet={"compression_concurrency": 2}) as service:
        for agent in ("ann", "ben"):
            await open_agent(service, OpenAgentRequest(agent_id=agent, parameters=QUICKLY))
            await tell(service, agent, KETTLE, "A ladder stands beside it.", "A lantern is in focus.")
            await settle(service, agent)
        await tell(service, "ann", "The postman looks elsewhere now.")
        await eventually(lambda: model.running == 1)
        # Ben's slice begins while Ann's call uses the only slot, so it must not need a digest of its own.
        ben = looking.opened_agent(service, "ben")
        await ben.run(lambda: move_focus_on(ben))
        await compress(service, CompressRequest(agent_id="ben", passes=1))
        await eventually(lambda: len(service.model_client.limiter._waiting) == 1)
        await tell(service, "cat", "A first word.")
        await eventually(lambda: len(service.model_client.limiter._waiting) == 2)
        model.log.clear()
        gate_is_shut.set()
        for agent in ("cat", "ann", "ben"):
            await settle(service, agent)
        assert model.log[0] == ("segment", ["A first word."])
        assert shortenings(model) == [(KETTLE, len(KETTLE) // 2)]


def move_focus_on(agent: Any) -> None:
    """Empty the focus, as an erasure of its nodes would."""
    draft = Draft(agent.workspace.network)
    draft.set_focus(())
    agent.workspace.commit(draft.change)


@pytest.mark.parametrize("concurrency", [1, 2, 3])
async def test_concurrent_slices_are_limited(tmp_path: Path, concurrency: int) -> None:
    """Exactly `compression_concurrency` agents shorten at a time."""
    model = ScriptedModel()
    at_once = most = 0

    async def slowly(text: str, target: int) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.1)
        at_once -= 1
        return "x" * target

    only_shortening(model, slowly)
    sections: dict[str, Any] = {
        "fleet": {"compression_concurrency": concurrency},
        "language": {"model_concurrency": 8},
    }
    async with service_in(tmp_path / "data", model, **sections) as service:
        agents = [f"agent{number}" for number in range(5)]
        await asyncio.gather(*(fading(service, agent, KETTLE, HARBOUR) for agent in agents))
        await asyncio.gather(*(settle(service, agent) for agent in agents))
        assert most == concurrency
        assert len(shortenings(model)) == 10


# --- over a restart --------------------------------------------------------------------------------------


async def test_pass_resumes_at_its_node_after_a_restart(tmp_path: Path) -> None:
    """An interrupted pass resumes at its node, under its number, and visits no node twice."""
    model = ScriptedModel()

    def step(text: str, target: int) -> Any:
        return asyncio.sleep(FOR_EVER) if text == HARBOUR else "x" * target

    only_shortening(model, step)
    watch = Stopwatch()
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", KETTLE, HARBOUR, GARDEN)
        await eventually(lambda: len(shortenings(model)) == 2 and model.running == 1)
        told = await looking.info(service, "ann")
        assert (told.finished_passes, told.owed_passes) == (1, 1)
        counts = [node.scan_count for node in await looking.nodes(service, "ann")]
        assert counts[:3] == [2, 1, 1]
    assert watch.s < 20, "a stop does not wait for the model"
    model = ScriptedModel()
    only_shortening(model, lambda text, target: "y" * target)
    async with service_in(tmp_path / "data", model) as service:
        await eventually(lambda: len(shortenings(model)) == 2)
        assert (await settle(service, "ann")).passes_done
        assert [text for text, _ in shortenings(model)] == [HARBOUR, GARDEN]
        first, second, third, *_ = await looking.nodes(service, "ann")
        assert first.content == "x" * (len(KETTLE) // 2)
        assert second.content == "y" * (len(HARBOUR) // 2)
        assert [node.scan_count for node in (first, second, third)] == [2, 2, 2]
        assert [r.pass_number for node in (first, second, third) for r in node.rewrites] == [2, 2, 2]
        told = await looking.info(service, "ann")
        assert (told.finished_passes, told.owed_passes) == (2, 0)


async def test_close_pauses_a_pass(tmp_path: Path) -> None:
    """A closed agent does not compress. Its pass continues with the next verb."""
    model = ScriptedModel()
    only_shortening(model, lambda text, target: asyncio.sleep(FOR_EVER))
    async with service_in(tmp_path / "data", model) as service:
        await fading(service, "ann", KETTLE)
        await eventually(lambda: len(shortenings(model)) == 1)
        await close_agent(service, AgentRequest(agent_id="ann"))
        assert model.running == 0
        only_shortening(model, lambda text, target: "x" * target)
        await asyncio.sleep(0.3)
        assert len(shortenings(model)) == 1
        await settle(service, "ann")
        assert len(shortenings(model)) == 2
        assert [r.pass_number for r in (await kettle(service)).rewrites] == [2]


async def test_owed_passes_are_done_one_by_one(tmp_path: Path) -> None:
    """Each owed pass runs: none is merged below `max_owed_passes`."""
    async with service_in(tmp_path / "data", ScriptedModel()) as service:
        await fading(service, "ann", KETTLE)
        await settle(service, "ann")
        before = await looking.info(service, "ann")
        last = (await looking.nodes(service, "ann"))[-2]
        await one_pass(service, "ann", 37)
        after = await looking.info(service, "ann")
        assert after.finished_passes == before.finished_passes + 37
        living = {node.id: node for node in await looking.nodes(service, "ann")}
        assert last.id not in living or living[last.id].scan_count == last.scan_count + 37
