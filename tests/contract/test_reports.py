"""News about what is known: corrections, plans that fall through, and pets that die, in the user's own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_extraction import flushed, said
from tests.contract.test_relatives import tell_each
from tests.contract.test_statements import AGENT, done
from tests.support.callers import Caller, rest_in

EVERY = "current,contested,superseded,ended,planned,corrected,retracted"


async def states(call: Caller) -> dict[str, str]:
    """Return the state of every value that is not denied."""
    found = (await done(call, "GET", "statements", states=EVERY))["statements"]
    return {one["object"]: one["state"] for one in found if not one["negated"]}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(
            ("I live in Leeds.", "Sorry, I meant Leicester, not Leeds."),
            {"Leeds": "corrected", "Leicester": "current"},
            marks=pytest.mark.full,
        ),
        (
            ("I live in Leeds.", "Correction: I live in Leicester."),
            {"Leeds": "corrected", "Leicester": "current"},
        ),
        (("我住在利兹。", "说错了，是莱斯特，不是利兹。"), {"利兹": "corrected", "莱斯特": "current"}),
        (("I live in Leeds.", "Sorry, I meant tea, not coffee."), {"Leeds": "current"}),
        (
            ("I have a dog called Rex.", "Rex died.", "Bob died."),
            {"Rex": "superseded", "a dog": "superseded"},
        ),
        (("我养了一只狗。", "我的狗旺财死了。"), {"一只狗": "superseded"}),
        (("我养了一只狗，叫旺财。", "旺财死了。"), {"一只狗": "superseded", "旺财": "superseded"}),
        (("I have a dog.", "My dog Rex died in May."), {"a dog": "superseded", "Rex": "superseded"}),
        (
            ("I have a dog called Max.", "My dog Rex died."),
            {"Max": "current", "a dog": "current", "Rex": "superseded"},
        ),
        pytest.param(
            ("I'm moving to Oslo in January. My exam is in May.", "The move to Oslo fell through."),
            {"moving to Oslo in January": "retracted", "My exam is in May": "planned"},
            marks=pytest.mark.full,
        ),
        (
            ("I'm meeting Anna on Friday. I'm meeting Tom on Monday.", "The meeting was cancelled."),
            {"meeting Anna on Friday": "planned", "meeting Tom on Monday": "planned"},
        ),
        (("我下个月搬到奥斯陆。", "不去奥斯陆了。"), {"下个月搬到奥斯陆": "retracted"}),
    ],
)
async def test_news_change_what_is_known(
    tmp_path: Path, texts: tuple[str, ...], expected: dict[str, str]
) -> None:
    """News end, retract or correct the statement that they mean. If they mean none or several, they change nothing."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await tell_each(call, *texts)
        assert await states(call) == expected


async def test_a_profile_shows_a_lost_pet_as_past(tmp_path: Path) -> None:
    """A reader learns that the pet was the user's until it died, also if nothing was known of it before."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await tell_each(call, "My dog Rex died in May.", "我养了一只猫。", "我的猫死了。", "I live in Leeds.")
        lines = [line.split(" [")[0] for line in (await done(call, "GET", "profile"))["text"].splitlines()]
        assert any(line.startswith("pet: Rex (until ") and "-05-01" in line for line in lines), lines
        assert any(line.startswith("宠物：一只猫（至 ") for line in lines), lines
        assert any(line.startswith("residence: Leeds (since ") for line in lines), lines
        assert len(lines) == 3


@pytest.mark.parametrize(
    ("news", "changed"),
    [
        ("Sorry, I meant Leicester, not Leeds.", "Leeds"),
        ("The move to Oslo fell through.", "moving to Oslo in January"),
    ],
)
async def test_news_are_undone_and_deleted_with_their_words(tmp_path: Path, news: str, changed: str) -> None:
    """The ruling has the words as its reason. Undone, or without the words, what was known before is known again."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await tell_each(call, "I live in Leeds. I'm moving to Oslo in January.")
        before = await states(call)
        for undoing in ("undo", "delete"):
            await tell_each(call, news)
            rulings: list[dict[str, Any]] = (await done(call, "GET", "rulings"))["rulings"]
            assert [one["reason"] for one in rulings] == [news.rstrip(".")]
            assert (await states(call))[changed] != before[changed]
            if undoing == "undo":
                await done(call, "DELETE", f"rulings/{rulings[0]['id']}")
                assert (await states(call))[changed] == before[changed]
            else:
                await done(
                    call, "POST", "forget", {"topic": "Leicester" if "Leicester" in news else "fell through"}
                )
        assert await states(call) == before


async def test_an_old_value_is_not_corrected(tmp_path: Path) -> None:
    """A correction is about what was said just before; a value from long ago stays."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await tell_each(call, "I love coffee.")
        await said(call, *[f"It is day {n}." for n in range(6)])
        await flushed(call)
        await tell_each(call, "Sorry, I meant tea, not coffee.")
        assert await states(call) == {"coffee": "current"}
