"""Creates the backup or the export of an agent, in a file without a name.

The file is complete before the first byte is sent, so a slow or interrupted client never blocks the agent. It needs
disk space for that time. Its name is removed at once, so nothing stays on disk in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ebbtide.errors import Unavailable
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.lmdb.environment import DATA_FILE
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.transfer import backup_file
from ebbtide.store.transfer.backup_file import Manifest, pack, write_backup
from ebbtide.store.transfer.exporting import write_export
from ebbtide.store.translation import translated
from ebbtide.store.yielding import Pause

GivenUp = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Sending:
    """How a file is created: in which data directory, by which version, when, and how it yields or is cancelled."""

    data: DataDirectory
    ebbtide_version: str
    now_ms: int
    is_given_up: GivenUp = lambda: False
    pause: Pause = lambda: None

    def backup(self, store: LmdbStore, identity: Identity) -> BinaryIO:
        """Return the backup of an agent, opened at its beginning. The agent remains available."""

        def make(folder: Path, into: BinaryIO) -> None:
            self._copy(store, folder)
            with (folder / "packed").open("w+b") as packed:
                size = pack(folder / "copy" / DATA_FILE, packed, self._go_on)
                manifest = Manifest(
                    format=backup_file.FORM,
                    version=backup_file.VERSION,
                    ebbtide_version=self.ebbtide_version,
                    store_format=identity.format_version,
                    agent_id=identity.agent_id,
                    taken_at=self.now_ms,
                    data_bytes=size,
                )
                write_backup(into, manifest, packed)

        return self._made(make)

    def export(self, store: LmdbStore, identity: Identity) -> BinaryIO:
        """Return the export of an agent, opened at its beginning. The agent remains available."""

        def make(folder: Path, into: BinaryIO) -> None:
            self._copy(store, folder)
            copy = self.data.open_unplaced(folder / "copy", AgentId(identity.agent_id))
            try:
                write_export(into, copy, self.ebbtide_version, self.now_ms, self._go_on)
            finally:
                copy.close()

        return self._made(make)

    def _copy(self, store: LmdbStore, folder: Path) -> None:
        into = folder / "copy"
        into.mkdir()
        if not store.copy(into, self.is_given_up, self.pause):
            raise _given_up()

    def _go_on(self) -> None:
        self.pause()
        if self.is_given_up():
            raise _given_up()

    def _made(self, make: Callable[[Path, BinaryIO], None]) -> BinaryIO:
        folder = self.data.make_transfer()
        try:
            into = (folder / "made").open("w+b")
            try:
                make(folder, into)
                into.seek(0)
            except BaseException:
                into.close()
                raise
            return into
        except OSError as error:
            raise translated(error, folder) from error
        finally:
            self.data.end_transfer(folder)


def _given_up() -> Unavailable:
    return Unavailable("The client has cancelled the transfer.", reason="AGENT_CLOSING")
