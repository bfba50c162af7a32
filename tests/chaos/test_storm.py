"""All operations at once on few agents: close, delete, update and compress while others remember and recall."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.callers import RestCaller, rest_in
from tests.support.tier import IS_ALL

STORM_S = 4.0 if IS_ALL else 2.0
CLIENTS = 16
PATCHES: list[dict[str, Any]] = [
    {"decay_rate": 0.9},
    {"decay_rate": 0.97},
    {"strategy": "slots", "max_nodes": 150},
    {"strategy": "scan"},
    {"focus_limit": 3},
    {"long_term_factor": 0.5},
]
EXPECTED = {200, 201, 202, 404, 409}


async def client(call: RestCaller, dice: Random, end_s: float) -> list[str]:
    """Run one client with random requests. Return the responses that must not occur."""
    odd = []
    while time.monotonic() < end_s:
        agent = f"/v1/agents/{dice.choice('abc')}"
        text = f"第{dice.random()}次在海边看见灯塔，外婆很高兴。"
        method, path, body = dice.choice(
            [("POST", "/remember", {"messages": [{"role": "user", "content": text}] * dice.choice((1, 3))})]
            * 6
            + [("POST", "/recall", {"depth": 3, "patience_ms": dice.choice((0, 50))})] * 4
            + [("POST", "/flush", {"timeout_ms": 200, "passes": True}), ("POST", "/compress", {"passes": 2})]
            + [("POST", "/close", None), ("DELETE", "", None), ("PUT", "", None), ("GET", "/nodes", None)]
            + [("PATCH", "", dice.choice(PATCHES)), ("GET", "/links", None)]
        )
        response = await call(method, agent + path, body)
        closing = response.status_code == 503 and response.json()["error"]["reason"] == "AGENT_CLOSING"
        if response.status_code not in EXPECTED and not closing:
            odd.append(f"{method} {path}: {response.status_code} {response.text}")
    return odd


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
async def test_nothing_is_stuck_or_broken_after_a_storm(tmp_path: Path, seed: int) -> None:
    """No request fails with a server error; then every agent digests and compresses, and stores are consistent."""
    async with rest_in(tmp_path) as call:
        end_s = time.monotonic() + STORM_S
        found = await asyncio.gather(*(client(call, Random(seed * 100 + n), end_s) for n in range(CLIENTS)))
        assert [odd for odds in found for odd in odds] == []
        for agent in "abc":
            await call(
                "POST",
                f"/v1/agents/{agent}/remember",
                {"messages": [{"role": "user", "content": "平静下来了。"}]},
            )
            flushed = await call("POST", f"/v1/agents/{agent}/flush", {"timeout_ms": 20_000, "passes": True})
            assert flushed.json()["digested"] is True
            assert flushed.json()["passes_done"] is True
