"""Calls by which an agent leaves and comes back: a stream of pieces instead of one message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from ebbtide.errors import InvalidRequest
from ebbtide.verbs import moving
from ebbtide.verbs.moving import Restored
from ebbtide.verbs.service import Service

Fields = dict[str, Any]
Take = Callable[[bytes], Awaitable[object]]
Download = Callable[[Service, Fields, Take], Awaitable[None]]


async def backup(on: Service, fields: Fields, take: Take) -> None:
    """Back an agent up."""
    with await moving.backup(on, fields["agent_id"]) as leaving:
        await leaving.hand_over(take)


async def export(on: Service, fields: Fields, take: Take) -> None:
    """Export an agent."""
    with await moving.export(on, fields["agent_id"]) as leaving:
        await leaving.hand_over(take)


DOWNLOADS: Mapping[str, Download] = {"BackupAgent": backup, "ExportAgent": export}
"""Calls that are answered with a file, by their names in the schema."""

UPLOADS = frozenset({"RestoreAgent"})
"""Calls that are asked with one."""


async def restore(on: Service, messages: AsyncIterator[Fields], permit: Callable[[str], None]) -> Restored:
    """Bring an agent back; the first message says how, and of whom: `permit` refuses who may not."""
    first = await anext(messages, None)
    if first is None:
        raise InvalidRequest("agent_id: required; the first message names it", reason="MISSING_FIELD")

    permit(first["agent_id"])

    async def pieces() -> AsyncIterator[bytes]:
        if first["chunk"]:
            yield first["chunk"]
        async for message in messages:
            yield message["chunk"]

    how = {"replace": first["replace"], "rename": first["rename"]}
    return await moving.restore(on, first["agent_id"], pieces(), **how)
