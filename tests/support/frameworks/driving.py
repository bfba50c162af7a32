"""Data and helpers of the programs that drive the adapters with the real frameworks, in environments of their own.

EBBTIDE_URL is a daemon's, EBBTIDE_API_KEY a key of everything or empty, and NARROW_KEY one of another agent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ebbtide_client import Client, ConnectionFailed

FACTS = (
    ("I moved to Lisbon in May.", "Where did I move to?", "Lisbon"),
    ("我五月搬到了青岛。", "我搬到了哪里？", "青岛"),
)
"""A statement of a user, a question in another session, and the word of its answer."""

KEYS_ON = bool(os.environ.get("EBBTIDE_API_KEY"))
ROUNDS = 30


class Unsteady(Client):
    """A client whose `remember` loses the connection: before the request is sent, or after it."""

    lost_before = lost_after = False

    def remember(self, *args: Any, **kwargs: Any) -> Any:
        """Store a batch, and lose the response."""
        if self.lost_before:
            raise ConnectionFailed("no daemon")
        result = super().remember(*args, **kwargs)
        if self.lost_after:
            raise ConnectionFailed("no response")
        return result


client = Unsteady()


def narrow() -> Client:
    """Return a client with a key that is valid for another agent only."""
    return Client(api_key=os.environ["NARROW_KEY"])


def stored(agent_id: str) -> list[str]:
    """Return the texts of the messages of an agent, once they are memories."""
    client.flush(agent_id, vectors=True)
    return [message.content for message in client.every_message(agent_id)]


@contextmanager
def refused(kind: type[BaseException]) -> Iterator[list[BaseException]]:
    """Require an exception; it is in the list afterwards."""
    caught: list[BaseException] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
        return
    raise AssertionError(f"no {kind.__name__}")


def ratio(name: str, adapted: Callable[[], object], bare: Callable[[], object]) -> None:
    """Print how long calls of an adapter take, relative to those of the client."""
    taken = []
    for call in (bare, adapted, bare, adapted):
        begin = time.perf_counter()
        for _ in range(ROUNDS):
            call()
        taken.append(time.perf_counter() - begin)
    print(f"{name}: {min(taken[1], taken[3]) / min(taken[0], taken[2]):.2f} times the bare call")
