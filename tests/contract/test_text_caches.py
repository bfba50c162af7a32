"""A deletion removes the text from the caches of the process."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.callers import Caller, rest_in

AGENT = "/v1/agents/ann"
MARK = "Zyxomarq"
TEXTS = (
    f"I live in {MARK}.",
    f"My sister {MARK} works for {MARK} Limited and she's well.",
    f"我的朋友叫{MARK}，她住在里斯本。",
)


def cached_texts() -> list[str]:
    """Return the arguments with the word in the caches of all functions."""
    modules = [module for name, module in sys.modules.items() if name.startswith("ebbtide.")]
    named = [one for module in modules for one in vars(module).values()]
    caches = [one for one in named if isinstance(one, functools._lru_cache_wrapper)]
    entries = [one for cache in caches for one in gc.get_referents(cache) if isinstance(one, dict)]
    arguments = [repr(key) for entry in entries for key in entry]
    return [text for text in arguments if MARK.casefold() in text.casefold()]


async def filled(call: Caller) -> str:
    """Let an agent remember, extract and find texts. Return the id of the memory of the first one."""
    await call("PUT", AGENT, {"extraction": "rules"})
    for text in TEXTS:
        body = {"messages": [{"role": "user", "content": text}]}
        assert (await call("POST", f"{AGENT}/remember", body)).status_code == 202
    await call("POST", f"{AGENT}/flush", {"extraction": True, "passes": True})
    for path in ("search", "recall", "statements/search"):
        found = await call("POST", f"{AGENT}/{path}", {"query": "Where do I live?"})
        assert MARK in found.text
    assert MARK in (await call("GET", f"{AGENT}/profile")).text
    nodes = (await call("GET", f"{AGENT}/nodes", params={"kinds": "episode"})).json()["nodes"]
    return next(str(node["id"]) for node in nodes if node["content"] == TEXTS[0])


async def delete(call: Caller, node: str) -> int:
    """Delete a memory."""
    return (await call("DELETE", f"{AGENT}/nodes/{node}")).status_code


async def correct(call: Caller, node: str) -> int:
    """Correct a memory."""
    return (await call("PATCH", f"{AGENT}/nodes/{node}", {"content": "I live in Porto."})).status_code


async def forget(call: Caller, node: str) -> int:
    """Forget a topic."""
    return (await call("POST", f"{AGENT}/forget", {"topic": MARK})).status_code


async def clear(call: Caller, node: str) -> int:
    """Clear the agent."""
    return (await call("POST", f"{AGENT}/clear")).status_code


async def delete_agent(call: Caller, node: str) -> int:
    """Delete the agent."""
    return (await call("DELETE", AGENT)).status_code


@pytest.mark.parametrize("deletion", [delete, correct, forget, clear, delete_agent])
async def test_no_cache_contains_a_deleted_text(
    tmp_path: Path, deletion: Callable[[Caller, str], Awaitable[int]]
) -> None:
    """A text is in caches while the agent uses it, and in none after any kind of deletion."""
    async with rest_in(tmp_path, embedding={"model": "off"}) as call:
        node = await filled(call)
        assert cached_texts()
        assert await deletion(call, node) < 300
        assert cached_texts() == []
