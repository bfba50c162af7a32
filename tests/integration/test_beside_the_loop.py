"""What takes as long as something is large is done beside the event loop, and no more of it than is needed.

Nothing here is timed: the thread that does the work is looked at, or how often something is done.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from tests.support import looking
from tests.support.in_process import service_in, settle, tell
from tests.support.scripted_model import ScriptedModel


async def test_long_batch_becomes_memories_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two segments of a batch everyone else has a turn: no memory waits for all to be processed."""
    model = ScriptedModel()
    made_after: list[int] = []
    digest = importlib.import_module("ebbtide.fleet.digest")
    inner = digest.memory_of

    def noted(*given: Any) -> Any:
        made_after.append(model.calls["process"])
        return inner(*given)

    monkeypatch.setattr(digest, "memory_of", noted)
    async with service_in(tmp_path / "data", model) as service:
        await tell(service, "ann", *(f"Fact number {n} is well known here." for n in range(5)))
        await settle(service, "ann")
        assert len(await looking.nodes(service, "ann")) == 5
    assert made_after == [1, 2, 3, 4, 5]
