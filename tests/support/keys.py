"""API keys for tests: put into a data directory as the command line does it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebbtide.access.key_file import KeyFile
from ebbtide.access.keys import Key, hash_of, new_id, new_secret, written

KEYS_ON: dict[str, Any] = {"authentication": "keys", "failed_tries_per_s": 0}
"""The section `access` of a daemon that asks for keys; tests try many that do not count."""


def new_key(data_dir: Path, *scopes: str, agents: Sequence[str] = (), **fields: Any) -> str:
    """Make a key, bound to agents or, where none is named, to what `fields` say, else to none; as its owner gets it."""
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
    """The id of a written key."""
    return key.split("_")[1]


def bearer(key: str | None) -> dict[str, str]:
    """The header, or the metadata, that shows a key."""
    return {} if key is None else {"authorization": f"Bearer {key}"}
