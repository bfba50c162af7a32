"""Counts of an agent: exact, or with noise within a privacy budget, the same over every transport."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ebbtide.verbs import stats
from tests.contract.test_focus import remember
from tests.support.callers import CALLERS, Caller, CallerIn, rest_in

AGENT = "/v1/agents/ann"
COUNTS = ("messages", "memories", "pinned", "entities")


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def stats_of(call: Caller, **options: Any) -> dict[str, Any]:
    """Return the counts of the agent."""
    response = await call("GET", f"{AGENT}/stats", params=options)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def audited(call: Caller) -> list[tuple[str, dict[str, Any]]]:
    """Return the action and the details of each audit record."""
    records = (await call("GET", f"{AGENT}/audit")).json()["records"]
    return [(record["action"], record["details"]) for record in records]


async def test_a_restored_backup_keeps_what_was_spent(tmp_path: Path, caller_in: CallerIn) -> None:
    """A copy from a backup has the budget of its original; one from an export, and a cleared agent, a whole one."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.")
        await stats_of(call, epsilon=0.5)
        for form, name, spent in (("backup", "bob", 0.6), ("export", "cid", 0.1)):
            file = await call.download(f"{AGENT}/{form}")
            copied = await call.upload(f"/v1/agents/{name}/restore", file, rename=True)
            assert copied.status_code == 200, copied.text
            found = await call("GET", f"/v1/agents/{name}/stats", params={"epsilon": 0.1})
            assert found.json()["privacy_spent"] == spent
        await call("POST", f"{AGENT}/clear", {})
        assert (await stats_of(call, epsilon=0.1))["privacy_spent"] == 0.1


async def test_exact_counts_are_those_of_the_agent(tmp_path: Path, caller_in: CallerIn) -> None:
    """Exact counts agree with the listings, cost no budget and leave no record."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.", "Bruno paints old boats in Ghent.")
        first = (await call("GET", f"{AGENT}/nodes")).json()["nodes"][0]
        await call("PUT", f"{AGENT}/nodes/{first['id']}/pin")
        said = {"subject": "I", "topic": "pet", "object": "a dog"}
        pet = (await call("POST", f"{AGENT}/statements", said)).json()
        await call("POST", f"{AGENT}/feedback", {"node_id": pet["id"], "action": "pin"})
        counts = (await call("GET", AGENT)).json()["counts"]
        found = await stats_of(call)
        assert found == {
            "messages": 3,
            "memories": counts["nodes"],
            "pinned": 2,
            "entities": counts["entities"],
            "links": counts["links"],
            "epsilon": None,
            "privacy_budget": 10,
            "privacy_spent": 0,
        }
        assert counts["nodes"] == 3 and counts["entities"] >= 2
        assert [action for action, _ in await audited(call)] == ["created", "ruled"]


async def test_a_release_spends_the_budget_and_is_audited(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each release adds noise, spends epsilon and is recorded. One beyond the budget is refused and spends nothing."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"privacy_budget": 1})
        await remember(call, "Clara plays the cello in Porto.")
        found = await stats_of(call, epsilon=0.6)
        assert found["links"] is None and found["epsilon"] == 0.6
        assert (found["privacy_budget"], found["privacy_spent"]) == (1, 0.6)
        assert all(found[name] >= 0 for name in COUNTS) and found["memories"] >= found["pinned"]
        assert await call.refused("GET", f"{AGENT}/stats", params={"epsilon": 0.5}) == "PRIVACY_BUDGET_SPENT"
        assert (await stats_of(call))["privacy_spent"] == 0.6
        assert (await stats_of(call, epsilon=0.4))["privacy_spent"] == 1
        assert (
            await call.refused("GET", f"{AGENT}/stats", params={"epsilon": 0.001}) == "PRIVACY_BUDGET_SPENT"
        )
        released = [details for action, details in await audited(call) if action == "stats_released"]
        assert released == [{"epsilon": 0.6}, {"epsilon": 0.4}]
        await call("PATCH", AGENT, {"privacy_budget": 2})
        assert (await stats_of(call, epsilon=1))["privacy_spent"] == 2


async def test_the_noise_is_that_of_epsilon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each count has noise of its own; a negative result becomes 0; pinned memories are counted apart."""
    given: list[Fraction] = []
    noise = iter([1, 10, 100, -1000])

    def planned(epsilon: Fraction) -> int:
        given.append(epsilon)
        return next(noise)

    monkeypatch.setattr(stats, "discrete_laplace", planned)
    async with rest_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.", "Bruno paints old boats in Ghent.")
        exactly = await stats_of(call)
        found = await stats_of(call, epsilon=0.25)
        # In this order: pinned, messages, other memories, entities.
        assert found["pinned"] == 1
        assert found["messages"] == exactly["messages"] + 10
        assert found["memories"] == 1 + exactly["memories"] + 100
        assert found["entities"] == 0
        assert given == [Fraction(1, 4)] * 4


async def test_a_text_is_no_epsilon(tmp_path: Path) -> None:
    """A query option that is not a number is refused by name."""
    async with rest_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.")
        for text in ("much", "", "1" * 30):
            assert await call.refused("GET", f"{AGENT}/stats", params={"epsilon": text}) == "WRONG_TYPE"


@pytest.mark.parametrize("epsilon", ["0", "-1", "0.0009", "100.1", "nan", "inf"])
async def test_an_invalid_epsilon_is_refused(tmp_path: Path, caller_in: CallerIn, epsilon: str) -> None:
    """Epsilon is 0.001 to 100; anything else is refused, and spends nothing."""
    async with caller_in(tmp_path) as call:
        await remember(call, "Clara plays the cello in Porto.")
        assert (
            await call.refused("GET", f"{AGENT}/stats", params={"epsilon": float(epsilon)}) == "INVALID_VALUE"
        )
        assert (await stats_of(call))["privacy_spent"] == 0


async def test_what_was_spent_survives_a_restart(tmp_path: Path) -> None:
    """The audit log has what was spent: closing the agent and restarting the daemon give nothing back."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"privacy_budget": 1})
        await stats_of(call, epsilon=0.75)
        assert (await call("POST", f"{AGENT}/close")).status_code == 200
        assert (await stats_of(call))["privacy_spent"] == 0.75
    async with rest_in(tmp_path) as call:
        assert await call.refused("GET", f"{AGENT}/stats", params={"epsilon": 0.5}) == "PRIVACY_BUDGET_SPENT"
        assert (await stats_of(call, epsilon=0.25))["privacy_spent"] == 1


async def test_many_releases_at_once_keep_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of concurrent releases, exactly those that fit into the budget succeed, also while the log is read in steps."""
    monkeypatch.setattr("ebbtide.fleet.state.privacy_budget.RECORDS_AT_ONCE", 2)
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"privacy_budget": 1})
        requests = (call("GET", f"{AGENT}/stats", params={"epsilon": 0.1}) for _ in range(25))
        statuses = [response.status_code for response in await asyncio.gather(*requests)]
        assert (statuses.count(200), statuses.count(409)) == (10, 15)
        await call("POST", f"{AGENT}/close")
        assert (await stats_of(call))["privacy_spent"] == 1


async def test_a_backup_has_what_was_spent(tmp_path: Path) -> None:
    """An agent restored from a backup has spent what the original had."""
    async with rest_in(tmp_path) as call:
        await stats_of_new(call)
        backup = await call.download(f"{AGENT}/backup")
        assert (await call("DELETE", AGENT)).status_code == 200
        assert (await call.upload(f"{AGENT}/restore", backup)).status_code == 200
        assert (await stats_of(call))["privacy_spent"] == 0.5


async def stats_of_new(call: Caller) -> None:
    """Create the agent and release its counts once."""
    await remember(call, "Clara plays the cello in Porto.")
    assert (await stats_of(call, epsilon=0.5))["privacy_spent"] == 0.5
