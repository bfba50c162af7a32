"""Adapters of frameworks send batches within the limits of the daemon, to agents that no two users share."""

from __future__ import annotations

from itertools import product

import pytest

from ebbtide.ids import parse_agent_id
from ebbtide_client import Client, ConnectionFailed, Forbidden
from ebbtide_client.integrations.sending import Sender, agent_of_user, batches_of, digest, messages_of

PIECES = ("a", ":", "%", "%3A", "/", "\\", "a:", ":a", "a:b", "%253A", "林月", "\n")


def test_no_two_users_share_an_agent() -> None:
    """Different pairs of app and user have different agents, and each is a valid id."""
    pairs = list(product(PIECES, PIECES))
    agents = [agent_of_user(app, user) for app, user in pairs]
    assert len(set(agents)) == len(pairs)
    assert [parse_agent_id(agent) for agent in agents] == agents
    assert agent_of_user("shop", "林月") == "shop:林月"


def test_batches_are_within_the_limits_of_the_daemon() -> None:
    """A batch has at most 1000 messages of at most 100 000 characters; nothing is lost, and no key is used twice."""
    messages = [
        *messages_of("user", "x" * 1_650_000),
        *messages_of("user", " \n"),
        *[{"content": "y"}] * 1500,
    ]
    batches = batches_of(messages, "key", "c" * 201)
    assert [len(batch["messages"]) for batch in batches] == [15, 1000, 502]
    assert sum(len(one["content"]) for batch in batches for one in batch["messages"]) == 1_651_500
    assert max(len(one["content"]) for batch in batches for one in batch["messages"]) == 100_000
    assert len({batch["idempotency_key"] for batch in batches}) == 3
    assert {len(batch["conversation_id"]) for batch in batches} == {32}
    assert batches_of([], "key", None) == []


def test_a_digest_is_letters() -> None:
    """A policy for personal data finds no number in a digest."""
    assert all(digest(number).isalpha() for number in range(50))
    assert digest("a", "b") != digest("ab") != digest("a:b")


class Faulty(Client):
    """A client that fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error: Exception | None = error

    def open_agent(self, *_: object, **__: object) -> None:  # type: ignore[override]
        """Fail, or do nothing."""
        if self.error is not None:
            raise self.error

    remember = open_agent


def test_what_waits_is_bounded_and_a_refusal_does_not_block_it() -> None:
    """Batches wait while the daemon cannot be reached, at most 20; one that is refused is not sent again."""
    client = Faulty(ConnectionFailed("no daemon"))
    sender = Sender(client)
    waiting = [
        batch for number in range(25) for batch in batches_of(messages_of("user", "x"), str(number), None)
    ]
    sender.send_waiting("ann", waiting)
    assert [batch["idempotency_key"] for batch in waiting] == [f"{number}.0" for number in range(5, 25)]
    client.error = Forbidden("no")
    with pytest.raises(Forbidden):
        sender.send_waiting("ann", waiting)
    assert len(waiting) == 19
    client.error = None
    sender.send_waiting("ann", waiting)
    assert waiting == []
