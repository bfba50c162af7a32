"""Certificate renewal: the certificates of both ports, following their files.

New connections use the new certificate; existing ones keep the old one. Unusable files never replace working ones.
Files are renewed one after the other, so a fault counts only if they did not change between two checks. Then the log
reports it once, and `fault` until it is resolved.

Deliberately not here: the validation of certificates (`tls.py`), and how gRPC gets new ones (`rpc/server.py`).
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
"""How often the files are checked for a change."""

OnPool = Callable[[Callable[[], Any]], Awaitable[Any]]

Stamp = tuple[tuple[int, int, int] | None, ...]
"""Identifies a version of the files: inode, size and modification time of each."""


class Renewal:
    """The certificates that the settings name. TLS_UNUSABLE if they are unusable at start."""

    def __init__(self, settings: AccessSettings) -> None:
        self._settings = settings
        # The stamp first: a change during the read causes another read.
        self._judged = self._seen = self._stamp()
        found = read_certificates(settings)
        assert found is not None, "without TLS there is nothing to renew"
        self.current: Certificates = found
        """The certificates of new connections. Replaced as a whole, on a thread of the pool."""
        self.fault = ""
        """Why the current files are not in use; empty if they are."""
        self.looks = 0
        """How many times the files were checked."""
        self._log = get_log("access")

    async def follow(self, on_pool: OnPool) -> None:
        """Load the files whenever they change, forever."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await on_pool(self.look)
            except Exception as error:
                # Any error: if this task ended, the certificates would expire one day.
                self._log.error("looking at certificates failed", why=type(error).__name__)
            self.looks += 1

    def look(self) -> None:
        """Load the files if they changed and are usable. Blocks."""
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
            # They changed during the read, so they may be of two versions.
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
