"""Operations performed inside the daemon for a caller of another protocol: MCP, and the memory proxy."""

from __future__ import annotations

from typing import Any

from ebbtide.access.grants import CALLER
from ebbtide.errors import EbbtideError
from ebbtide.telemetry import verb_span
from ebbtide.verbs.catalogue import OPERATIONS
from ebbtide.verbs.merging import perform
from ebbtide.verbs.requests import validated
from ebbtide.verbs.service import Service

PASS_EVERY_TOKENS = 2_000
"""The parameter `pass_every_tokens` of an agent that is created here: every call of `Remember` is a small batch."""


async def call_operation(service: Service, agent_id: str, name: str, /, **fields: Any) -> Any:
    """Perform an operation for an agent, if the caller may. Return its response."""
    operation = OPERATIONS[name]
    with verb_span(operation.verb_name):
        service.authentication.permit(CALLER.get(), operation.requires, agent_id)
        request = validated(operation.request, {"agent_id": agent_id, **fields}, service.settings.limits)
        return await perform(service, operation, request)


async def ensure_agent(service: Service, agent_id: str) -> None:
    """Create the agent if it does not exist, so that it does not owe a pass for every small batch."""
    if service.settings.memory.pass_every_tokens:
        return
    try:
        await call_operation(
            service, agent_id, "OpenAgent", parameters={"pass_every_tokens": PASS_EVERY_TOKENS}
        )
    except EbbtideError as error:
        if error.reason != "PARAMETERS_DIFFER":
            raise
