"""Create API keys in a data directory, as the command line does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebbtide.access.key_file import KeyFile
from ebbtide.access.keys import Key, hash_of, new_id, new_secret, written

KEYS_ON: dict[str, Any] = {"authentication": "keys", "failed_tries_per_s": 0}
"""Settings `access` of a daemon that requires keys and does not limit failed tries."""


def new_key(data_dir: Path, *scopes: str, agents: Sequence[str] = (), **fields: Any) -> str:
    """Create a key for these agents, or with the reach in `fields`. Return it as its owner gets it."""
    bound = {"all_agents": True} if not (agents or fields.get("agent_prefixes")) else {}
    secret = new_secret()
    key = Key(
        id=new_id(),
        secret_sha256=hash_of(secret),
        scopes=scopes,
        agents=tuple(agents),
        **{"name": "", "created_at_ms": time.time_ns() // 1_000_000, **bound, **fields},
    )
    KeyFile(data_dir).change(lambda known: ([*known, key], None))
    return written(key.id, secret)


def id_of(key: str) -> str:
    """Return the id of a key."""
    return key.split("_")[1]


def bearer(key: str | None) -> dict[str, str]:
    """Return the HTTP header or gRPC metadata with a key."""
    return {} if key is None else {"authorization": f"Bearer {key}"}
