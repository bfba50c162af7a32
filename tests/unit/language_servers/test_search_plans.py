"""Plans of searches: the reply of a model is used only if every field has an allowed value."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide.language.port import BadReply, SearchPlan
from ebbtide.language.served.replies import plan_in

GOOD: dict[str, Any] = {
    "kinds": ["fact", "fact"],
    "topics": ["residence"],
    "since": "2026-05-01",
    "until": "",
    "expand": True,
}


def test_a_good_reply_is_a_plan() -> None:
    """Repeated kinds count once, and an empty day is no limit."""
    assert plan_in(GOOD) == SearchPlan(("fact",), ("residence",), "2026-05-01", "", True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kinds": ["gossip"]},
        {"kinds": "fact"},
        {"kinds": [[]]},
        {"topics": ["a", "b", "c", "d"]},
        {"topics": ["x" * 61]},
        {"topics": None},
        {"since": "May"},
        {"since": "2026-02-30"},
        {"since": 20260501},
        {"until": "2026-05-01"},
        {"expand": "yes"},
    ],
)
def test_a_bad_reply_is_refused(wrong: dict[str, Any]) -> None:
    """A field of another type, an unknown kind, an impossible day and a reversed range are no plan."""
    with pytest.raises(BadReply):
        plan_in({**GOOD, **wrong})


@pytest.mark.parametrize("missing", GOOD)
def test_a_missing_field_is_refused(missing: str) -> None:
    """Every field is required."""
    with pytest.raises(BadReply):
        plan_in({name: value for name, value in GOOD.items() if name != missing})
