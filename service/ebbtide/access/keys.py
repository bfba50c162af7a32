"""API keys: their text form, their hashes, and their stored record.

A key is `ebb_<id>_<secret>`: an id of 12 characters, and 256 random bits in hexadecimal. Only the SHA-256 of the secret
is stored. A slow hash is not needed, since 256 random bits cannot be guessed. Secrets are compared in constant time,
and an unknown id takes as long as a known one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence

import msgspec

from ebbtide.access.grants import Reach

ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
ID_LENGTH = 12
SECRET_BYTES = 32

_FORM = re.compile(rf"ebb_([a-z0-9]{{{ID_LENGTH}}})_([0-9a-f]{{{2 * SECRET_BYTES}}})", re.ASCII)
_BEARER = re.compile(r"bearer ++(\S++) *+", re.ASCII | re.IGNORECASE)


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The stored record of a key. An older version refuses fields that it does not know: they may restrict."""

    id: str
    name: str
    secret_sha256: str
    scopes: tuple[str, ...]
    agents: tuple[str, ...] = ()
    agent_prefixes: tuple[str, ...] = ()
    all_agents: bool = False
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    requests_per_s: float | None = None
    """None: the daemon's setting applies."""
    max_agents: int | None = None
    """None: the daemon's setting applies."""

    def __repr__(self) -> str:
        return f"Key({self.id!r})"

    @property
    def reach(self) -> Reach:
        """The agents that the key is bound to."""
        return Reach(frozenset(self.agents), self.agent_prefixes, self.all_agents)

    def counts_at(self, now_ms: int) -> bool:
        """Return whether the key is neither revoked nor expired."""
        return self.revoked_at_ms is None and (self.expires_at_ms is None or now_ms < self.expires_at_ms)

    def has_secret(self, secret: str) -> bool:
        """Return whether this is the secret of the key, in constant time."""
        return hmac.compare_digest(hash_of(secret), self.secret_sha256)


NOBODY = Key(id="", name="", secret_sha256="0" * 64, scopes=(), created_at_ms=0, revoked_at_ms=0)
"""Compared with if no key has the id."""


def new_id() -> str:
    """Return a new id for a key."""
    return "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


def new_secret() -> str:
    """Return a new secret for a key."""
    return secrets.token_hex(SECRET_BYTES)


def hash_of(secret: str) -> str:
    """Return the stored hash of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def written(key_id: str, secret: str) -> str:
    """Return the text of a key, for its owner."""
    return f"ebb_{key_id}_{secret}"


def parsed(text: str) -> tuple[str, str] | None:
    """Return the id and the secret in a text; None if it is not a key."""
    found = _FORM.fullmatch(text)
    return None if found is None else (found[1], found[2])


def presented(authorizations: Sequence[str]) -> str | None:
    """Return the credentials after `Bearer` in the `Authorization` values; None without any.

    More than one value counts as none: no caller may rely on which of them is used.
    """
    if not authorizations:
        return None
    if len(authorizations) > 1:
        return ""
    found = _BEARER.fullmatch(authorizations[0])
    return None if found is None else found[1]
