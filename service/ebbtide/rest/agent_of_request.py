"""The agent that a request of MCP or of the memory proxy is for: one rule for both."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote_to_bytes

from starlette.datastructures import Headers
from starlette.types import Scope

from ebbtide.access.grants import Caller
from ebbtide.errors import InvalidRequest
from ebbtide.ids import parse_agent_id

AGENT_HEADER = "x-ebbtide-agent"


def agent_of(scope: Scope, caller: Caller, default: str, hints: Iterable[str] = ()) -> str:
    """Return the agent that a request is for.

    It is that of the path, the header `X-Ebbtide-Agent`, the first of the hints, the key, or the default. A key names
    an agent if it is bound to this one only. The header is UTF-8, percent-encoded. Raise INVALID_AGENT_ID.
    """
    in_path = scope.get("path_params", {}).get("agent_id")
    if in_path:
        return parse_agent_id(in_path)
    given = Headers(scope=scope).getlist(AGENT_HEADER)
    if len(given) > 1:
        raise InvalidRequest(
            "X-Ebbtide-Agent: given more than once; allowed: once", reason="INVALID_AGENT_ID"
        )
    if given:
        try:
            return parse_agent_id(unquote_to_bytes(given[0].encode("ascii")).decode())
        except UnicodeError as error:
            fault = "is not percent-encoded UTF-8, such as %E6%9E%97%E6%9C%88 for 林月"
            raise InvalidRequest(f"X-Ebbtide-Agent: {fault}", reason="INVALID_AGENT_ID") from error
    for hint in hints:
        return parse_agent_id(hint)
    reach = caller.grant.reach
    if not reach.is_everywhere and not reach.prefixes and len(reach.agents) == 1:
        return next(iter(reach.agents))
    return parse_agent_id(default)


def scope_for(scope: Scope, agent_id: str, rest: str, raw_rest: bytes) -> Scope:
    """Return the scope with the agent in its path, for the worker that owns the agent. `rest` follows the agent."""
    raw = f"/v1/agents/{quote(agent_id, safe='')}".encode() + raw_rest
    return {**scope, "path": f"/v1/agents/{agent_id}{rest}", "raw_path": raw}
