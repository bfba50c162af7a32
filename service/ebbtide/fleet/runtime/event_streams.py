"""Event streams: a bounded number of subscriptions, woken by commits.

A waiting stream keeps no agent open and uses no job or transaction. When it is woken it reads a page through a job, as
any request does, and waits again. A slow reader therefore blocks nothing, and an agent with streams is closed when it
is idle.
"""

from __future__ import annotations

from collections import Counter

from ebbtide.errors import Exhausted
from ebbtide.fleet.runtime.notifier import Notification, Notifier
from ebbtide.ids import AgentId

MAX_EVENT_STREAMS = 100
"""Most streams at a time unless the settings say otherwise."""

MIN_KEYS_TO_EXHAUST = 2
"""It takes at least this many keys to use all places, so that one key cannot lock the others out."""


def max_places_per_key(most: int) -> int:
    """Return how many of `most` places one key may use."""
    return max(1, most // MIN_KEYS_TO_EXHAUST)


def _too_many(message: str, limit: str, most: int) -> Exhausted:
    metadata = {"limit": limit, "most": str(most)}
    return Exhausted(message, reason="TOO_MANY_STREAMS", metadata=metadata, retry_after_s=5.0)


class EventStreams:
    """All event streams of one daemon. Other threads may call only `is_watched`."""

    def __init__(self, most: int = MAX_EVENT_STREAMS) -> None:
        self.most = most
        self.count = 0
        self._count_by_key: Counter[str] = Counter()
        self._notifiers: dict[AgentId, tuple[Notifier, set[EventSubscription]]] = {}

    def admit(self, agent_id: AgentId, key_id: str = "") -> EventSubscription:
        """Admit one more stream. Raise TOO_MANY_STREAMS if no place is free, or the key has used its share.

        Without authentication `key_id` is empty, and there are no shares.
        """
        share = max_places_per_key(self.most)
        if key_id and self._count_by_key[key_id] >= share:
            raise _too_many(f"the key has {share} open event streams, its share of {self.most}", "key", share)
        if self.count >= self.most:
            raise _too_many(f"{self.most} event streams are open, the limit", "daemon", self.most)
        self.count += 1
        self._count_by_key[key_id] += 1
        notifier, subscriptions = self._notifiers.setdefault(agent_id, (Notifier(), set()))
        subscription = EventSubscription(self, agent_id, notifier, key_id)
        subscriptions.add(subscription)
        return subscription

    def is_watched(self, agent_id: AgentId) -> bool:
        """Whether any stream follows this agent."""
        return agent_id in self._notifiers

    def notify(self, agent_id: AgentId) -> None:
        """Wake the streams of an agent."""
        if agent_id in self._notifiers:
            self._notifiers[agent_id][0].notify()

    def notify_all(self) -> None:
        """Wake every stream, for example because the daemon stops."""
        for notifier, _ in self._notifiers.values():
            notifier.notify()

    def leave(self, subscription: EventSubscription) -> None:
        """Release the place of a stream that ended. Idempotent."""
        _, subscriptions = self._notifiers.get(subscription.agent_id, (None, set()))
        if subscription not in subscriptions:
            return
        self.count -= 1
        self._count_by_key[subscription.key_id] -= 1
        if not self._count_by_key[subscription.key_id]:
            del self._count_by_key[subscription.key_id]
        subscriptions.remove(subscription)
        if not subscriptions:
            del self._notifiers[subscription.agent_id]


class EventSubscription:
    """The place of one stream."""

    def __init__(self, streams: EventStreams, agent_id: AgentId, notifier: Notifier, key_id: str) -> None:
        self.agent_id = agent_id
        self.key_id = key_id
        self._streams = streams
        self._notifier = notifier

    def next_notification(self) -> Notification:
        """Return the next notification. Take it before you read the events, so that none is missed."""
        return self._notifier.next_notification()

    def end(self) -> None:
        """Release the place. Idempotent."""
        self._streams.leave(self)
