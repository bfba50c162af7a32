"""Tool calls as models send them: the share that is accepted with the right arguments, or refused with an explanation.

The labels are `data/tool_forms.jsonl`. A call counts if its arguments are accepted, or if it is refused as labelled.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.knowledge.sets import FORM_TIME, PARTS, ToolForm, read_tool_forms
from benchmarks.knowledge.table import Row
from ebbtide.errors import InvalidRequest
from ebbtide.tools.reading import read_arguments
from ebbtide.tools.schema import TOOLS
from ebbtide.verbs.tools import period

BAR = 0.98


def answer(form: ToolForm) -> dict[str, Any] | None:
    """Return the arguments that Ebbtide reads in a call; None if it refuses it."""
    read_time = partial(period, reference_ms=int(FORM_TIME.timestamp() * 1000))
    try:
        found = read_arguments(TOOLS[form.tool], form.sent, read_time).arguments
    except InvalidRequest:
        return None
    return dict(found)


def missed() -> list[tuple[ToolForm, dict[str, Any] | None]]:
    """Return the calls that are read otherwise than labelled, with what was read."""
    return [(form, read) for form in read_tool_forms() if not form.accepts(read := answer(form))]


def rows(_: bool) -> list[Row]:
    """Return the row of tool calls."""
    forms, wrong = read_tool_forms(), {form.id for form, _ in missed()}
    shares = []
    for part in PARTS:
        among = [form.id not in wrong for form in forms if form.part == part]
        shares.append(f"{part} {sum(among)} of {len(among)}")
    share = 1 - len(wrong) / len(forms)
    return [Row("tool calls", f"≥ {BAR:.0%}", f"{share:.1%} ({', '.join(shares)})", share >= BAR)]
