"""API keys that all nodes of a cluster share: each node merges its file `keys.json` with one document.

Keys are only added and revoked, so the merge of two versions is their union, in which a revoked key stays revoked.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ebbtide.access.key_file import KeyFile
from ebbtide.access.keys import Key
from ebbtide.cluster.membership import Documents

_DECODER = msgspec.json.Decoder(tuple[Key, ...])


def merged(one: Iterable[Key], other: Iterable[Key]) -> list[Key]:
    """Return the keys of two versions, in order of their creation."""
    found: dict[str, Key] = {}
    for key in (*one, *other):
        known = found.get(key.id)
        if known is None or known.revoked_at_ms is None:
            found[key.id] = key
    return sorted(found.values(), key=lambda key: (key.created_at_ms, key.id))


def share_keys(file: KeyFile, documents: Documents, subject: str) -> None:
    """Merge the keys of this node with those of the cluster, in both places.

    May raise NoAnswer, Refused when another node has written the document, and KEY_FILE_UNUSABLE.
    """
    found = documents.read(subject)
    shared = () if found is None else _DECODER.decode(found[0])
    own = file.read()
    keys = merged(own, shared)
    if keys != merged(own, ()):
        file.change(lambda present: (merged(present, shared), None))
    if keys != list(shared):
        documents.write(subject, msgspec.json.encode(keys), 0 if found is None else found[1])
