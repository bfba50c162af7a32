"""The forecast, over every transport: what the next passes shorten and forget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.verbs import forecast, transfers
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn

AGENT = "/v1/agents/ann"
COMPUTING_S = forecast.MAX_COMPUTING_S
SAID = (
    "I moved to Lisbon in the spring of last year, together with my cat Miso.",
    "My sister Clara is a carpenter and she builds wooden boats in Porto.",
    "Clara visits me in Lisbon with Miso's brother every summer.",
    "The harbour smells of tar and oranges early in the morning.",
)
UNRELATED = (
    "Zanzibar",
    "Quito",
    "Yakutsk",
    "Bergen",
    "Havana",
    "Nairobi",
    "Odessa",
    "Kyoto",
    "Tallinn",
    "Lima",
)


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(CALLERS[request.param], embedding={"model": "off"})


@pytest.fixture(autouse=True)
def long_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no forecast end early because the machine is busy."""
    monkeypatch.setattr(forecast, "MAX_COMPUTING_S", 600.0)


async def ok(call: Caller, method: str, path: str, body: Any = None, **params: Any) -> Any:
    answer = await call(method, f"{AGENT}{path}", body, params=params)
    assert answer.status_code < 300, answer.json()
    return answer.json()


async def flush(call: Caller) -> None:
    await ok(call, "POST", "/flush", {"timeout_ms": 30_000, "passes": True})


async def say(call: Caller, text: str) -> None:
    await ok(call, "POST", "/remember", {"messages": [{"role": "user", "speaker": "Ann", "content": text}]})
    await flush(call)


async def lived(call: Caller) -> None:
    """Make an agent whose memories fade within a few passes."""
    await ok(call, "PUT", "", {"focus_limit": 2, "segment_max_chars": 80, "decay_rate": 0.5})
    for text in SAID:
        await say(call, text)


def rows(columns: dict[str, list[int]]) -> list[tuple[int, ...]]:
    return list(zip(*columns.values(), strict=True))


async def happened(call: Caller, found: dict[str, Any], name: str) -> list[tuple[int, ...]]:
    """Return what really happened since a forecast to the memories that lived then, with passes counted from it."""
    since = found["pass_number"]
    history = await ok(call, "GET", "/history")
    old = {born for born, after, _ in rows(history["born"]) if after <= since}
    return [
        (row[0], row[1] - since, *row[2:]) for row in rows(history[name]) if row[1] > since and row[0] in old
    ]


def counted_passes(monkeypatch: pytest.MonkeyPatch, note: Callable[[], object] = lambda: None) -> list[int]:
    """Return a list that gets the number of each pass of a forecast. `note` is called at its beginning."""
    passes: list[int] = []
    compress = forecast.Simulation.compress

    def counted(self: Any, number: int, *rest: Any) -> Any:
        passes.append(number)
        note()
        return compress(self, number, *rest)

    monkeypatch.setattr(forecast.Simulation, "compress", counted)
    return passes


async def test_what_is_forecast_happens(tmp_path: Path, caller_in: CallerIn) -> None:
    """Passes without batches forget exactly the memories of the forecast, each in its pass; shortenings too."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        for name in UNRELATED[:3]:
            await say(call, f"{name} is a town.")
        found = await ok(call, "POST", "/forecast", {"passes": 12, "memories_per_batch": 0})
        assert found["passes"] == 12 and found["assumes"]["owed_passes"] == 0
        await ok(call, "POST", "/compress", {"passes": 12})
        await flush(call)
        forgotten = await happened(call, found, "forgotten")
        assert sorted(rows(found["forgotten"])) == sorted(forgotten)
        assert len(forgotten) > 1
        shortened = {row[:2] for row in await happened(call, found, "shortened")}
        assert shortened and shortened <= {row[:2] for row in rows(found["shortened"])}


async def test_unrelated_batches_take_the_focus(tmp_path: Path, caller_in: CallerIn) -> None:
    """Batches of new subjects forget what the forecast with batches of this size says, pass by pass."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        found = await ok(call, "POST", "/forecast", {"passes": len(UNRELATED), "memories_per_batch": 1})
        kept = await ok(call, "POST", "/forecast", {"passes": len(UNRELATED), "memories_per_batch": 0})
        for name in UNRELATED:
            await say(call, f"{name} is a town.")
        forgotten = await happened(call, found, "forgotten")
        assert sorted(rows(found["forgotten"])) == sorted(forgotten)
        assert len(kept["forgotten"]["id"]) < len(forgotten)


async def test_a_forecast_changes_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """The map with all links, the history and the events are the same before and after it; so is a second forecast."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        reads = ("/map", "/history", "/nodes", "")
        before = [await ok(call, "GET", path) for path in reads]
        first = await ok(call, "POST", "/forecast", {"passes": 30})
        assert [await ok(call, "GET", path) for path in reads] == before
        assert await ok(call, "POST", "/forecast", {"passes": 30}) == first
        assert first["assumes"]["memories_per_batch"] == 1
        assert first["assumes"]["characters"] == round(sum(map(len, SAID)) / len(SAID))


async def test_chosen_nodes(tmp_path: Path, caller_in: CallerIn) -> None:
    """`nodes` leaves the rows of these nodes. A node without a life of its own is an error."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        everything = await ok(call, "POST", "/forecast", {"passes": 30})
        one = everything["forgotten"]["id"][0]
        found = await ok(call, "POST", "/forecast", {"passes": 30, "nodes": [f"n{one}"]})
        for name in ("shortened", "forgotten"):
            assert rows(found[name]) == [row for row in rows(everything[name]) if row[0] == one]
        entity = (await ok(call, "GET", "/entities"))["entities"][0]["id"]
        refused = (await call("POST", f"{AGENT}/forecast", {"nodes": [entity]})).json()["error"]
        assert refused["reason"] == "INVALID_VALUE"
        assert "has no forecast; memories and statements have one" in refused["message"]
        assert await call.refused("POST", f"{AGENT}/forecast", {"nodes": ["n999"]}) == "NODE_NOT_FOUND"
        assert await call.refused("POST", f"{AGENT}/forecast", {"nodes": ["x"]}) == "INVALID_VALUE"
        await ok(call, "DELETE", f"/nodes/n{one}")
        assert await call.refused("POST", f"{AGENT}/forecast", {"nodes": [f"n{one}"]}) == "NODE_FORGOTTEN"


async def test_an_empty_agent_and_wrong_values(tmp_path: Path, caller_in: CallerIn) -> None:
    """Nothing happens to an empty agent. Numbers outside their limits are refused."""
    async with caller_in(tmp_path) as call:
        await ok(call, "PUT", "", {})
        found = await ok(call, "POST", "/forecast", {})
        assert await ok(call, "POST", "/forecast", {"passes": None, "memories_per_batch": None}) == found
        assert (found["pass_number"], found["passes"]) == (0, 200)
        assert rows(found["shortened"]) == rows(found["forgotten"]) == []
        for body in (
            {"passes": 0},
            {"passes": 1001},
            {"memories_per_batch": -1},
            {"memories_per_batch": 1001},
        ):
            assert await call.refused("POST", f"{AGENT}/forecast", body) == "INVALID_VALUE"
        assert await call.refused("POST", "/v1/agents/none/forecast", {}) == "AGENT_NOT_FOUND"


async def test_a_forecast_ends_with_the_last_memory(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once every memory, or every chosen one, is forgotten, no further pass is computed. An empty agent needs none."""
    passes = counted_passes(monkeypatch)
    async with caller_in(tmp_path) as call:
        await call("PUT", "/v1/agents/empty", {})
        assert (await call("POST", "/v1/agents/empty/forecast", {"passes": 1000})).status_code == 200
        assert passes == []
        await lived(call)
        for body in ({}, {"nodes": ["n1"]}):
            passes.clear()
            found = await ok(call, "POST", "/forecast", {"passes": 1000, **body})
            assert len(passes) == found["forgotten"]["after"][-1] < found["passes"]


async def test_a_forecast_ends_after_its_time(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response says how many passes were computed in time, at least one, and is exact for these."""
    async with caller_in(tmp_path) as call:
        await lived(call)
        await ok(call, "PUT", "/nodes/n1/pin")  # so that not everything is forgotten soon
        whole = await ok(call, "POST", "/forecast", {"passes": 30})
        monkeypatch.setattr(forecast, "MAX_COMPUTING_S", -1.0)
        cut = await ok(call, "POST", "/forecast", {"passes": 30})
        assert (whole["passes"], cut["passes"]) == (30, 1)
        for name in ("shortened", "forgotten"):
            assert rows(cut[name]) == [row for row in rows(whole[name]) if row[1] == 1]


def test_a_waiting_forecast_gets_its_turn() -> None:
    """A forecast ends before another one that waits for it is refused."""
    assert COMPUTING_S < transfers.FORECAST_WAIT_S


async def test_places_for_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent has one forecast at a time, the daemon two. Others wait for their turn, and are refused after a time."""
    monkeypatch.setattr(transfers, "FORECAST_WAIT_S", 0.05)
    places = transfers.Transfers(60, lambda: None)
    async with places.place_for_forecast("a"):
        with pytest.raises(transfers.Exhausted, match="of this agent"):
            await places.place_for_forecast("a").__aenter__()
        async with places.place_for_forecast("b"):
            with pytest.raises(transfers.Exhausted, match="limit 2"):
                await places.place_for_forecast("c").__aenter__()
    monkeypatch.setattr(transfers, "FORECAST_WAIT_S", 60)
    order = []

    async def second() -> None:
        async with places.place_for_forecast("a"):
            order.append("second")

    async with places.place_for_forecast("a"):
        waiting = asyncio.ensure_future(second())
        await asyncio.sleep(0)
        order.append("first")
    await waiting
    assert order == ["first", "second"]
    places.shutdown()


async def test_a_cancelled_forecast_ends(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The passes end with their request, and the place is free again."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with caller_in(tmp_path) as call:
        await lived(call)
        await ok(call, "PUT", "/nodes/n1/pin")  # so that not everything is forgotten soon
        passes = counted_passes(monkeypatch, lambda: loop.call_soon_threadsafe(begun.set))
        endless = asyncio.ensure_future(call("POST", f"{AGENT}/forecast", {"passes": 1000}))
        await begun.wait()
        endless.cancel()
        await asyncio.wait([endless])
        await ok(call, "POST", "/forecast", {"passes": 1})
        assert len(passes) < 1000
