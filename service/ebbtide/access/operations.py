"""The one table of what can be asked of the daemon, and what a caller needs for it.

Both transports look here, by the name of the call or by the route, and so does the test that walks all of them:
a call or a route that is missing here needs every right (`UNLISTED`), and fails that test.

Adding an operation is one line. Its name is that of the RPC, where there is one; its route that of REST.
Deliberately not here: who has which right (`grants.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

Scope = Literal["read", "write", "admin"]

READ: Scope = "read"
WRITE: Scope = "write"
ADMIN: Scope = "admin"
SCOPES: tuple[Scope, ...] = (READ, WRITE, ADMIN)
"""What a key is for: looking; remembering, and changing or deleting memories; how agents remember, and their erasure.

They are independent: none includes another."""


class Needs(Enum):
    """What a caller needs, beside one of the operation's scopes."""

    NOTHING = "no key at all"
    KEY = "any key that counts, whatever its scopes"
    SCOPE = "nothing else; of agents it tells only within the key's reach"
    AGENT = "the agent that the request names is within the key's reach"
    EVERY_AGENT = "the key is bound to no agents, since this tells of all of them"


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that can be asked: its route, who may ask for it."""

    route: str
    needs: Needs
    scopes: tuple[Scope, ...] = ()
    """Any one of these will do."""


def _of_agent(route: str, scope: Scope) -> Operation:
    return Operation(route, Needs.AGENT, (scope,))


A = "/v1/agents/{agent_id}"

OPERATIONS: Mapping[str, Operation] = {
    "OpenAgent": _of_agent(f"PUT {A}", WRITE),
    "UpdateAgent": _of_agent(f"PATCH {A}", ADMIN),
    "GetAgent": _of_agent(f"GET {A}", READ),
    "ListAgents": Operation("GET /v1/agents", Needs.SCOPE, (READ,)),
    "CloseAgent": _of_agent(f"POST {A}/close", WRITE),
    "DeleteAgent": _of_agent(f"DELETE {A}", ADMIN),
    "Remember": _of_agent(f"POST {A}/remember", WRITE),
    "Recall": _of_agent(f"POST {A}/recall", READ),
    "Search": _of_agent(f"POST {A}/search", READ),
    "ListBatches": _of_agent(f"GET {A}/batches", READ),
    "GetBatch": _of_agent(f"GET {A}/batches/{{batch_id}}", READ),
    "RetryBatch": _of_agent(f"POST {A}/batches/{{batch_id}}/retry", WRITE),
    "Flush": _of_agent(f"POST {A}/flush", READ),
    "Compress": _of_agent(f"POST {A}/compress", ADMIN),
    "GetFocus": _of_agent(f"GET {A}/focus", READ),
    "ListNodes": _of_agent(f"GET {A}/nodes", READ),
    "GetNode": _of_agent(f"GET {A}/nodes/{{node_id}}", READ),
    "ListLinks": _of_agent(f"GET {A}/links", READ),
    "UpdateNode": _of_agent(f"PATCH {A}/nodes/{{node_id}}", WRITE),
    "DeleteNode": _of_agent(f"DELETE {A}/nodes/{{node_id}}", WRITE),
    "DeleteNodes": _of_agent(f"POST {A}/nodes/delete", WRITE),
    "ForgetMemories": _of_agent(f"POST {A}/forget", ADMIN),
    "ListAuditRecords": _of_agent(f"GET {A}/audit", ADMIN),
    "VerifyAudit": _of_agent(f"POST {A}/audit/verify", ADMIN),
    "ListErasedAgents": Operation("GET /v1/erased-agents", Needs.EVERY_AGENT, (ADMIN,)),
    "VerifyErasedAgents": Operation("POST /v1/erased-agents/verify", Needs.EVERY_AGENT, (ADMIN,)),
    "BackupAgent": _of_agent(f"GET {A}/backup", ADMIN),
    "ExportAgent": _of_agent(f"GET {A}/export", ADMIN),
    "RestoreAgent": _of_agent(f"POST {A}/restore", ADMIN),
    "WatchEvents": _of_agent(f"GET {A}/events", READ),
    "Metrics": Operation("GET /metrics", Needs.EVERY_AGENT, (READ, ADMIN)),
    "GetModel": Operation("GET /v1/model", Needs.SCOPE, (READ, ADMIN)),
    "GetScheduler": Operation("GET /v1/scheduler", Needs.EVERY_AGENT, (READ, ADMIN)),
    "Health": Operation("GET /healthz", Needs.NOTHING),
    "Readiness": Operation("GET /readyz", Needs.NOTHING),
    "OpenApi": Operation("GET /openapi.json", Needs.KEY),
    "Documentation": Operation("GET /docs", Needs.KEY),
    "DocumentationStart": Operation("GET /docs/start.js", Needs.KEY),
    "DocumentationFiles": Operation("GET /docs/files", Needs.KEY),
}
"""Everything that can be asked, by name."""

UNLISTED = Operation("", Needs.EVERY_AGENT, (ADMIN,))
"""What stands for an operation that is missing in the table."""

BY_ROUTE: Mapping[str, Operation] = {operation.route: operation for operation in OPERATIONS.values()}
"""The operations by `METHOD /path`."""

OPEN_ROUTES = frozenset(
    operation.route for operation in OPERATIONS.values() if operation.needs is Needs.NOTHING
)
"""Routes that need no key."""
