"""Persons of one name: two entities where their relations to the user differ, and one where they may be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.test_clear import files_with
from tests.contract.test_extraction import flushed, said
from tests.contract.test_statements import AGENT, done, says
from tests.support.callers import CALLERS, Caller, CallerIn


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def names(call: Caller) -> list[str]:
    """Return the names of the entities whose name begins with Anna."""
    found = (await done(call, "GET", "entities"))["entities"]
    return sorted(one["name"] for one in found if one["name"].startswith(("Anna", "安娜")))


async def residence(call: Caller, entity: str) -> list[str]:
    """Return where a person lives, according to the profile."""
    slots = (await done(call, "GET", "profile", entity=entity))["slots"]
    return [one["object"] for slot in slots if slot["slot"] == "residence" for one in slot["statements"]]


async def test_a_sister_and_a_colleague_of_one_name_are_two(tmp_path: Path, caller_in: CallerIn) -> None:
    """Neither ends what is known of the other. A plain name means the one who was named last, also in a profile."""
    async with caller_in(tmp_path) as call:
        await says(call, "sister", "Anna", kind="relation")
        porto = await says(call, "lives in", "Porto", "Anna")
        await says(call, "colleague", "Anna", kind="relation")
        berlin = await says(call, "lives in", "Berlin", "Anna", content="Anna now lives in Berlin.")
        assert (porto["subject"], berlin["subject"]) == ("Anna", "Anna (colleague)")
        assert (berlin["superseded"], await names(call)) == ([], ["Anna", "Anna (colleague)"])
        assert await residence(call, "my sister Anna") == ["Porto"]
        assert await residence(call, "my colleague Anna") == ["Berlin"] == await residence(call, "Anna")
        # The sister is named again: a plain name means her, and says the same as before.
        again = await says(call, "sister", "Anna", kind="relation")
        assert not again.get("created", False)
        assert (await says(call, "lives in", "Porto", "Anna"))["id"] == porto["id"]
        assert await names(call) == ["Anna", "Anna (colleague)"]


async def test_subjects_with_a_relation_are_two(tmp_path: Path, caller_in: CallerIn) -> None:
    """A relation before the name is enough, in both languages, and a replacement is about the same person."""
    async with caller_in(tmp_path) as call:
        first = await says(call, "lives in", "Porto", "my sister Anna")
        await says(call, "lives in", "Berlin", "my colleague Anna")
        moved = await says(call, "lives in", "Lisbon", "Anna", replaces=first["id"])
        assert moved["superseded"] == [first["id"]]
        assert await residence(call, "my sister Anna") == ["Lisbon"]
        assert await residence(call, "Anna (colleague)") == ["Berlin"]
        await says(call, "住在", "北京", "我妹妹安娜")
        await says(call, "住在", "上海", "我的同事安娜")
        assert await names(call) == ["Anna (colleague)", "Anna (sister)", "安娜（同事）", "安娜（妹妹）"]
        assert await residence(call, "我的同事安娜") == ["上海"]


async def test_a_correction_stays_with_its_person(tmp_path: Path, caller_in: CallerIn) -> None:
    """The correction of a statement about the first Anna is about her, although another one was named since."""
    async with caller_in(tmp_path) as call:
        await says(call, "sister", "Anna", kind="relation")
        wrong = await says(call, "lives in", "Porto", "Anna")
        await says(call, "colleague", "Anna", kind="relation")
        right = await done(call, "PATCH", f"statements/{wrong['id']}", {"object": "Lisbon"})
        assert right["subject"] == "Anna"
        assert await residence(call, "my sister Anna") == ["Lisbon"]


async def test_one_relation_or_none_is_one_person(tmp_path: Path, caller_in: CallerIn) -> None:
    """A person of whom no relation is known gets one; the general word for a relation is the same person."""
    async with caller_in(tmp_path) as call:
        await says(call, "likes", "tea", "Anna")
        await says(call, "sister", "Anna", kind="relation")
        await says(call, "elder sister", "Anna", kind="relation")
        await says(call, "lives in", "Porto", "my sister Anna")
        assert await names(call) == ["Anna"]


async def test_a_friend_and_a_colleague_are_proposed_as_one(tmp_path: Path, caller_in: CallerIn) -> None:
    """They may be one person, so a merge is proposed. A merge joins them by their exact names, and can be undone."""
    async with caller_in(tmp_path) as call:
        await says(call, "friend", "Anna", kind="relation")
        await says(call, "colleague", "Anna", kind="relation")
        await says(call, "lives in", "Berlin", "my colleague Anna")
        proposals = (await done(call, "GET", "merges"))["proposals"]
        assert [{one["first"], one["second"]} for one in proposals] == [{"Anna", "Anna (colleague)"}]
        body = {"entity": "Anna", "other": "Anna (colleague)"}
        ruling = (await done(call, "POST", "merges", body))["ruling_id"]
        assert await residence(call, "my friend Anna") == ["Berlin"]
        await done(call, "DELETE", f"rulings/{ruling}")
        assert await residence(call, "my friend Anna") == []


async def test_a_forgotten_name_is_in_no_file(tmp_path: Path, caller_in: CallerIn) -> None:
    """Both persons of a name are deleted with it, and a name whose source is deleted keeps the relation."""
    async with caller_in(tmp_path) as call:
        await says(call, "sister", "Annabel", kind="relation")
        named = await says(call, "colleague", "Annabel", kind="relation")
        await says(call, "lives in", "Berlin", "my colleague Annabel")
        await done(call, "DELETE", f"nodes/{named['id']}")
        assert "Annabel (colleague)" in await names(call)
        assert (await says(call, "likes", "tea", "my colleague Annabel"))["subject"] == "Annabel (colleague)"
        await done(call, "POST", "forget", {"topic": "Annabel"})
        assert await names(call) == []
    assert not files_with("nnabel", tmp_path)


async def test_messages_name_two_persons(tmp_path: Path, caller_in: CallerIn) -> None:
    """Extraction tells them apart too, each clause about the person whom its message introduces."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await said(call, "My sister Anna lives in Porto.", "My colleague Anna lives in Berlin.")
        await flushed(call)
        assert await residence(call, "my sister Anna") == ["Porto"]
        assert await residence(call, "my colleague Anna") == ["Berlin"]
        assert (await done(call, "GET", "conflicts"))["conflicts"] == []
