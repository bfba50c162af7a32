"""`GET /v1/me` and GetMe: a caller gets the permissions of its key, over both transports."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide import __version__
from tests.support.callers import CALLERS, CallerIn
from tests.support.keys import KEYS_ON, id_of, new_key


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def test_a_caller_learns_what_its_key_allows(tmp_path: Path, caller_in: CallerIn) -> None:
    """Scopes and reach are those of the key; a key without any other scope may call it too."""
    key = new_key(tmp_path, "write", "read", agents=["ann"])
    async with caller_in(tmp_path, access=KEYS_ON) as call:
        call.show(key)
        assert (await call("GET", "/v1/me")).json() == {
            "keys_required": True,
            "key_id": id_of(key),
            "scopes": ["read", "write"],
            "agents": ["ann"],
            "agent_prefixes": [],
            "everywhere": False,
            "version": __version__,
        }


async def test_without_keys_a_caller_may_do_everything(tmp_path: Path, caller_in: CallerIn) -> None:
    """A daemon that requires no keys reports every scope and every agent."""
    async with caller_in(tmp_path) as call:
        told = (await call("GET", "/v1/me")).json()
        assert (told["keys_required"], told["key_id"], told["everywhere"]) == (False, "", True)
        assert told["scopes"] == ["read", "write", "admin"]
