"""Who watches: streams of events, a bounded number of them, woken by what is committed.

A stream holds no agent, no job and no transaction while it waits: it is woken, reads a page through a job like any
request, and waits again. So a slow reader holds nobody up, and an agent that is watched is closed like any other when
it is idle; nothing can happen to it before somebody opens it again, and then the stream is woken.
"""

from __future__ import annotations

from ebbtide.errors import Exhausted
from ebbtide.fleet.pulse import Beat, Pulse
from ebbtide.vocabulary import AgentId

MAX_EVENT_STREAMS = 100
"""Streams at once unless the settings say otherwise."""


class Watching:
    """Every stream of one daemon. Only `is_watched` may be asked on other threads than the event loop's."""

    def __init__(self, most: int = MAX_EVENT_STREAMS) -> None:
        self.most = most
        self.count = 0
        self._pulses: dict[AgentId, tuple[Pulse, set[Watch]]] = {}

    def admit(self, agent_id: AgentId) -> Watch:
        """A place for one more stream; TOO_MANY_STREAMS where there is none."""
        if self.count >= self.most:
            raise Exhausted(
                f"{self.most} event streams are open already", reason="TOO_MANY_STREAMS", retry_after_s=5.0
            )
        self.count += 1
        pulse, watches = self._pulses.setdefault(agent_id, (Pulse(), set()))
        watch = Watch(self, agent_id, pulse)
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
        watches.remove(watch)
        if not watches:
            del self._pulses[watch.agent_id]


class Watch:
    """One stream's place."""

    def __init__(self, watching: Watching, agent_id: AgentId, pulse: Pulse) -> None:
        self.agent_id = agent_id
        self._watching = watching
        self._pulse = pulse

    def next_beat(self) -> Beat:
        """The next time that something happens; to be taken before looking whether something has."""
        return self._pulse.next_beat()

    def end(self) -> None:
        """Give the place back. Idempotent."""
        self._watching.leave(self)
