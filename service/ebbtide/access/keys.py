"""API keys: their form, their hashes, and what is kept of one.

A key is `ebb_<id>_<secret>`: an id of 12 characters to find it by, and 256 random bits in hexadecimal. Kept is the
SHA-256 of the secret, never the secret. A slow hash would slow nobody but us: 256 random bits cannot be guessed.
Secrets are compared in constant time, and an id that nobody has takes as long as one that somebody has.
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
    """What is kept of a key. Fields that an older Ebbtide does not know it refuses: they may restrict."""

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
    """None: as the daemon's settings say."""
    max_agents: int | None = None
    """None: as the daemon's settings say."""

    def __repr__(self) -> str:
        return f"Key({self.id!r})"

    @property
    def reach(self) -> Reach:
        """The agents it is bound to."""
        return Reach(frozenset(self.agents), self.agent_prefixes, self.all_agents)

    def counts_at(self, now_ms: int) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at_ms is None and (self.expires_at_ms is None or now_ms < self.expires_at_ms)

    def has_secret(self, secret: str) -> bool:
        """Whether this is its secret; takes the same time either way."""
        return hmac.compare_digest(hash_of(secret), self.secret_sha256)


NOBODY = Key(id="", name="", secret_sha256="0" * 64, scopes=(), created_at_ms=0, revoked_at_ms=0)
"""Compared with when there is no key of an id."""


def new_id() -> str:
    """An id for a key."""
    return "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


def new_secret() -> str:
    """A secret for a key."""
    return secrets.token_hex(SECRET_BYTES)


def hash_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def written(key_id: str, secret: str) -> str:
    """A key as its owner gets it."""
    return f"ebb_{key_id}_{secret}"


def parsed(text: str) -> tuple[str, str] | None:
    """Id and secret of a written key; None for what is none."""
    found = _FORM.fullmatch(text)
    return None if found is None else (found[1], found[2])


def presented(authorizations: Sequence[str]) -> str | None:
    """What stands behind `Bearer` in a request's `Authorization` values; None where no key is shown.

    More than one value is one key too many: nobody may count on which of them is looked at.
    """
    if not authorizations:
        return None
    if len(authorizations) > 1:
        return ""
    found = _BEARER.fullmatch(authorizations[0])
    return None if found is None else found[1]
