"""Who watches: streams of events, a bounded number of them, woken by what is committed.

A stream holds no agent, no job and no transaction while it waits: it is woken, reads a page through a job like any
request, and waits again. So a slow reader holds nobody up, and an agent that is watched is closed like any other when
it is idle; nothing can happen to it before somebody opens it again, and then the stream is woken.
"""

from __future__ import annotations

from collections import Counter

from ebbtide.errors import Exhausted
from ebbtide.fleet.runtime.notifier import Beat, Pulse
from ebbtide.ids import AgentId

MAX_EVENT_STREAMS = 100
"""Streams at once unless the settings say otherwise."""

HOLDERS_TO_FILL = 2
"""So many keys at least it takes to have all places: whoever has one key cannot keep everybody else out."""


def share_of(most: int) -> int:
    """Most places that one holder may have of so many."""
    return max(1, most // HOLDERS_TO_FILL)


def _too_many(told: str, whose: str, most: int) -> Exhausted:
    metadata = {"limit": whose, "most": str(most)}
    return Exhausted(told, reason="TOO_MANY_STREAMS", metadata=metadata, retry_after_s=5.0)


class Watching:
    """Every stream of one daemon. Only `is_watched` may be asked on other threads than the event loop's."""

    def __init__(self, most: int = MAX_EVENT_STREAMS) -> None:
        self.most = most
        self.count = 0
        self._count_by_holder: Counter[str] = Counter()
        self._pulses: dict[AgentId, tuple[Pulse, set[Watch]]] = {}

    def admit(self, agent_id: AgentId, holder: str = "") -> Watch:
        """A place for one more stream; TOO_MANY_STREAMS where there is none, or its holder has its share of them.

        Without a holder, where nobody knows who asks, there are no shares.
        """
        share = share_of(self.most)
        if holder and self._count_by_holder[holder] >= share:
            raise _too_many(f"the key has {share} event streams open already, of {self.most}", "key", share)
        if self.count >= self.most:
            raise _too_many(f"{self.most} event streams are open already", "daemon", self.most)
        self.count += 1
        self._count_by_holder[holder] += 1
        pulse, watches = self._pulses.setdefault(agent_id, (Pulse(), set()))
        watch = Watch(self, agent_id, pulse, holder)
        watches.add(watch)
        return watch

    def is_watched(self, agent_id: AgentId) -> bool:
        """Whether anybody would be woken."""
        return agent_id in self._pulses

    def beat(self, agent_id: AgentId) -> None:
        """Something has happened to this agent: wake its streams."""
        if agent_id in self._pulses:
            self._pulses[agent_id][0].beat()

    def beat_all(self) -> None:
        """Wake every stream, so that it sees that the daemon stops."""
        for pulse, _ in self._pulses.values():
            pulse.beat()

    def leave(self, watch: Watch) -> None:
        """A stream has ended. Idempotent."""
        _, watches = self._pulses.get(watch.agent_id, (None, set()))
        if watch not in watches:
            return
        self.count -= 1
        self._count_by_holder[watch.holder] -= 1
        if not self._count_by_holder[watch.holder]:
            del self._count_by_holder[watch.holder]
        watches.remove(watch)
        if not watches:
            del self._pulses[watch.agent_id]


class Watch:
    """One stream's place."""

    def __init__(self, watching: Watching, agent_id: AgentId, pulse: Pulse, holder: str) -> None:
        self.agent_id = agent_id
        self.holder = holder
        self._watching = watching
        self._pulse = pulse

    def next_beat(self) -> Beat:
        """The next time that something happens; to be taken before looking whether something has."""
        return self._pulse.next_beat()

    def end(self) -> None:
        """Give the place back. Idempotent."""
        self._watching.leave(self)
