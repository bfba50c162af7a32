"""The wrapped data keys of agents, as documents on the log servers. Any node can read them and open the agent."""

from __future__ import annotations

from collections.abc import Callable

from ebbtide.cluster.membership import Documents
from ebbtide.cluster.names import Names


def read_keys(documents: Documents, names: Names, directory: str) -> bytes | None:
    """Return the wrapped data keys of an agent; None without any. May raise NoAnswer."""
    # During a replacement one of the two has a document, and a read may fall between two steps.
    for subject in (names.data_keys(directory), names.next_data_keys(directory), names.data_keys(directory)):
        found = documents.read(subject)
        if found is not None:
            return found[0]
    return None


def replace_keys(
    documents: Documents,
    names: Names,
    directory: str,
    content: bytes | None,
    confirm: Callable[[], None] = lambda: None,
) -> None:
    """Replace the wrapped data keys of an agent; None erases them. Repeatable. May raise NoAnswer and Refused.

    A document is overwritten before the next one takes its place, because a key that is left out must be unreadable.
    Meanwhile the next one has a subject of its own, so an interruption at any step leaves one of them. `confirm` is
    called after the documents were read, and may raise: a later change by another node makes the writes fail.
    """
    subject, spare = names.data_keys(directory), names.next_data_keys(directory)
    found, waiting = documents.read(subject), documents.read(spare)
    confirm()
    if content is None:
        if found is not None:
            documents.erase(subject, found[1])
    elif found is None or found[0] != content:
        if waiting is not None and waiting[0] != content:
            # An earlier replacement was interrupted: complete it first.
            if found is None:
                found = waiting[0], documents.write(subject, waiting[0], 0)
            documents.erase(spare, waiting[1])
            waiting = None
        if found is not None:
            if waiting is None:
                waiting = content, documents.write(spare, content, 0)
            documents.erase(subject, found[1])
        documents.write(subject, content, 0)
    if waiting is not None:
        documents.erase(spare, waiting[1])
