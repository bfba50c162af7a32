"""`meta.json`: the description of an agent that is readable without opening its store."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ebbtide.records import AgentCounts, Identity
from ebbtide.store import layout
from ebbtide.store.codec import make_known
from ebbtide.store.durable import replace_file
from ebbtide.store.translation import translated


class AgentMeta(msgspec.Struct, frozen=True):
    """The content of `meta.json`. `counts` is as of the last close; the key is the one that encrypts the store."""

    agent_id: str
    format_version: int
    lmdb_engine: str
    created_at_ms: int
    counts: AgentCounts = AgentCounts()
    encrypted: bool = False
    key_fingerprint: str = ""


make_known(AgentMeta)


def read_meta(path: Path) -> AgentMeta | None:
    """Return the description of the agent in a directory, or None if it is missing or cannot be read."""
    try:
        return msgspec.json.decode((path / "meta.json").read_bytes(), type=AgentMeta)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None
    except OSError as error:
        raise translated(error, path) from error


def write_meta(path: Path, identity: Identity, counts: AgentCounts, sealed_with: str) -> None:
    """Replace the `meta.json` of the agent in a directory, atomically and durably."""
    meta = AgentMeta(
        identity.agent_id,
        identity.format_version,
        layout.LMDB_ENGINE,
        identity.created_at_ms,
        counts,
        bool(sealed_with),
        sealed_with,
    )
    replace_file(path / "meta.json", msgspec.json.format(msgspec.json.encode(meta), indent=2))
