"""The agent's id in a message, found without decoding it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.rpc.forwarding import MAX_FIELDS, agent_id_in
from ebbtide.v1 import remember_pb2


@given(agent_id=st.text(max_size=20), texts=st.lists(st.text(max_size=50), max_size=5))
def test_the_id_is_that_of_the_decoded_message(agent_id: str, texts: list[str]) -> None:
    """The id is the one that protobuf decodes, for any other fields of the message."""
    request = remember_pb2.RememberRequest(agent_id=agent_id, conversation_id="c")
    for text in texts:
        request.messages.add(content=text)
    assert agent_id_in(request.SerializeToString()) == agent_id


def test_the_last_of_several_ids_counts() -> None:
    """A message may repeat a field; protobuf takes the last one."""
    one, two = (remember_pb2.RememberRequest(agent_id=name).SerializeToString() for name in ("ann", "bob"))
    assert agent_id_in(one + two) == "bob"
    assert remember_pb2.RememberRequest.FromString(one + two).agent_id == "bob"


@given(body=st.binary(max_size=200))
def test_a_damaged_message_ends(body: bytes) -> None:
    """Any bytes give an id, none, or a ValueError."""
    try:
        assert agent_id_in(body) is not None
    except ValueError:
        return


def test_a_message_of_very_many_fields_is_left_to_the_decoder() -> None:
    """The search is bounded."""
    assert agent_id_in(b"\x10\x01" * (MAX_FIELDS + 1)) is None


def test_an_unfinished_number_is_no_message() -> None:
    """A tag without an end is an error."""
    with pytest.raises(ValueError, match="varint"):
        agent_id_in(b"\xff")
