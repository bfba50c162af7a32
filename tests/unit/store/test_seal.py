"""Encryption hides values, and decrypts only what was encrypted for the same place."""

from __future__ import annotations

import base64
import secrets

import pytest

from ebbtide.errors import Corrupted, Precondition
from ebbtide.store import layout
from ebbtide.store.encryption.seal import OVERHEAD_BYTES, MasterKey, Seal, new_data_key, parse_master_key

KEY = layout.u64(7)
VALUE = "外婆住在团岛。She lives there.".encode()


@pytest.fixture
def seal() -> Seal:
    return Seal(1, new_data_key())


@pytest.mark.parametrize("value", [b"", b"x", VALUE, bytes(100_000)], ids=len)
def test_sealed_values_are_opened(seal: Seal, value: bytes) -> None:
    """A value is decrypted unchanged, has a fixed overhead, and encrypts differently each time."""
    sealed = seal.seal(layout.NODES, KEY, value)
    assert seal.open(layout.NODES, KEY, sealed) == value
    assert len(sealed) == len(value) + OVERHEAD_BYTES
    assert seal.seal(layout.NODES, KEY, value) != sealed


def test_every_changed_byte_is_noticed(seal: Seal) -> None:
    """A value with a flipped bit, or a truncated one, is Corrupted."""
    sealed = seal.seal(layout.NODES, KEY, VALUE)
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        with pytest.raises(Corrupted):
            seal.open(layout.NODES, KEY, bytes(changed))
        with pytest.raises(Corrupted):
            seal.open(layout.NODES, KEY, sealed[:place])


def test_a_value_is_of_use_in_its_place_only(seal: Seal) -> None:
    """A value under another key, in another table or of another agent is Corrupted."""
    sealed = seal.seal(layout.NODES, KEY, VALUE)
    for other, table, key in (
        (seal, layout.NODES, layout.u64(8)),
        (seal, layout.MESSAGES, KEY),
        (Seal(1, new_data_key()), layout.NODES, KEY),
    ):
        with pytest.raises(Corrupted):
            other.open(table, key, sealed)


def test_keys_made_from_text_are_hmacs(seal: Seal) -> None:
    """Keys made from text are HMACs; a chunk and its reference count have the same one."""
    key = layout.text_key("same")
    placed = {table: seal.key(table, key) for table in layout.TABLES}
    assert {table for table in layout.TABLES if placed[table] != key} == {
        table for table in layout.TABLES if table.text_kind
    }
    assert placed[layout.CHUNKS] == placed[layout.CHUNK_REFERENCES] != placed[layout.RECEIPTS]
    assert Seal(1, new_data_key()).key(layout.CHUNKS, key) != placed[layout.CHUNKS]


def test_a_data_key_is_unwrapped_for_its_agent_only() -> None:
    """A data key is bound to its master key, directory and number; otherwise it is MASTER_KEY_REFUSED."""
    master, data_key = MasterKey(secrets.token_bytes(32)), new_data_key()
    wrapped = master.wrap("ann", 1, data_key)
    assert master.unwrap("ann", 1, wrapped) == data_key
    assert data_key not in wrapped
    changed = wrapped[:-1] + bytes([wrapped[-1] ^ 1])
    for other, directory, key_id, given in (
        (MasterKey(secrets.token_bytes(32)), "ann", 1, wrapped),
        (master, "bea", 1, wrapped),
        (master, "ann", 2, wrapped),
        (master, "ann", 1, changed),
        (master, "ann", 1, b"short"),
    ):
        with pytest.raises(Precondition) as caught:
            other.unwrap(directory, key_id, given)
        assert caught.value.reason == "MASTER_KEY_REFUSED"


def test_a_master_key_is_read_however_it_is_written() -> None:
    """A master key is hexadecimal or base64; anything else is refused, and not quoted in the error."""
    key = bytes(range(220, 252))
    writings = [key.hex(), base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode()]
    for text in [*writings, f"  {key.hex().upper()}\n"]:
        assert parse_master_key(text).fingerprint == MasterKey(key).fingerprint
    for text in ("", "secret words", key[:31].hex(), base64.b64encode(key + b"!").decode()):
        with pytest.raises(Precondition) as caught:
            parse_master_key(text)
        assert caught.value.reason == "MASTER_KEY_REFUSED"
        assert not text or text not in caught.value.message


def test_fingerprints_identify_keys() -> None:
    """A fingerprint has 16 hexadecimal digits, which are not part of the key."""
    key = new_data_key()
    assert Seal(1, key).fingerprint == Seal(2, key).fingerprint != Seal(1, new_data_key()).fingerprint
    assert len(Seal(1, key).fingerprint) == 16
    assert Seal(1, key).fingerprint not in key.hex()
