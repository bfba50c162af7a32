"""Tools over REST: declared in every form, and called with the scope of what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.access.grants import CALLER, Caller, Grant, Reach
from ebbtide.errors import Forbidden
from ebbtide.verbs.tools import CallToolRequest, ListToolsRequest, call_tool, list_tools
from tests.support.in_process import service_in

CALLS = {
    "remember": ("write", '{"content": "I moved to Lisbon in May."}'),
    "recall": ("read", '{"q": "Where did I move?"}'),
    "forget": ("admin", '{"topic": "Lisbon", "dry_run": true}'),
}


async def test_a_tool_remembers_recalls_and_forgets(tmp_path: Path) -> None:
    """A message that a model remembers is recalled by its words, and found for erasure."""
    async with service_in(tmp_path / "data") as service:

        async def call(name: str, arguments: object) -> dict[str, object]:
            request = CallToolRequest.model_validate({"agent_id": "a", "name": name, "arguments": arguments})
            return (await call_tool(service, request)).result

        await call("remember", CALLS["remember"][1])
        assert "Lisbon" in str((await call("recall", CALLS["recall"][1]))["text"])
        found = await call("forget", {"topic": "Lisbon", "dry_run": True})
        assert found["dry_run"] is True
        assert found["messages"] or found["partly"]


@pytest.mark.parametrize("name", CALLS)
async def test_a_tool_needs_the_scope_of_its_operation(tmp_path: Path, name: str) -> None:
    """A key with every other scope is refused before anything is read or stored."""
    scope, arguments = CALLS[name]
    others = frozenset({"read", "write", "admin"}) - {scope}
    async with service_in(tmp_path / "data") as service:
        token = CALLER.set(Caller("k1", Grant(others, Reach(is_everywhere=True))))
        try:
            with pytest.raises(Forbidden) as refused:
                await call_tool(service, CallToolRequest(agent_id="a", name=name, arguments=arguments))
        finally:
            CALLER.reset(token)
    assert refused.value.reason == "SCOPE_MISSING"


@pytest.mark.parametrize(
    ("form", "key"), [("openai", "function"), ("anthropic", "input_schema"), ("mcp", "inputSchema")]
)
async def test_the_declarations_have_the_form_of_the_vendor(tmp_path: Path, form: str, key: str) -> None:
    """Each form has its own name for the schema, and every callable tool."""
    async with service_in(tmp_path / "data") as service:
        found = await list_tools(service, ListToolsRequest.model_validate({"format": form, "lang": "zh"}))
    assert len(found.tools) == len(CALLS)
    assert all(key in one for one in found.tools)
