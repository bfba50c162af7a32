"""Relatives: "my sister" and the name that the user gives her are one person, by the user's own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebbtide.language.port import ProposedStatement
from ebbtide.memory.subjects import names_relative
from tests.contract.test_extraction import Listing, flushed, said
from tests.contract.test_namesakes import residence
from tests.contract.test_statements import AGENT, done
from tests.support.callers import Caller, rest_in


async def tell_each(call: Caller, *texts: str) -> None:
    """Say messages one after the other."""
    for text in texts:
        await said(call, text)
        await flushed(call)


async def merges(call: Caller) -> list[dict[str, Any]]:
    """Return the merges in effect."""
    found: list[dict[str, Any]] = (await done(call, "GET", "rulings", kinds="merge"))["rulings"]
    return found


FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("texts", "relative", "name", "home"),
    [
        (("My sister Clara is a nurse.", "My sister lives in Porto."), "my sister", "Clara", "Porto"),
        pytest.param(
            *(("My sister lives in Porto.", "My sister is called Clara."), "my sister", "Clara", "Porto"),
            marks=FULL,
        ),
        pytest.param(
            *(("My mum lives in Porto.", "Rosa is my mother."), "my mum", "Rosa", "Porto"), marks=FULL
        ),
        (("Clara, my sister, lives in Porto.",), "my sister", "Clara", "Porto"),
        pytest.param(*(("我妹妹小红是护士。", "我妹妹住在苏州。"), "我妹妹", "小红", "苏州"), marks=FULL),
        (("我妹妹住在苏州。", "我妹妹叫小红。"), "我妹妹", "小红", "苏州"),
    ],
)
async def test_a_relative_and_the_name_are_one(
    tmp_path: Path, texts: tuple[str, ...], relative: str, name: str, home: str
) -> None:
    """Profiles and searches find the same by both, whichever is said first."""
    is_chinese = name == "小红"
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await tell_each(call, *texts)
        for words in (relative, name):
            assert await residence(call, words) == [home]
            query = f"{words}住在哪里？" if is_chinese else f"Where does {words} live?"
            found = await done(call, "POST", "statements/search", {"query": query})
            assert found["statements"][0]["object"] == home, query


@pytest.mark.parametrize("undoing", ["undo", "delete"])
async def test_a_merge_of_a_relative_goes_with_its_words_or_is_undone(tmp_path: Path, undoing: str) -> None:
    """An undone merge is not made again. With the message that names the relative, the merge is deleted."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await tell_each(call, "My sister Clara plays the cello.", "My sister lives in Porto.")
        [merge] = await merges(call)
        assert (merge["author"], merge["reason"]) == ("rules@2", "My sister Clara")
        assert (await done(call, "GET", "merges"))["decided"] == [merge]
        if undoing == "undo":
            await done(call, "DELETE", f"rulings/{merge['id']}")
            await tell_each(call, "My sister Clara is a nurse.", "My sister works at Acme.")
            assert await residence(call, "Clara") == []
        else:
            await done(call, "POST", "forget", {"topic": "cello"})
        assert await merges(call) == []
        assert await residence(call, "my sister") == ["Porto"]


async def test_two_named_sisters_are_not_merged(tmp_path: Path) -> None:
    """With two sisters, "my sister" may be either. An earlier merge stays, since she was the only one then."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await tell_each(
            call, "My sister Clara is a nurse.", "My sister Berta is a cook.", "My sister lives in Porto."
        )
        await tell_each(call, "My friend Anna is a nurse.", "My cousin Farid works at Acme.")
        assert await merges(call) == []
        assert await residence(call, "my sister") == ["Porto"]
        assert [await residence(call, name) for name in ("Clara", "Berta")] == [[], []]


@pytest.mark.parametrize(("quote", "is_merged"), [("My sister Clara", True), ("I met Clara", False)])
async def test_a_model_must_copy_the_words_that_name_a_relative(
    tmp_path: Path, quote: str, is_merged: bool
) -> None:
    """A model that calls any name a sister merges nothing: the quote must name her so."""
    home = ProposedStatement(0, "my sister lives in Porto", "my sister", "fact", "residence", "Porto")
    named = ProposedStatement(0, quote, "I", "relation", "sister", "Clara")
    async with rest_in(tmp_path, Listing(named, home)) as call:
        await call("PUT", AGENT, {"extraction": "model"})
        await tell_each(call, f"{quote} yesterday. As you know, my sister lives in Porto.")
        assert len((await done(call, "GET", "statements"))["statements"]) == 2
        assert len(await merges(call)) == is_merged
        assert await residence(call, "my sister") == ["Porto"]


@pytest.mark.parametrize(
    ("quote", "relation", "name", "is_so"),
    [
        ("My sister's name is Clara", "sister", "Clara", True),
        ("my younger sister, Clara, sings", "sister", "Clara", True),
        ("Clara is my sister", "sister", "Clara", True),
        ("Clara met Tom, and Clara, my sister, left", "sister", "Clara", True),
        ("我的妹妹叫小红", "younger_sister", "小红", True),
        ("小红是我妹妹", "younger_sister", "小红", True),
        ("my sister likes Clara", "sister", "Clara", False),
        ("my brother Tom", "sister", "Tom", False),
        ("Anna's sister Clara", "sister", "Clara", False),
        ("我妹妹喜欢小红", "younger_sister", "小红", False),
        ("我姐姐小红", "younger_sister", "小红", False),
    ],
)
def test_words_that_name_a_relative(quote: str, relation: str, name: str, is_so: bool) -> None:
    """The relation has its owner before it and the name next to it, in either order."""
    assert names_relative(quote, relation, name) is is_so
