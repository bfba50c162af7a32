"""Texts as batches of the daemon, each with its key, and a recall that may fail: shared by adapters of frameworks.

The client blocks and is called on a thread. Frameworks that are called synchronously run each call in an event loop of
its own, and the connections of an async client belong to one loop. Imports no framework.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from ebbtide_client.client import Client
from ebbtide_client.context_window import PASSING
from ebbtide_client.errors import Conflict, EbbtideError
from ebbtide_client.models import FoundMemory
from ebbtide_client.window import MOST_CHARS, MOST_MESSAGE_CHARS, MOST_MESSAGES, MOST_QUERY_CHARS

PASS_EVERY_TOKENS = 2_000
"""Parameter of an agent that is created here, so that frequent small batches do not make it forget faster."""

MAX_WAITING = 20
"""Most batches that wait for a daemon that cannot be reached."""

MAX_ID_CHARS = 200
"""Longest id of a conversation."""

MAX_KNOWN_AGENTS = 10_000
"""Most agents that a sender knows to exist."""

_log = logging.getLogger("ebbtide_client")
_SPECIAL = re.compile(r"[%:/\\\x00-\x1f\x7f]")
_LETTERS = str.maketrans("0123456789", "ghijklmnop")

Batch = dict[str, Any]
"""The arguments of `remember` but the agent; plain JSON."""


def agent_of_user(app_name: str, user_id: str) -> str:
    """Return the agent of a user of an app, as `app:user`.

    Different pairs have different agents: `%`, `:` and characters that no id may have are percent-encoded.
    """
    app, user = (_SPECIAL.sub(lambda found: quote(found[0], safe=""), one) for one in (app_name, user_id))
    return f"{app}:{user}"


def digest(*parts: object, size: int = 32) -> str:
    """Return a digest in letters, which no policy for personal data changes."""
    text = json.dumps(parts, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(errors="surrogatepass")).hexdigest()[:size].translate(_LETTERS)


def messages_of(role: str, text: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """Yield a text as messages that the daemon takes: none if it is blank, several if it is too long."""
    for start in range(0, len(text) if text.strip() else 0, MOST_MESSAGE_CHARS):
        yield {"role": role, "content": text[start : start + MOST_MESSAGE_CHARS], **fields}


def batches_of(
    messages: Iterable[dict[str, Any]], key: str, conversation_id: str | None, **fields: Any
) -> list[Batch]:
    """Return batches of messages, each with the key and its number."""
    parts: list[list[dict[str, Any]]] = []
    chars = 0
    for message in messages:
        chars += len(message["content"])
        if not parts or len(parts[-1]) == MOST_MESSAGES or chars > MOST_CHARS:
            parts.append([])
            chars = len(message["content"])
        parts[-1].append(message)
    # An id that the daemon does not take is replaced by its digest.
    if len(conversation_id or "") > MAX_ID_CHARS:
        conversation_id = digest(conversation_id)
    fields["conversation_id"] = conversation_id
    return [
        {"messages": part, "idempotency_key": f"{key}.{number}", **fields}
        for number, part in enumerate(parts)
    ]


class Sender:
    """Agents of a daemon, as adapters use them. Many threads may share it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._known: set[str] = set()

    def ensure_agent(self, agent_id: str) -> None:
        """Create the agent if it does not exist."""
        if agent_id in self._known:
            return
        with suppress(Conflict):  # It exists with other parameters.
            self.client.open_agent(agent_id, {"pass_every_tokens": PASS_EVERY_TOKENS})
        if len(self._known) >= MAX_KNOWN_AGENTS:
            self._known.clear()
        self._known.add(agent_id)

    def send(self, agent_id: str, batches: Sequence[Batch]) -> None:
        """Store batches. Raise the first error."""
        if batches:
            self.ensure_agent(agent_id)
        for batch in batches:
            self.client.remember(agent_id, **batch)

    def send_waiting(self, agent_id: str, waiting: MutableSequence[Batch]) -> None:
        """Store the batches of a list, oldest first, and remove each. Those of a temporary failure stay in the list."""
        for batch in list(waiting):
            try:
                self.send(agent_id, [batch])
            except PASSING as error:
                _log.warning("remember failed, will be tried again: %s", error)
                if len(waiting) > MAX_WAITING:
                    _log.error("%d batches were dropped", len(waiting) - MAX_WAITING)
                    del waiting[:-MAX_WAITING]
                return
            except EbbtideError:
                _discard(waiting, batch)
                raise
            _discard(waiting, batch)

    def recall(self, agent_id: str, query: str, **options: Any) -> str:
        """Return what the agent remembers about a query; nothing after a temporary failure."""
        if not query.strip():
            return ""
        try:
            return self.client.recall(agent_id, query=query[-MOST_QUERY_CHARS:], **options).text
        except PASSING as error:
            _log.warning("recall failed: %s", error)
            return ""

    def search(self, agent_id: str, query: str, max_results: int) -> list[FoundMemory]:
        """Return the memories that answer a query, best first, each with its own words.

        Words without a memory have the id of their message.
        """
        asked = query[-MOST_QUERY_CHARS:]
        found = self.client.search(agent_id, asked, max_results=max_results, own_words=True)
        return list(found.memories)


def _discard(waiting: MutableSequence[Batch], batch: Batch) -> None:
    with suppress(ValueError):  # Another thread removed it.
        waiting.remove(batch)
