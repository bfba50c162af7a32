"""The keyring: the keys of a running daemon in memory, following their file.

Finding a key takes one dictionary lookup and one SHA-256. The file is checked twice a second, so a new or revoked key
takes effect about a second later, without a restart. An unusable file is an error at start. Later the previous keys
stay in use, and the log reports it once per version of the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ebbtide.access.grants import Grant, granting
from ebbtide.access.key_file import KeyFile, Stamp
from ebbtide.access.keys import NOBODY, Key, parsed
from ebbtide.errors import EbbtideError, Precondition, Unauthenticated
from ebbtide.telemetry import get_log

LOOK_EVERY_S = 0.5
"""How often the file is checked for a change."""

NOTHING = (NOBODY, granting((), NOBODY.reach))

OnPool = Callable[[Callable[[], Any]], Awaitable[Any]]


class Keyring:
    """The keys by id."""

    def __init__(self, file: KeyFile) -> None:
        self._file = file
        self._keys: dict[str, tuple[Key, Grant]] = {}
        self._stamp: Stamp | None = None
        self.looks = 0
        """How many times the file was checked."""
        self._log = get_log("access")

    def __len__(self) -> int:
        return len(self._keys)

    def load(self) -> None:
        """Read the file. If that fails, raise KEY_FILE_UNUSABLE and keep the previous keys."""
        # The stamp first: a change during the read causes another read.
        stamp = self._file.stamp()
        self._keys = {key.id: (key, granting(key.scopes, key.reach)) for key in self._file.read()}
        self._stamp = stamp
        if self._file.is_open_to_others:
            self._log.warning("others than its owner may read or write the file of keys", file="keys.json")

    async def follow(self, on_pool: OnPool) -> None:
        """Load the file whenever it changes, forever."""
        logged: object = None
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                if await on_pool(self._load_changed):
                    self._log.info("keys loaded", keys=len(self._keys))
                logged = None
            except Exception as error:
                # Any error: if this task ended, a revoked key would stay valid forever. Each fault is logged
                # once, since a file that stays broken must not fill the log.
                if str(error) != logged:
                    logged = str(error)
                    why = error.message if isinstance(error, EbbtideError) else type(error).__name__
                    self._log.error("keys stay as they were", why=why)
            self.looks += 1

    def _load_changed(self) -> bool:
        stamp = self._file.stamp()
        if stamp == self._stamp:
            return False
        if stamp is None:
            # A missing file is an accident: it must not lock out every caller. Keys are revoked one by one.
            raise Precondition(
                f"the file of API keys {self._file.path} is missing", reason="KEY_FILE_UNUSABLE"
            )
        self.load()
        return True

    def find(self, text: str, now_ms: int) -> tuple[Key, Grant]:
        """Return the key in a text, and what it grants.

        INVALID_KEY alike for what is no key, and one that is unknown, revoked, expired or has another secret.
        """
        key_id, secret = parsed(text) or ("", "")
        key, grant = self._keys.get(key_id, NOTHING)
        if not (key.has_secret(secret) and key.counts_at(now_ms)):
            raise Unauthenticated("Invalid API key (unknown, revoked or expired).", reason="INVALID_KEY")
        return key, grant

    def grant_now(self, key_id: str, now_ms: int) -> Grant:
        """Return what a key grants now; INVALID_KEY once it is revoked or expired."""
        key, grant = self._keys.get(key_id, NOTHING)
        if not key.counts_at(now_ms):
            raise Unauthenticated("Invalid API key (unknown, revoked or expired).", reason="INVALID_KEY")
        return grant
