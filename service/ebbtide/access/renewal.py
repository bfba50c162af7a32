"""Renewal: the certificates in force on both ports, following their files.

New connections get what was read last; those that stand go on with what they began with. The rule guarded here: what
cannot be used never takes the place of what works. Files are renewed one after the other, so a fault counts only when
they have stood still from one look to the next; then the log tells it once, and `fault` until it is mended.

Deliberately not here: what makes certificates usable (`tls.py`), and how gRPC is told of new ones (`rpc/server.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from ebbtide.access.tls import Certificates, read_certificates
from ebbtide.errors import EbbtideError
from ebbtide.settings import AccessSettings
from ebbtide.telemetry import get_log

LOOK_EVERY_S = 1.0
"""How soon renewed files are noticed; ones that cannot be used, one look later."""

OnPool = Callable[[Callable[[], Any]], Awaitable[Any]]

Stamp = tuple[tuple[int, int, int] | None, ...]
"""What tells one version of the files from another: of each, its inode, its size and when it was written."""


class Renewal:
    """The certificates that the settings name. TLS_UNUSABLE when they cannot be used at a start."""

    def __init__(self, settings: AccessSettings) -> None:
        self._settings = settings
        # The stamp first: what is written meanwhile is read once more, rather than never.
        self._judged = self._seen = self._stamp()
        found = read_certificates(settings)
        assert found is not None, "without TLS there is nothing to renew"
        self.current: Certificates = found
        """What new connections get. Replaced whole, on a thread of the pool."""
        self.fault = ""
        """Why the files as they are now are not in use; empty when they are."""
        self.looks = 0
        """How often the files were looked at."""
        self._log = get_log("access")

    async def follow(self, on_pool: OnPool) -> None:
        """Take the files whenever they change; for ever."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await on_pool(self.look)
            except Exception as error:
                # Whatever it is: were this to end, the certificates would run out one day.
                self._log.error("looking at certificates failed", why=type(error).__name__)
            self.looks += 1

    def look(self) -> None:
        """Take the files if they changed and can be used. Blocks."""
        stamp = self._stamp()
        if stamp == self._judged:
            return
        stands_still, self._seen = stamp == self._seen, stamp
        try:
            found = read_certificates(self._settings)
        except EbbtideError as error:
            if stands_still:
                self._judged, self.fault = stamp, error.message
                self._log.error("certificates stay as they were", why=error.message)
            return
        if found is None or self._stamp() != stamp:
            # Changed while they were read: parts of two versions may have come together.
            return
        self._judged, self.fault = stamp, ""
        if not found.is_as(self.current):
            self.current = found
            self._log.info("certificates renewed")

    def _stamp(self) -> Stamp:
        settings = self._settings
        return tuple(
            _stamp_of(path)
            for path in (settings.tls_cert_file, settings.tls_key_file, settings.tls_client_ca_file)
        )


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)
