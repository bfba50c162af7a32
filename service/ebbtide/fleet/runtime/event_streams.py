"""Who watches: streams of events, a bounded number of them, woken by what is committed.

A stream holds no agent, no job and no transaction while it waits: it is woken, reads a page through a job like any
request, and waits again. So a slow reader holds nobody up, and an agent that is watched is closed like any other when
it is idle; nothing can happen to it before somebody opens it again, and then the stream is woken.
"""

from __future__ import annotations

from collections import Counter

from ebbtide.errors import Exhausted
from ebbtide.fleet.runtime.notifier import Notification, Notifier
from ebbtide.ids import AgentId

MAX_EVENT_STREAMS = 100
"""Streams at once unless the settings say otherwise."""

MIN_KEYS_TO_EXHAUST = 2
"""So many keys at least it takes to have all places: whoever has one key cannot keep everybody else out."""


def max_places_per_key(most: int) -> int:
    """Most places that one holder may have of so many."""
    return max(1, most // MIN_KEYS_TO_EXHAUST)


def _too_many(told: str, whose: str, most: int) -> Exhausted:
    metadata = {"limit": whose, "most": str(most)}
    return Exhausted(told, reason="TOO_MANY_STREAMS", metadata=metadata, retry_after_s=5.0)


class EventStreams:
    """Every stream of one daemon. Only `is_watched` may be asked on other threads than the event loop's."""

    def __init__(self, most: int = MAX_EVENT_STREAMS) -> None:
        self.most = most
        self.count = 0
        self._count_by_holder: Counter[str] = Counter()
        self._notifiers: dict[AgentId, tuple[Notifier, set[EventSubscription]]] = {}

    def admit(self, agent_id: AgentId, holder: str = "") -> EventSubscription:
        """A place for one more stream; TOO_MANY_STREAMS where there is none, or its holder has its share of them.

        Without a holder, where nobody knows who asks, there are no shares.
        """
        share = max_places_per_key(self.most)
        if holder and self._count_by_holder[holder] >= share:
            raise _too_many(f"the key has {share} event streams open already, of {self.most}", "key", share)
        if self.count >= self.most:
            raise _too_many(f"{self.most} event streams are open already", "daemon", self.most)
        self.count += 1
        self._count_by_holder[holder] += 1
        notifier, subscriptions = self._notifiers.setdefault(agent_id, (Notifier(), set()))
        subscription = EventSubscription(self, agent_id, notifier, holder)
        subscriptions.add(subscription)
        return subscription

    def is_watched(self, agent_id: AgentId) -> bool:
        """Whether anybody would be woken."""
        return agent_id in self._notifiers

    def notify(self, agent_id: AgentId) -> None:
        """Something has happened to this agent: wake its streams."""
        if agent_id in self._notifiers:
            self._notifiers[agent_id][0].notify()

    def notify_all(self) -> None:
        """Wake every stream, so that it sees that the daemon stops."""
        for notifier, _ in self._notifiers.values():
            notifier.notify()

    def leave(self, subscription: EventSubscription) -> None:
        """A stream has ended. Idempotent."""
        _, subscriptions = self._notifiers.get(subscription.agent_id, (None, set()))
        if subscription not in subscriptions:
            return
        self.count -= 1
        self._count_by_holder[subscription.holder] -= 1
        if not self._count_by_holder[subscription.holder]:
            del self._count_by_holder[subscription.holder]
        subscriptions.remove(subscription)
        if not subscriptions:
            del self._notifiers[subscription.agent_id]


class EventSubscription:
    """One stream's place."""

    def __init__(self, streams: EventStreams, agent_id: AgentId, notifier: Notifier, holder: str) -> None:
        self.agent_id = agent_id
        self.holder = holder
        self._streams = streams
        self._notifier = notifier

    def next_notification(self) -> Notification:
        """The next time that something happens; to be taken before looking whether something has."""
        return self._notifier.next_notification()

    def end(self) -> None:
        """Give the place back. Idempotent."""
        self._streams.leave(self)
