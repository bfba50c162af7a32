"""After a store error the digest recovers as soon as the store works, even if no batch waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import Unavailable
from ebbtide.verbs.service import get_readiness
from tests.support import looking
from tests.support.in_process import service_in, settle, tell
from tests.support.waiting import eventually


async def test_readiness_recovers_though_no_batch_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store error degrades readiness; the next success restores it without a new batch."""
    async with service_in(tmp_path / "data", language={"retry_base_ms": 10}) as service:
        await tell(service, "ann", "The kettle is blue.")
        await settle(service, "ann")
        agent = looking.opened_agent(service, "ann")
        inbox = agent.workspace.inbox
        inner, refusals = inbox.next_task, [Unavailable("no disk", reason="STORE_UNAVAILABLE")]

        def refused_once(*given: Any) -> Any:
            if refusals:
                raise refusals.pop()
            return inner(*given)

        monkeypatch.setattr(inbox, "next_task", refused_once)
        agent.digest.notice()
        await eventually(lambda: not refusals)
        await eventually(lambda: not agent.digest.is_held_up)
        assert not any("digests wait" in reason for reason in (await get_readiness(service)).reasons)
