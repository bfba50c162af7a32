"""The served demo has a pace that a viewer can follow, also on a busy machine."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ebbtide.cli.demo.events import Event, Remembered, TimePassed
from ebbtide.cli.demo.serving import BATCH_S, CONVERSATION_S, paced

BATCHES = 100


async def played(work_s: float) -> tuple[float, list[float]]:
    """Return how long a story takes whose events take this long each, and the pauses in it."""
    now = 0.0
    pauses: list[float] = []

    async def events() -> AsyncIterator[Event]:
        nonlocal now
        conversation = Remembered(1, "", "b1", 1, [], [])
        for one in (conversation, *(TimePassed(number, "", [], 1.0) for number in range(BATCHES))):
            now += work_s
            yield one

    async def sleep(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        now += seconds

    await paced(events(), lambda: now, sleep)
    return now, pauses


async def test_work_is_part_of_the_pace() -> None:
    """A story takes the same time on every machine that is fast enough, and no pause is longer than its event."""
    for work_s in (0.0, BATCH_S / 4, BATCH_S * 0.9):
        took, pauses = await played(work_s)
        assert abs(took - (CONVERSATION_S + BATCHES * BATCH_S)) < 1e-6
        assert max(pauses) <= CONVERSATION_S
        assert len(pauses) == BATCHES + 1


async def test_a_slow_machine_does_not_pause() -> None:
    """Only work takes time once the story is late."""
    took, pauses = await played(2 * BATCH_S)
    assert took - (BATCHES + 1) * 2 * BATCH_S <= CONVERSATION_S
    assert len(pauses) < BATCHES / 4
