"""The history of a memory, over every transport: births, shortenings, ends, deletions and focus as columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.verbs import history
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn

AGENT = "/v1/agents/ann"
TOLD = (
    "I moved to Lisbon in the spring of last year, together with my cat Miso.",
    "My sister Clara is a carpenter and she builds wooden boats in Porto.",
    "Clara visits me in Lisbon with Miso's brother every summer.",
    "The harbour smells of tar and oranges early in the morning.",
)
TABLES = ("born", "shortened", "forgotten", "erased", "focus")


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(CALLERS[request.param], embedding={"model": "off"})


async def ok(call: Caller, method: str, path: str, body: Any = None, **params: Any) -> Any:
    answer = await call(method, f"{AGENT}{path}", body, params=params)
    assert answer.status_code < 300, answer.json()
    return answer.json()


async def lived(call: Caller) -> None:
    """Make an agent that has shortened, forgotten, corrected and deleted memories, entities and a statement."""
    await ok(call, "PUT", "", {"focus_limit": 2, "segment_max_chars": 80, "decay_rate": 0.3})
    for text in TOLD * 2:
        await ok(
            call, "POST", "/remember", {"messages": [{"role": "user", "speaker": "Ann", "content": text}]}
        )
        await ok(call, "POST", "/flush", {"timeout_ms": 30_000, "passes": True})
    fact = {"subject": "user", "topic": "residence", "object": "Lisbon", "content": "I live in Lisbon."}
    await ok(call, "POST", "/statements", fact)
    await ok(call, "POST", "/compress", {"passes": 12})
    await ok(call, "POST", "/flush", {"timeout_ms": 30_000, "passes": True})
    living = (await ok(call, "GET", "/nodes"))["nodes"]
    await ok(call, "DELETE", f"/nodes/{living[0]['id']}")
    await ok(call, "PATCH", f"/nodes/{living[-1]['id']}", {"content": "Something else, and much longer."})


async def events_of(call: Any) -> list[dict[str, Any]]:
    """Return the events that are kept."""
    reply = await call("GET", f"{AGENT}/events", params={"follow": False})
    if call.transport == "grpc":
        return reply.json()["items"]  # type: ignore[no-any-return]
    lines = [line for line in reply.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def number(node_id: str) -> int:
    return int(node_id.removeprefix("n"))


def told_by(events: list[dict[str, Any]]) -> dict[str, list[tuple[int, ...]]]:
    """Return the rows of a history by replaying single events."""
    rows: dict[str, list[tuple[int, ...]]] = {name: [] for name in TABLES}
    finished = 0
    for event in events:
        node = number(event["node_id"] or "n0")
        if event["kind"] == "NodeCreated":
            rows["born"].append((node, finished, event["length"]))
        elif event["kind"] == "NodeCompressed":
            rows["shortened"].append((node, event["pass_number"], event["length"]))
        elif event["kind"] == "NodeForgotten":
            rows["forgotten"].append((node, event["pass_number"]))
        elif event["kind"] == "MemoryErased" and node:
            rows["erased"].append((node, event["sequence"]))
        elif event["kind"] == "FocusMoved":
            rows["focus"].append((finished, *map(number, event["focus"])))
        elif event["kind"] == "PassCompleted":
            finished = event["pass_number"]
    gone = {node for node, _ in rows["erased"]}
    for name in ("born", "shortened"):
        rows[name] = [row for row in rows[name] if row[0] not in gone]
    rows["born"].sort()
    rows["forgotten"].sort()
    return rows


def rows_of(found: dict[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    """Return the rows of the columns of a page."""
    rows = {name: list(zip(*found[name].values(), strict=True)) for name in TABLES if name != "focus"}
    return rows | {"focus": list(focus_of(found["focus"]))}


def focus_of(focus: dict[str, list[int]]) -> Iterator[tuple[int, ...]]:
    ends = [*focus["offset"], len(focus["id"])][1:]
    for passes, start, end in zip(focus["pass_number"], focus["offset"], ends, strict=True):
        yield (passes, *focus["id"][start:end])


def without_lengths(rows: dict[str, list[tuple[int, ...]]]) -> dict[str, list[tuple[int, ...]]]:
    """Leave out the lengths of births: that of a corrected memory is its new one."""
    return rows | {"born": [row[:2] for row in rows["born"]]}


async def test_a_history_is_what_the_events_tell(tmp_path: Path, caller_in: CallerIn) -> None:
    """Its rows are those of single events, without what is known of a deleted memory except its number."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        found = await ok(call, "GET", "/history")
        events = await events_of(call)
        rows = rows_of(found)
        assert without_lengths(rows) == without_lengths(told_by(events))
        assert all(len(rows[name]) > least for name, least in zip(TABLES, (5, 1, 1, 0, 3), strict=True))
        assert found["complete"] and found["first_pass"] == 0 and found["next_page_token"] == ""
        assert found["last_event"] == events[-1]["sequence"]
        assert found["passes"] == (await ok(call, "GET", ""))["finished_passes"] > 5
        originals = {
            number(node["id"]): node["original_length"]
            for kinds in ("episode", "fact")
            for node in (await ok(call, "GET", "/nodes", kinds=kinds, page_size=1000))["nodes"]
        }
        lengths = {node: length for node, _, length in rows["born"]}
        assert {node: lengths[node] for node in originals} == originals
        kinds = {"n" + str(node) for node, _ in rows["forgotten"]}
        assert kinds.isdisjoint(node["id"] for node in (await ok(call, "GET", "/nodes"))["nodes"])


async def test_the_pages_of_a_history_are_the_history(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row is on exactly one page, whatever the sizes of pages and of steps."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        whole = rows_of(await ok(call, "GET", "/history"))
        for page_size, step in ((1, 5_000), (3, 2), (7, 1), (1000, 1)):
            monkeypatch.setattr(history, "LIVES_PER_STEP", step)
            monkeypatch.setattr(history, "EVENTS_PER_STEP", step)
            rows: dict[str, list[Any]] = {name: [] for name in TABLES}
            token = ""
            while True:
                page = await ok(call, "GET", "/history", page_size=page_size, page_token=token)
                found = rows_of(page)
                events = sum(len(found[name]) for name in ("shortened", "erased", "focus"))
                lives = {row[0] for name in ("born", "forgotten") for row in found[name]}
                assert len(lives) + events <= page_size
                for name in TABLES:
                    rows[name] += found[name]
                if not (token := page["next_page_token"]):
                    break
            assert rows == whole
        for begin, end in ((2, 5), (0, 0), (4, 4), (6, 1000)):
            part = rows_of(await ok(call, "GET", "/history", from_pass=begin, to_pass=end))
            for name, place in (("born", 1), ("shortened", 1), ("forgotten", 1), ("focus", 0)):
                assert part[name] == [row for row in whole[name] if begin <= row[place] <= end]
        error = (await call("GET", f"{AGENT}/history", params={"from_pass": 2, "to_pass": 1})).json()["error"]
        assert error["field_violations"][0]["field"] == "to_pass"
        for token in ("x", "bm9kZXM6MQ"):
            error = (await call("GET", f"{AGENT}/history", params={"page_token": token})).json()["error"]
            assert error["reason"] == "INVALID_PAGE"


async def test_one_life_is_what_the_events_tell(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each memory has the rows of the whole history, also a forgotten one; a deleted one has only its state."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        rows, events = rows_of(await ok(call, "GET", "/history")), await events_of(call)
        ends, gone = dict(rows["forgotten"]), [node for node, _ in rows["erased"]]
        for node, after, _ in rows["born"]:
            life = await ok(call, "GET", f"/nodes/n{node}/history")
            own = [event for event in events if event["node_id"] == f"n{node}"]
            assert (life["id"], life["complete"]) == (node, True)
            assert life["state"] == ("forgotten" if node in ends else "living")
            assert (life["forgotten"] or {}).get("pass_number") == ends.get(node)
            [made] = [event for event in own if event["kind"] == "NodeCreated"]
            assert (life["born"]["pass_number"], life["born"]["batch_id"]) == (after, made["batch_id"])
            assert life["born"]["at"] <= made["happened_at"]
            told = [
                (event["pass_number"], event["length_before"], event["length"])
                for event in own
                if event["kind"] == "NodeCompressed"
            ]
            changes = life["changes"]
            assert [(one["pass_number"], one["length_before"], one["length"]) for one in changes] == told
            assert [one["model"] for one in changes] == [None if node in ends else "builtin"] * len(told)
            assert all((one["importance"] is None) == (node in ends) for one in changes)
            assert [(one["event"], one["at"]) for one in life["corrections"]] == [
                (event["sequence"], event["happened_at"]) for event in own if event["kind"] == "NodeCorrected"
            ]
            assert [(f"n{one['target']}", one["pass_number"]) for one in life["links_broken"]] == [
                (event["target_id"], event["pass_number"]) for event in own if event["kind"] == "LinkBroken"
            ]
        assert {"NodeCorrected", "LinkBroken", "NodeCompressed"} <= {event["kind"] for event in events}
        erased = await ok(call, "GET", f"/nodes/n{gone[0]}/history")
        assert (erased["state"], erased["born"], erased["changes"]) == ("erased", None, [])
        entity = (await ok(call, "GET", "/entities"))["entities"][0]["id"]
        for node_id, reason in ((entity, "INVALID_VALUE"), ("n99999", "NODE_NOT_FOUND")):
            error = (await call("GET", f"{AGENT}/nodes/{node_id}/history")).json()["error"]
            assert error["reason"] == reason


async def test_lives_outlast_the_events(tmp_path: Path, caller_in: CallerIn) -> None:
    """Where events are dropped, or were left behind by a restore, births and ends are still complete."""
    async with caller_in(tmp_path, store={"events_keep": 100}) as call:
        await lived(call)
        before = await ok(call, "GET", "/history")
        await ok(call, "POST", "/compress", {"passes": 90})
        await ok(call, "POST", "/flush", {"timeout_ms": 60_000, "passes": True})
        after = await ok(call, "GET", "/history")
        assert not after["complete"]
        assert 0 < after["first_pass"] < after["passes"]
        assert min(after["shortened"]["pass_number"], default=after["passes"]) >= after["first_pass"]
        assert after["born"] == before["born"]
        ended = rows_of(before)["forgotten"]
        assert [row for row in rows_of(after)["forgotten"] if row[1] <= before["passes"]] == ended
        for form in ("backup", "export"):
            content = await call.download(f"{AGENT}/{form}")
            await call.upload(f"{AGENT}/restore", content, replace=True)
            restored = await ok(call, "GET", "/history")
            assert (restored["born"], restored["forgotten"]) == (after["born"], after["forgotten"])
            assert not restored["complete"] and restored["first_pass"] == restored["passes"]


async def test_a_new_agent_has_a_complete_history(tmp_path: Path, caller_in: CallerIn) -> None:
    """Also one whose numbers of events continue those of a deleted agent of the same name."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        await call("DELETE", AGENT)
        await call("PUT", AGENT)
        found = await ok(call, "GET", "/history")
        assert found["complete"] and found["first_pass"] == found["passes"] == 0
        assert all(rows == [] for rows in rows_of(found).values())
        await call("DELETE", AGENT)
        await lived(call)
        again = await ok(call, "GET", "/history")
        assert (
            again["complete"] and again["first_pass"] == 0 and again["last_event"] > found["last_event"] + 10
        )


async def test_a_deleted_conversation_leaves_no_lives(tmp_path: Path, caller_in: CallerIn) -> None:
    """Forgetting words for good also removes the lives of memories that were forgotten before."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        before = await ok(call, "GET", "/history")
        assert before["forgotten"]["id"]
        await ok(call, "POST", "/forget", {"speakers": ["Ann"]})
        after = await ok(call, "GET", "/history")
        assert after["forgotten"]["id"] == []
