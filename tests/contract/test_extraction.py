"""Extraction of statements by a model: what is stored, what waits, and what a lying, slow or broken model cannot do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbtide.language.port import BadReply, ModelUnavailable, ProposedStatement, Utterance
from ebbtide.verbs.metrics import get_metrics
from tests.contract.test_statements import done, says, values, year_ms
from tests.support.callers import CALLERS, Caller, CallerIn, rest_in
from tests.support.looking import opened_agent
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import Stopwatch, eventually

AGENT = "/v1/agents/ann"
HOME = ProposedStatement(0, "I live in Lisbon", "I", "fact", "residence", "Lisbon")


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


class Listing(ScriptedModel):
    """A model that lists given statements, whatever the messages say; by default those of the rules."""

    def __init__(self, *listed: ProposedStatement) -> None:
        super().__init__()
        self.listed = list(listed)
        self.asked: list[list[Utterance]] = []

    async def extract(
        self, messages: Sequence[Utterance], *, topics: Sequence[str]
    ) -> list[ProposedStatement]:
        self.asked.append(list(messages))
        found = await super().extract(messages, topics=topics)
        return self.listed or found


async def said(call: Caller, *texts: str, **fields: Any) -> str:
    """Remember messages of the user. Return the batch."""
    messages = [{"role": "user", "content": text} for text in texts]
    response = await call("POST", f"{AGENT}/remember", {"messages": messages, **fields})
    assert response.status_code == 202, response.text
    batch: str = response.json()["batch_id"]
    return batch


async def flushed(call: Caller, **fields: Any) -> dict[str, Any]:
    """Wait until everything is digested and statements are extracted."""
    return await done(call, "POST", "flush", {"timeout_ms": 20_000, "extraction": True, **fields})


async def status(call: Caller, batch: str) -> str:
    """Return the state of the extraction of a batch."""
    found: str = (await done(call, "GET", f"batches/{batch}"))["extraction"]
    return found


def rejections(call: Any) -> dict[str, float]:
    """Return how many statements the gate refused, by reason."""
    family = call.service.metrics.extraction_rejections
    return {
        sample.labels["reason"]: sample.value
        for metric in family.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }


async def test_a_model_extracts_statements(tmp_path: Path, caller_in: CallerIn) -> None:
    """Statements of a model cite the bytes of the message, name the model, and can be waited for."""
    model = Listing(
        HOME,
        replace(HOME, message=1, quote="我对青霉素过敏", subject="我", topic="过敏", object="青霉素"),
        replace(HOME, message=1, quote="我住在苏州", subject="我", object="苏州"),
    )
    async with caller_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        batch = await said(call, "Well —  I LIVE in\u00a0Lisbon, near the river.", "我对青霉素过敏，记一下。")
        state = await flushed(call)
        assert (state["digested"], state["unextracted_messages"]) == (True, 0)
        assert await status(call, batch) == "done"
        assert sorted(await values(call)) == [("Lisbon", "current"), ("青霉素", "current")]
        [home] = (await done(call, "GET", "statements", topic="residence"))["statements"]
        assert (home["author"], home["confidence"]) == ("model:scripted", 0.6)
        assert [quote["text"] for quote in home["quotes"]] == ["I LIVE in\u00a0Lisbon"]
        assert rejections(call) == {"quote": 1}
        assert len(model.asked) == 1


CHANGES = [
    ("employer", "Initech", "Globex", "I got a new job at Globex."),
    ("employer", "Globex", "Hooli", "I started at Hooli last week."),
    ("employer", "Hooli", "字节", "我换工作了，现在在字节上班。"),
    ("employer", "字节", "腾讯", "我跳槽到了腾讯。"),
    ("occupation", "engineer", "team lead", "I was promoted to team lead."),
    ("occupation", "team lead", "经理", "我被提拔为经理了。"),
    ("partner", "Tom", "Ben", "I married Ben last week."),
    ("marital_status", "single", "engaged", "I got engaged."),
    ("diet", "meat", "vegan", "I went vegan."),
    ("diet", "vegan", "素", "我开始吃素了。"),
    ("diet", "素", "肉", "我又吃肉了。"),
    ("diet", "肉", "meat", "I eat meat again."),
]
"""Topics with the value before, and the value after words that report a change."""


async def test_free_words_of_a_change_end_the_value_before(tmp_path: Path) -> None:
    """Only the new value is true, whether a client or a rule made the statement. Other topics are left alone."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        owned = {"residence": "Lisbon"} | {topic: old for topic, old, *_ in reversed(CHANGES)}
        for subject in ("I", "Ann Walsh"):
            for topic, old in owned.items():
                await says(call, topic, old, subject)
        for topic, _, new, words in CHANGES:
            await says(call, topic, new, "Ann Walsh", content=words)
            await said(call, words)
            await flushed(call)
            owned[topic] = new
            for subject in ("I", "Ann Walsh"):
                profile = await done(call, "GET", "profile", entity=subject)
                found = {
                    one["slot"]: [each["object"] for each in one["statements"]] for one in profile["slots"]
                }
                assert found == {slot: [value] for slot, value in owned.items()}, words


async def test_the_end_of_a_marriage_ends_the_partner(tmp_path: Path) -> None:
    """A denial in free words ends the value that it names, by a client and by a rule."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        for subject in ("I", "Ann Walsh"):
            await says(call, "partner", "Tom", subject)
        ended = await says(call, "partner", "Tom", "Ann Walsh", negated=True, content="We split up.")
        assert len(ended["superseded"]) == 1
        await said(call, "I divorced Tom.")
        await flushed(call)
        found = (await done(call, "GET", "statements", topic="partner"))["statements"]
        assert [(one["object"], one["negated"], one["state"]) for one in found] == [
            ("Tom", True, "current")
        ] * 2


@pytest.mark.parametrize("words", ["We split up.", "我离婚了。"])
async def test_a_parting_without_a_name_ends_the_partner(tmp_path: Path, words: str) -> None:
    """The end of a partnership ends every partner of the speaker, and none of another person."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        for subject in ("I", "Ann Walsh"):
            await says(call, "partner", "Tom", subject)
        await said(call, words)
        await flushed(call)
        listed = [
            (await done(call, "GET", "statements", topic="partner", subject=subject, states=state))[
                "statements"
            ]
            for subject, state in (("I", "superseded"), ("Ann Walsh", "current"))
        ]
        assert [[one["object"] for one in part] for part in listed] == [["Tom"], ["Tom"]]
        [denial] = (await done(call, "GET", "statements", topic="partner", subject="I"))["statements"]
        assert (denial["object"], denial["negated"], denial["content"]) == (
            "",
            True,
            words[:-1].rstrip("。."),
        )


@pytest.mark.parametrize(
    ("first", "second", "residence"),
    [
        ("My sister Clara lives in Berlin.", "Clara moved to Vienna.", "Vienna"),
        ("我妹妹小雨住在杭州。", "小雨搬到广州了。", "广州"),
    ],
)
async def test_a_person_who_was_named_is_a_subject(
    tmp_path: Path, first: str, second: str, residence: str
) -> None:
    """A sentence about a relative by name is read once the relative was named; others are left alone."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await said(call, first)
        await flushed(call)
        await said(call, second, "Bob moved to Rome.", "大卫搬到上海了。")
        await flushed(call)
        homes = (await done(call, "GET", "statements", topic="residence"))["statements"]
        assert [one["object"] for one in homes] == [residence]


async def test_entities_and_statements_of_one_message_are_applied_in_memory(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A message that gives several statements and new entities is followed in memory, without a rebuild."""
    async with caller_in(tmp_path / "data") as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await said(call, "My sister Clara works at Siemens. I live in Lisbon and I am allergic to nuts.")
        await flushed(call)
        found = {value for value, _ in await values(call)}
        assert found == {"Clara", "Siemens", "Lisbon", "nuts"}


@pytest.mark.parametrize("mode", ["rules", "model", "rules+model", "off"])
async def test_each_mode_asks_whom_it_names(tmp_path: Path, caller_in: CallerIn, mode: str) -> None:
    """The parameter says whether rules, the model, or both extract; both store a statement once."""
    model = Listing()
    async with caller_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": mode})
        assert (await call("GET", AGENT)).json()["parameters"]["extraction"] == mode
        batch = await said(call, "I live in Lisbon.")
        await flushed(call)
        assert len(model.asked) == ("model" in mode)
        found = (await done(call, "GET", "statements"))["statements"]
        authors = [one["author"] for one in found]
        expected = {"off": [], "model": ["model:scripted"]}.get(mode, ["rules@2"])
        assert authors == expected
        assert [len(one["quotes"]) for one in found] == [1] * len(expected)
        assert await status(call, batch) == ("none" if mode == "off" else "done")


async def test_unusable_replies_are_replaced_by_rules(tmp_path: Path, caller_in: CallerIn) -> None:
    """After two unusable replies the rules extract, and the status of the batch says so, also after a restart."""
    model = Listing()
    model.always["extract"] = BadReply("not JSON")
    async with caller_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        batch = await said(call, "I live in Lisbon.", "The weather is fine.")
        await flushed(call)
        assert model.calls["extract"] == 2
        assert await status(call, batch) == "by_rules"
        [home] = (await done(call, "GET", "statements"))["statements"]
        assert (home["object"], home["author"]) == ("Lisbon", "rules@2")
    async with caller_in(tmp_path, Listing()) as call:
        assert await status(call, batch) == "by_rules"


async def test_an_unavailable_model_is_waited_for(tmp_path: Path) -> None:
    """Without a model server, the digest of further batches continues, and statements come when it is back."""
    model = Listing()
    model.always["extract"] = ModelUnavailable("refused")
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        first = await said(call, "I live in Lisbon.")
        await eventually(lambda: model.calls["extract"] > 2)
        second = await said(call, "I'm allergic to penicillin.")
        state = await done(call, "POST", "flush", {"timeout_ms": 10_000})
        assert (state["digested"], state["unextracted_messages"]) == (True, 2)
        assert [await status(call, one) for one in (first, second)] == ["waiting", "waiting"]
        assert await values(call) == []
        agent = opened_agent(call.service, "ann")
        assert (agent.digest.is_held_up, agent.extraction.is_held_up) == (False, True)
        del model.always["extract"]
        assert (await flushed(call))["unextracted_messages"] == 0
        assert sorted(await values(call)) == [("Lisbon", "current"), ("penicillin", "current")]


async def test_a_slow_model_holds_up_nobody(tmp_path: Path) -> None:
    """While the model thinks about statements, remember, recall, digests and another agent continue."""
    model, thinking = Listing(), asyncio.Event()

    async def think() -> list[ProposedStatement]:
        await thinking.wait()
        return [HOME]

    model.script["extract"].append(think)
    async with rest_in(tmp_path, model, language={"model_concurrency": 2}) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        await said(call, "I live in Lisbon.")
        await eventually(lambda: model.calls["extract"] == 1)
        agent = opened_agent(call.service, "ann")
        await eventually(lambda: agent.mailbox.is_idle)
        watch = Stopwatch()
        await said(call, "The kettle is violet.")
        assert (await done(call, "POST", "flush", {"timeout_ms": 10_000}))["digested"]
        assert "violet" in (await call("POST", f"{AGENT}/recall", {"query": "kettle"})).text
        other = {"messages": [{"role": "user", "content": "The harbour is deep."}]}
        await call("POST", "/v1/agents/bob/remember", other)
        found = (await call("POST", "/v1/agents/bob/flush", {"timeout_ms": 10_000})).json()
        assert found["digested"]
        assert watch.s < 10
        assert await values(call) == []
        thinking.set()
        await flushed(call)
        assert await values(call) == [("Lisbon", "current")]


async def test_large_batches_are_split_and_no_message_is_left_out(tmp_path: Path) -> None:
    """A request has at most ten messages and 2 000 characters; every message of the user is in one of them."""
    model = Listing()
    filler = "The weather was fine and we walked along the river. " * 30
    texts = [f"I'm allergic to nut{number}." for number in range(23)]
    texts += [f"{filler}I'm allergic to milk.", filler * 3]
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        await said(call, *texts)
        await flushed(call)
        shown = [one.text for request in model.asked for one in request]
        assert "".join(shown) == "".join(texts)
        assert max(map(len, model.asked)) == 10
        assert all(sum(len(one.text) for one in request) <= 2000 for request in model.asked)
        expected = {*(f"nut{number}" for number in range(23)), "milk"}
        assert {value for value, _ in await values(call)} == expected


async def test_the_assistant_is_context_only(tmp_path: Path) -> None:
    """A model sees the end of what the assistant said, and statements about it are refused."""
    model = Listing(replace(HOME, quote="I live in Ghent", object="Ghent"), replace(HOME, message=1))
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        messages = [
            {"role": "assistant", "content": f"{'Well. ' * 100}I live in Ghent. And you?"},
            {"role": "user", "content": "I live in Lisbon."},
            {"role": "system", "content": "You live in Rome."},
        ]
        await call("POST", f"{AGENT}/remember", {"messages": messages})
        await flushed(call)
        [request] = model.asked
        assert [(one.role, len(one.text) <= 200) for one in request] == [("assistant", True), ("user", True)]
        assert request[0].text.endswith("And you?")
        assert await values(call) == [("Lisbon", "current")]
        assert rejections(call) == {"role": 1}


async def test_conversations_are_not_mixed(tmp_path: Path) -> None:
    """Messages of two conversations are never in one request."""
    model = Listing()
    model.script["extract"].append(ModelUnavailable("refused"))
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        for number in range(4):
            await said(call, f"The kettle number {number} is violet.", conversation_id=f"c{number // 2}")
        await flushed(call)
        requests = [[one.text[18] for one in request] for request in model.asked]
        assert [group for group in requests if set(group) - {"0", "1"} and set(group) & {"0", "1"}] == []
        assert {number for group in requests for number in group} == {"0", "1", "2", "3"}


async def test_without_kept_texts_statements_are_extracted_before_the_digest(tmp_path: Path) -> None:
    """With `retention=none` a statement is stored before its text is deleted, and only once after a failed digest."""
    model = Listing()
    model.script["relate"].append(ModelUnavailable("refused"))
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model", "retention": "none"})
        await said(call, "The kettle is violet.")
        await flushed(call)
        batch = await said(call, "I live in Lisbon, near the violet kettle.")
        state = await flushed(call)
        assert state["unextracted_messages"] == 0
        assert await status(call, batch) == "done"
        [home] = (await done(call, "GET", "statements"))["statements"]
        assert (home["object"], home["author"]) == ("Lisbon", "model:scripted")
        assert [quote["text"] for quote in home["quotes"]] in ([""], [None], [])
        assert "Lisbon" in (await call("POST", f"{AGENT}/recall", {"query": "Where do I live?"})).text
        found = (await done(call, "GET", "statements", states="current,contested,superseded"))["statements"]
        assert len(found) == 1


async def test_a_parked_batch_is_extracted_when_it_is_retried(tmp_path: Path) -> None:
    """The statements of a batch that was parked while later ones were read are not lost."""
    model = Listing()
    model.script["segment"].append(BadReply("no"))
    async with rest_in(tmp_path, model, language={"park_after_attempts": 1, "max_bad_replies": 1}) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        parked = await said(call, "I live in Lisbon.")
        await said(call, "I'm allergic to penicillin.")
        await flushed(call)
        assert await values(call) == [("penicillin", "current")]
        assert await status(call, parked) == "waiting"
        await done(call, "POST", f"batches/{parked}/retry")
        await flushed(call)
        assert sorted(await values(call)) == [("Lisbon", "current"), ("penicillin", "current")]
        assert await status(call, parked) == "done"


async def test_a_message_that_is_erased_meanwhile_gives_nothing(tmp_path: Path) -> None:
    """A statement of a text that was forgotten while the model thought is not stored."""
    model, thinking = Listing(), asyncio.Event()

    async def think() -> list[ProposedStatement]:
        await thinking.wait()
        return [HOME]

    model.script["extract"].append(think)
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        await said(call, "I live in Lisbon.")
        await eventually(lambda: model.calls["extract"] == 1)
        await done(call, "POST", "forget", {"topic": "Lisbon"})
        thinking.set()
        await flushed(call)
        assert await values(call) == []


async def test_what_a_recall_returned_is_no_statement(tmp_path: Path) -> None:
    """A pasted memory gives no evidence, and a recall of the same message while it waits changes nothing."""
    line = "I live in Lisbon, near the old river harbour."
    model, thinking = Listing(), asyncio.Event()

    async def think() -> list[ProposedStatement]:
        await thinking.wait()
        return [HOME]

    model.script["extract"].append(think)
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        await said(call, line)
        await eventually(lambda: model.calls["extract"] == 1)
        assert line in (await call("POST", f"{AGENT}/recall", {"query": "Lisbon"})).json()["text"]
        thinking.set()
        await flushed(call)
        assert await values(call) == [("Lisbon", "current")]
        # A message that is one recalled line is stored, because people repeat themselves.
        await said(call, line)
        await flushed(call)
        [home] = (await done(call, "GET", "statements"))["statements"]
        assert len(home["quotes"]) == 1
        assert rejections(call) == {"echo": 1}


async def test_personal_data_and_secrets(tmp_path: Path) -> None:
    """A secret is never in a statement; under `redact` the model sees no personal data."""
    secret = "My name is Bob and my password is hunter2xZ9."
    model = Listing(
        replace(HOME, quote=secret, topic="name", object="Bob"),
        replace(HOME, quote="My mail is ann@example.com", topic="email", object="ann@example.com"),
    )
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": "rules+model", "pii": "redact"})
        await said(call, "My mail is ann@example.com.", secret)
        await flushed(call)
        assert "ann@" not in str(model.asked)
        assert await values(call) == [("Bob", "current")]
    model.listed = [replace(HOME, quote=secret, topic="name", object="Bob")]
    async with rest_in(tmp_path / "plain", model) as call:
        await call("PUT", AGENT, {"extraction": "rules+model"})
        await said(call, secret)
        await flushed(call)
        # The rules quote the clause with the name, which has no secret.
        [name] = (await done(call, "GET", "statements"))["statements"]
        assert name["content"] == "My name is Bob"
        assert "hunter2" not in str(name)
        assert rejections(call)["secret"] == 1


async def test_turning_extraction_on_reads_what_was_said_before(tmp_path: Path) -> None:
    """A change of the parameter is enough to start; nothing new has to be said."""
    async with rest_in(tmp_path, Listing()) as call:
        batch = await said(call, "I live in Lisbon.")
        assert (await flushed(call))["unextracted_messages"] == 0
        assert await status(call, batch) == "none"
        await call("PATCH", AGENT, {"extraction": "model"})
        await flushed(call)
        assert await values(call) == [("Lisbon", "current")]
        await eventually(lambda: opened_agent(call.service, "ann").is_idle)


async def test_nothing_is_extracted_from_the_reason_of_a_ruling(tmp_path: Path, caller_in: CallerIn) -> None:
    """A reason explains a ruling. It is not a message of a conversation, even if it states a fact."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await said(call, "I live in Lisbon.")
        await flushed(call)
        [home] = (await done(call, "GET", "statements"))["statements"]
        await done(call, "POST", f"statements/{home['id']}/retract", {"reason": "I live in Faro."})
        await said(call, "I'm allergic to peanuts.")
        await flushed(call)
        listed = (await done(call, "GET", "statements"))["statements"]
        assert [one["object"] for one in listed] == ["peanuts"]


@pytest.mark.parametrize("room", ["limit", "retract", "delete"])
async def test_a_full_agent_pauses_extraction(tmp_path: Path, caller_in: CallerIn, room: str) -> None:
    """At max_statements messages wait unread, flush says so at once, and nothing is lost when there is room again."""
    async with caller_in(tmp_path, Listing()) as call:
        await call("PUT", AGENT, {"extraction": "rules", "max_statements": 1})
        await said(call, "My sister's name is Clara.")
        assert (await flushed(call))["extraction_paused"] == ""
        batch = await said(call, "I live in Lisbon.", "I'm allergic to penicillin.")
        state = await flushed(call, timeout_ms=600_000)
        assert (state["unextracted_messages"], state["extraction_paused"]) == (2, "max_statements")
        assert await status(call, batch) == "waiting"
        assert rejections(call) == {}
        assert b"ebbtide_held_up_extractions 1.0" in await get_metrics(call.service)
    async with caller_in(tmp_path, Listing()) as call:
        [first] = (await done(call, "GET", "statements"))["statements"]
        state = await flushed(call, timeout_ms=600_000)
        assert (state["unextracted_messages"], state["extraction_paused"]) == (2, "max_statements")
        if room == "limit":
            await call("PATCH", AGENT, {"max_statements": 10})
        elif room == "retract":
            await done(call, "POST", f"statements/{first['id']}/retract", {})
        else:
            await done(call, "DELETE", f"nodes/{first['id']}")
        state = await flushed(call)
        found = {value for value, _ in await values(call)}
        if room == "limit":
            assert (state["unextracted_messages"], found) == (0, {"Clara", "Lisbon", "penicillin"})
        else:
            assert (state["unextracted_messages"], found) == (1, {"Lisbon"})
            assert state["extraction_paused"] == "max_statements"


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_what_a_memory_said_ends_with_it(tmp_path: Path, caller_in: CallerIn, method: str) -> None:
    """The statements extracted from a corrected or deleted memory go with its words; all others stay."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await said(call, "I live in Kathmandu.")
        await said(call, "I am allergic to nuts.")
        await flushed(call)
        await done(call, "POST", "statements", {"subject": "I", "topic": "pet", "object": "a dog"})
        assert {value for value, _ in await values(call)} == {"Kathmandu", "nuts", "a dog"}
        body = {"content": "I like tea very much."} if method == "PATCH" else None
        response = await call(method, f"{AGENT}/nodes/n1", body)
        assert response.status_code == 200, response.text
        await flushed(call)
        found = {value for value, _ in await values(call, states="current,contested,superseded,corrected")}
        assert {"nuts", "a dog"} <= found and "Kathmandu" not in found
        recalled = await done(call, "POST", "recall", {"query": "Where do I live?"})
        assert "Kathmandu" not in recalled["text"]


async def test_a_statement_keeps_its_other_source(tmp_path: Path, caller_in: CallerIn) -> None:
    """A statement that another memory also says stays, and a change of metadata ends no statement."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await said(call, "I live in Kathmandu.")
        await said(call, "I live in Kathmandu.", conversation_id="other")
        await flushed(call)
        [home] = (await done(call, "GET", "statements"))["statements"]
        assert len(home["quotes"]) == 2
        await done(call, "DELETE", "nodes/n1")
        [home] = (await done(call, "GET", "statements"))["statements"]
        assert len(home["quotes"]) == 1
        [other] = (await done(call, "GET", "batches/b2"))["node_ids"]
        await done(call, "PATCH", f"nodes/{other}", {"metadata": {"checked": "yes"}})
        assert await values(call) == [("Kathmandu", "current")]


@pytest.mark.parametrize("text", ["My birthday is 7 May 1990.", "我的生日是1990年5月7日。"])
async def test_a_birthday_is_no_time_of_its_statement(tmp_path: Path, caller_in: CallerIn, text: str) -> None:
    """The date is the value alone. The statement is true from when it was said, and is shown without a time."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await said(call, text)
        await flushed(call)
        [one] = (await done(call, "GET", "statements"))["statements"]
        assert (one["slot"], one.get("time_words", "")) == ("birthday", "")
        assert one["since"] == one["told_at"]
        shown = (await done(call, "GET", "profile"))["text"]
        assert "since" not in shown and "自" not in shown and one["object"] in shown
        recalled = (await done(call, "POST", "recall", {"query": text}))["text"]
        assert "since" not in recalled and "自" not in recalled


@pytest.mark.parametrize(
    ("mode", "quote", "value", "end"),
    [
        ("rules", "I live in Rome from 2015 to 2044", "Rome", 2045),
        ("model", "I live in Rome from 2015 to 2044", "Rome", 2045),
        ("model", "我2015年到2019年住在罗马", "罗马", 2020),
    ],
)
async def test_an_extracted_period_has_both_its_ends(
    tmp_path: Path, mode: str, quote: str, value: str, end: int
) -> None:
    """A range of dates in a message says until when its statement is true."""
    model = Listing(replace(HOME, quote=quote, object=value))
    async with rest_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"extraction": mode})
        await said(call, quote)
        await flushed(call)
        found = await done(call, "GET", "statements", topic="residence", states="current,ended")
        [home] = found["statements"]
        assert (home["object"], home["since"], home["until"]) == (value, year_ms(2015), year_ms(end))


async def test_a_change_of_metadata_moves_the_statements_of_a_memory(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """They cite the message that the memory becomes, with the same words, once, also after a further change."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await said(call, "你好。I live in Kathmandu because I work at Acme.")
        await flushed(call)
        await done(call, "POST", "consolidate")
        before = (await done(call, "GET", "statements"))["statements"]
        assert {one["object"] for one in before} == {"Kathmandu", "Acme"}
        assert len((await done(call, "GET", "rulings", kinds="cause"))["rulings"]) == 1
        for number, checked in enumerate(("yes", "no")):
            await done(call, "PATCH", "nodes/n1", {"metadata": {"checked": checked}})
            await flushed(call)
            if number:
                await done(call, "POST", "close")
            node = await done(call, "GET", "nodes/n1")
            after = (await done(call, "GET", "statements"))["statements"]
            assert [one["id"] for one in after] == [one["id"] for one in before]
            for one, earlier in zip(after, before, strict=True):
                [quote], [first] = one["quotes"], earlier["quotes"]
                assert quote["text"] == first["text"] and one["confidence"] == earlier["confidence"]
                shown = await done(call, "GET", f"nodes/{one['id']}")
                assert shown["sources"][0]["metadata"] == {"checked": checked}
                assert quote["message_index"] == node["sources"][0]["message_index"]
            assert len((await done(call, "GET", "rulings", kinds="cause"))["rulings"]) == 1
            listed = await done(call, "GET", "nodes", kinds="fact", metadata=f'{{"checked": "{checked}"}}')
            assert len(listed["nodes"]) == 2
        await done(call, "DELETE", "nodes/n1")
        assert (await done(call, "GET", "statements"))["statements"] == []


@pytest.mark.parametrize("moved", ["我搬到波尔图了。", "我上个月搬到波尔图了。", "我从里斯本搬到了波尔图。"])
async def test_a_move_ends_the_home_before(tmp_path: Path, caller_in: CallerIn, moved: str) -> None:
    """After a move, the question where the user lives is answered by the new home only."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        earlier = {"role": "user", "content": "我住在里斯本。", "timestamp": 1_600_000_000_000}
        await done(call, "POST", "remember", {"messages": [earlier]})
        await said(call, moved)
        await flushed(call)
        found = await done(call, "POST", "statements/search", {"query": "我现在住在哪里？"})
        assert [one["object"] for one in found["statements"]] == ["波尔图"]


async def recalled_by(call: Caller, query: str) -> list[str]:
    """Return the memories that a query recalls, as they are shown."""
    text: str = (await done(call, "POST", "recall", {"query": query}))["text"]
    return text.split("\n---\n")


async def remembered(call: Caller, *texts: str) -> None:
    """Remember messages of the user, one batch each, with the statements that the rules find."""
    await call("PUT", AGENT, {"extraction": "rules"})
    for text in texts:
        await said(call, text)
        await flushed(call)


@pytest.mark.parametrize(
    ("texts", "query", "now", "then"),
    [
        (
            ["I live in Leeds with my husband Tom.", "I like tea.", "I moved to Sheffield."],
            "Where do I live now?",
            ("I moved to Sheffield.", "(since "),
            ("I live in Leeds", "(Leeds until ", "; then Sheffield)"),
        ),
        (
            ["My name is Ann and I live in Lisbon. I am allergic to nuts.", "I moved to Porto."],
            "Where do I live now?",
            ("I moved to Porto.", "(since "),
            ("I live in Lisbon", "(Lisbon until ", "; then Porto)"),
        ),
        (
            ["我住在里斯本，在华为工作。", "我搬到了波尔图。"],
            "我现在住在哪里？",
            ("我搬到了波尔图。", "（自 "),
            ("我住在里斯本", "（里斯本：至 ", "；之后：波尔图）"),
        ),
    ],
)
async def test_a_fact_that_is_still_true_hides_no_past_one(
    tmp_path: Path,
    caller_in: CallerIn,
    texts: list[str],
    query: str,
    now: tuple[str, str],
    then: tuple[str, str, str],
) -> None:
    """A message with a past value and a current one is marked as past for the question about the past one.

    The mark names the value that is over.
    """
    async with caller_in(tmp_path) as call:
        await remembered(call, *texts)
        first, *others = await recalled_by(call, query)
        assert all(words in first for words in now)
        [past] = [one for one in others if then[0] in one]
        assert then[1] in past and past.endswith(then[2]) and now[1] not in past


@pytest.mark.parametrize(
    ("text", "asks_for_other", "note"),
    [
        ("I live in Leeds with my husband Tom.", "Who is my husband?", "(since "),
        ("我住在里斯本，在华为工作。", "我在哪里工作？", "（自 "),
    ],
)
async def test_a_past_fact_ends_no_other_of_its_message(
    tmp_path: Path, caller_in: CallerIn, text: str, asks_for_other: str, note: str
) -> None:
    """The question about the fact that is still true is answered with since when."""
    async with caller_in(tmp_path) as call:
        await remembered(call, text, "I moved to Sheffield." if text.isascii() else "我搬到了波尔图。")
        recalled = await recalled_by(call, asks_for_other)
        [shown] = [one for one in recalled if text in one]
        assert note in shown


async def test_words_that_name_the_old_and_the_new_value_are_current(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A message that states both the past value and the one that followed is not marked as past."""
    async with caller_in(tmp_path) as call:
        await remembered(call, "I like tea.", "I moved from Leeds to Sheffield.")
        [shown] = [one for one in await recalled_by(call, "Where do I live now?") if "Leeds" in one]
        assert "(since " in shown


async def test_a_correction_marks_the_message_with_other_facts(tmp_path: Path, caller_in: CallerIn) -> None:
    """The corrected value comes first, and the message is marked as corrected, even if it states more."""
    async with caller_in(tmp_path) as call:
        await remembered(call, "My name is Ann and I live in Lisbon.", "I like tea.")
        [home] = (await done(call, "GET", "statements", topic="residence"))["statements"]
        await done(call, "PATCH", f"statements/{home['id']}", {"object": "Porto"})
        first, *others = await recalled_by(call, "Where do I live now?")
        assert "Porto" in first and "(since " in first
        assert any("Lisbon" in one and one.endswith("(corrected: Porto)") for one in others)


@pytest.mark.parametrize(
    ("text", "query", "note"),
    [
        ("My name is Ann and my birthday is on 3 April.", "When is my birthday?", "(retracted)"),
        ("我叫李娜，我的生日是4月3日。", "我的生日是哪天？", "（已撤回）"),
    ],
)
async def test_a_retraction_marks_the_message_with_other_facts(
    tmp_path: Path, caller_in: CallerIn, text: str, query: str, note: str
) -> None:
    """The message of a retracted statement is marked as retracted, even if it states more."""
    async with caller_in(tmp_path) as call:
        await remembered(call, text)
        [day] = (await done(call, "GET", "statements", topic="birthday"))["statements"]
        await done(call, "POST", f"statements/{day['id']}/retract", {})
        [shown] = [one for one in await recalled_by(call, query) if text in one]
        assert shown.endswith(note)


@pytest.mark.parametrize(
    ("texts", "query", "notes"),
    [
        (["我的电话是13800138000。"], "我的电话是多少？", ["（自 "]),
        (["我在Google工作。", "我现在在Apple工作。"], "我在哪里工作？", ["（自 ", "；之后：Apple）"]),
        (["I live in Leeds.", "I moved to York."], "Where do I live?", ["(since ", "; then York)"]),
    ],
)
async def test_the_times_are_in_the_language_of_the_sentence(
    tmp_path: Path, caller_in: CallerIn, texts: list[str], query: str, notes: list[str]
) -> None:
    """The times of a Chinese memory are in Chinese, also if the value is a number or a Latin name."""
    async with caller_in(tmp_path) as call:
        await remembered(call, *texts)
        recalled = await recalled_by(call, query)
        assert len(recalled) == len(notes)
        assert all(note in one for one, note in zip(recalled, notes, strict=True))


async def test_two_birthdays_are_shown_without_a_time(tmp_path: Path, caller_in: CallerIn) -> None:
    """A birthday that another one contradicts is shown with the other one, and without since when."""
    async with caller_in(tmp_path) as call:
        await remembered(call, "My birthday is on 7 May 1991.", "I was born on 8 May 1991.")
        recalled = await recalled_by(call, "When is my birthday?")
        assert any(one.endswith("(contradicts: 8 May 1991)") for one in recalled)
        assert not any("since" in one for one in recalled)


@pytest.mark.parametrize(
    ("texts", "query", "answer"),
    [
        (
            ["我叫李娜，我住在成都。", "我喜欢喝茶。", "我现在不吃肉了。", "我搬到了杭州。"],
            "我现在住在哪里？",
            "我搬到了杭州。",
        ),
        (["我现在住在杭州。", "我喜欢喝茶。", "我现在不吃肉了。"], "我现在住在哪里？", "我现在住在杭州。"),
        (
            ["My name is Ann and I live in Leeds.", "I do not eat meat now.", "I moved to York."],
            "Where do I live now?",
            "I moved to York.",
        ),
    ],
)
async def test_now_in_another_message_is_no_answer(
    tmp_path: Path, caller_in: CallerIn, texts: list[str], query: str, answer: str
) -> None:
    """A question about the present is answered by the true statement on its topic, before other news."""
    async with caller_in(tmp_path) as call:
        await remembered(call, *texts)
        assert answer in (await recalled_by(call, query))[0]
