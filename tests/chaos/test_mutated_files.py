"""Manipulated exports and backups: each is refused with a clear error, or becomes an agent that works.

`EBBTIDE_MUTATIONS` says how many are tried, the same ones every time: 60 in `make test`, 200 in `make test-all`, 20 000
in `make chaos`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from ebbtide.ids import AgentId
from ebbtide.store.integrity.check import check_store
from tests.support.callers import CALLERS, reason_of
from tests.support.mutations import mutated_backup, mutated_export
from tests.support.rich_agents import files
from tests.support.tier import amount
from tests.support.using import Broken, used

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(86_400)]

MUTATIONS = amount("EBBTIDE_MUTATIONS", 40, 200)
FIRST_SEED = int(os.environ.get("EBBTIDE_MUTATIONS_FROM", "0"))

FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None

REASONS = frozenset(
    {"BACKUP_UNREADABLE", "INVALID_PARAMETERS", "FORMAT_TOO_NEW", "BACKUP_OF_ANOTHER_AGENT", "STORE_FULL"}
)
"""Reasons that may refuse a file."""

AT_ONCE = 6
"""Agents that are tried at a time; each waits now and then for background work."""

RESTORES_AT_ONCE = 3
"""Fewer than a daemon allows."""


def mutated(seed: int, sources: dict[tuple[str, str], bytes]) -> tuple[str, bytes]:
    """Return the form and the content of the file of a seed."""
    dice = Random(seed)
    name, form = dice.choice(sorted(sources))
    mutate = mutated_export if form == "export" else mutated_backup
    return form, mutate(dice, sources[name, form])


@dataclass
class Trial:
    """Files that are restored on one daemon, and their outcomes."""

    call: Any
    kept: Path
    events: list[Any]
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: dict[int, str] = field(default_factory=dict)
    transfers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(RESTORES_AT_ONCE))

    async def run(self, seeds: Iterator[int], sources: dict[tuple[str, str], bytes]) -> None:
        """Restore the file of each seed."""
        for seed in seeds:
            form, content = mutated(seed, sources)
            agent = f"mutant{seed}"
            try:
                self.outcomes[form, await self._outcome(agent, form, content)] += 1
                failed = self._failed(agent)
                if failed:
                    raise Broken(f"failed in the background: {failed[:2]}")
            except Broken as error:
                self.broken[seed] = f"{form}: {error}"
                (self.kept / f"{seed}.{form}").write_bytes(content)
                await self.call("DELETE", f"/v1/agents/{agent}")

    async def _outcome(self, agent: str, form: str, content: bytes) -> str:
        """Restore a file. Return the reason of its refusal, or `accepted` after every operation on the agent."""
        call, path = self.call, f"/v1/agents/{agent}"
        async with self.transfers:
            response = await call.upload(f"{path}/restore", content, rename=True)
        if response.status_code != 200:
            reason = reason_of(response)
            if reason not in REASONS:
                raise Broken(f"refused with {response.text[:300]}")
            return reason
        await used(call, path)
        async with call.service.fleet.using(AgentId(agent)) as open_agent:
            findings = await open_agent.run(lambda: check_store(open_agent.workspace.store))
        if findings:
            raise Broken(f"{len(findings)} findings, the first: {findings[0]}")
        async with self.transfers:
            assert await call.download(f"{path}/{form}")
            again = await call.download(f"{path}/{'backup' if form == 'export' else 'export'}")
            response = await call.upload(f"{path}/restore", again, replace=True)
        if response.status_code != 200:
            raise Broken(f"what it left as is refused: {response.text[:300]}")
        assert (await call("DELETE", path)).status_code == 200
        return "accepted"

    def _failed(self, agent: str) -> list[Any]:
        """Return the logged failures of background work."""
        mine = [event for event in self.events if event.get("agent_id", agent) == agent]
        self.events[:] = [event for event in self.events if event.get("agent_id", agent) != agent]
        return [
            event
            for event in mine
            if event["log_level"] in ("error", "critical") or str(event["event"]).endswith(" waits")
        ]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], bytes]:
    """The files to mutate."""
    return asyncio.run(files(tmp_path_factory.mktemp("sources")))


@pytest.mark.parametrize("transport", CALLERS)
async def test_a_mutated_file_is_refused_or_works(
    tmp_path: Path, transport: str, sources: dict[tuple[str, str], bytes]
) -> None:
    """Every mutation ends in a documented refusal that changes nothing, or in an agent on which everything works."""
    count = MUTATIONS // 4 if transport == "grpc" else MUTATIONS - MUTATIONS // 4
    first = FIRST_SEED + (0 if transport == "rest" else 10**9)
    seeds = iter(range(first, first + count))
    with tempfile.TemporaryDirectory(dir=FAST) as home, capture_logs() as events:
        async with CALLERS[transport](Path(home) / "data") as call:
            trial = Trial(call, tmp_path, events)
            await asyncio.gather(*(trial.run(seeds, sources) for _ in range(AT_ONCE)))
    for (form, what), times in sorted(trial.outcomes.items()):
        print(f"{transport} {form} {what}: {times}")
    assert trial.broken == {}, f"{len(trial.broken)} files, kept in {tmp_path}"
    if count >= 100:
        for form in ("export", "backup"):
            assert trial.outcomes[form, "accepted"] and trial.outcomes[form, "BACKUP_UNREADABLE"]
