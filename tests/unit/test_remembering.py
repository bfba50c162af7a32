"""The stored form of a remember command, where it must not change between versions."""

from __future__ import annotations

from ebbtide.verbs.remember import Message, RememberRequest, body_hash


def test_a_body_without_metadata_of_messages_hashes_as_it_always_did() -> None:
    """A request repeated after an upgrade is recognised by its idempotency key."""
    said = Message(role="user", content="I moved to Lisbon in May.", speaker="Ann", id="m1", timestamp=5)
    command = RememberRequest(agent_id="ann", messages=[said], conversation_id="c1", metadata={"a": [1]})
    assert body_hash(command).hex() == "01f0db6a92fa8f81ba38eac2aaa50a35342332d75e99e4b02570f37bcc3d6413"
    noted = said.model_copy(update={"metadata": {"topic": "travel"}})
    assert body_hash(command.model_copy(update={"messages": [noted]})) != body_hash(command)
