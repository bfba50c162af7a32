"""Encryption of one agent's store: AES-256-GCM for values, HMAC-SHA256 for keys made from text.

Each agent has a data key. Three values are derived from it: a key that encrypts, a key for the HMACs, and a fingerprint
that identifies the data key without revealing it. The table and the key of a value are its associated data, so a value
cannot be moved to another place. The master key of the daemon encrypts ("wraps") the data keys; `keys.py` stores them.

Not detected: a value that is replaced by an older value of the same place.

Only this module imports `cryptography`. Other modules import this one on first use, since a daemon without encryption
should not load a library of 9 MB.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ebbtide.errors import Corrupted, Precondition

if TYPE_CHECKING:
    from ebbtide.store.layout import Table

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
HEAD_BYTES = 1 + NONCE_BYTES
"""The number of the data key, then the nonce; the encrypted value and its tag follow."""

OVERHEAD_BYTES = HEAD_BYTES + TAG_BYTES

ENTRY = b"\0entry of the journal"
"""The associated data of an entry of the journal. No table has a name that is empty."""

MAX_KEY_ID = 255
"""The number of a data key is one byte; after the last it starts again at 1."""


class Seal:
    """Encrypts and decrypts what one agent stores."""

    def __init__(self, key_id: int, data_key: bytes) -> None:
        assert 0 < key_id <= MAX_KEY_ID
        self.key_id = key_id
        self.fingerprint = _derived(data_key, b"fingerprint")[:8].hex()
        self._cipher = AESGCM(_derived(data_key, b"values"))
        self._text_keys = _derived(data_key, b"keys made from text")
        self._head = bytes([key_id])

    def key(self, table: Table[Any], key: bytes) -> bytes:
        """Return the stored form of a key: its HMAC in a table keyed by text, else the key itself."""
        kind, size = table.text_kind, table.name_bytes
        if not kind:
            return key
        if not size:
            return self._hmac(kind + key)
        # One HMAC for each name of a path, so that the keys below a path begin with its own.
        names = (key[begin : begin + size] for begin in range(0, len(key), size))
        return b"".join(self._hmac(kind + name)[:size] for name in names)

    def _hmac(self, text: bytes) -> bytes:
        return hmac.digest(self._text_keys, text, "sha256")

    def seal(self, table: Table[Any], key: bytes, value: bytes) -> bytes:
        """Encrypt a value for the stored key `key`."""
        return self._encrypt(os.urandom(NONCE_BYTES), value, _of_table(table, key))

    def open(self, table: Table[Any], key: bytes, value: bytes) -> bytes:
        """Decrypt a value. Raise STORE_CORRUPTED unless it was encrypted for this table and key."""
        return self._decrypt(value, _of_table(table, key), f"the table {table.name.decode()}")

    def split(self, table: Table[Any], key: bytes, value: bytes) -> bytes:
        """Return the nonce of an encrypted value, and the decrypted value. Raises as `open`."""
        return value[1:HEAD_BYTES] + self.open(table, key, value)

    def join(self, table: Table[Any], key: bytes, parts: bytes) -> bytes:
        """Return the encrypted value that `split` has split: the same value at the same place has the same bytes."""
        return self._encrypt(parts[:NONCE_BYTES], parts[NONCE_BYTES:], _of_table(table, key))

    def seal_entry(self, entry: bytes) -> bytes:
        """Encrypt an entry of the agent's journal."""
        return self._encrypt(os.urandom(NONCE_BYTES), entry, ENTRY)

    def open_entry(self, value: bytes) -> bytes:
        """Decrypt an entry of the journal. Raise STORE_CORRUPTED for anything else."""
        return self._decrypt(value, ENTRY, "the journal")

    def _encrypt(self, nonce: bytes, value: bytes, associated: bytes) -> bytes:
        return self._head + nonce + self._cipher.encrypt(nonce, value, associated)

    def _decrypt(self, value: bytes, associated: bytes, where: str) -> bytes:
        if value[:1] == self._head and len(value) >= OVERHEAD_BYTES:
            try:
                return self._cipher.decrypt(value[1:HEAD_BYTES], value[HEAD_BYTES:], associated)
            except InvalidTag:
                pass
        raise Corrupted(f"An entry of {where} cannot be decrypted.", reason="STORE_CORRUPTED")


class MasterKey:
    """The daemon's key, which encrypts the data keys of its agents."""

    def __init__(self, key: bytes) -> None:
        assert len(key) == KEY_BYTES
        self.fingerprint = _derived(key, b"fingerprint of a master key")[:8].hex()
        self._cipher = AESGCM(_derived(key, b"wrapping"))

    def wrap(self, directory: str, key_id: int, data_key: bytes) -> bytes:
        """Encrypt a data key. The result is bound to the agent's directory."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data_key, _place(directory, key_id))

    def unwrap(self, directory: str, key_id: int, wrapped: bytes) -> bytes:
        """Decrypt a data key. Raise MASTER_KEY_REFUSED for another master key or a changed file."""
        try:
            return self._cipher.decrypt(
                wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], _place(directory, key_id)
            )
        except (InvalidTag, ValueError) as error:
            raise Precondition(
                "The data key of this agent cannot be decrypted: its file was changed, or belongs to another "
                "agent.",
                reason="MASTER_KEY_REFUSED",
            ) from error


def _of_table(table: Table[Any], key: bytes) -> bytes:
    """Return the associated data of a value."""
    return table.name + b"\0" + key


def new_data_key() -> bytes:
    """Return a new random data key."""
    return os.urandom(KEY_BYTES)


def parse_master_key(text: str) -> MasterKey:
    """Parse a master key: 64 hexadecimal digits, or the base64 of 32 bytes. Raise MASTER_KEY_REFUSED otherwise."""
    text = text.strip()
    for decoded in (bytes.fromhex, _from_base64):
        try:
            key = decoded(text)
        except (ValueError, binascii.Error):
            continue
        if len(key) == KEY_BYTES:
            return MasterKey(key)
    raise Precondition(
        "The master key must be 32 bytes, written as 64 hexadecimal digits or as base64.",
        reason="MASTER_KEY_REFUSED",
    )


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)


def _place(directory: str, key_id: int) -> bytes:
    return f"data key {key_id} of {directory}".encode()


def _derived(key: bytes, purpose: bytes) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=b"ebbtide " + purpose).derive(key)
