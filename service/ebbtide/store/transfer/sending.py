"""An agent on its way out: as a backup or as an export, in a file that has no name.

The file is made whole before the first byte leaves, so that whoever takes it slowly, or stops half-way, holds nothing
of the agent; it takes room on the disk meanwhile. It loses its name as soon as it is made: whatever happens, nothing
stays behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ebbtide.errors import Unavailable
from ebbtide.ids import AgentId
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.port import Identity, Store
from ebbtide.store.transfer import backup_file
from ebbtide.store.transfer.backup_file import Manifest, pack, write_backup
from ebbtide.store.transfer.exporting import write_export
from ebbtide.store.translation import translated
from ebbtide.store.yielding import Rest

GivenUp = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Sending:
    """How a file is made: where, by which version, when; who may give it up, and whom it lets pass."""

    data: DataDirectory
    ebbtide_version: str
    now_ms: int
    is_given_up: GivenUp = lambda: False
    rest: Rest = lambda: None

    def backup(self, store: Store, identity: Identity) -> BinaryIO:
        """The backup of an agent as it is now, from its beginning. The store may be at work."""

        def make(folder: Path, into: BinaryIO) -> None:
            self._copy(store, folder)
            with (folder / "packed").open("w+b") as packed:
                size = pack(folder / "copy" / "data.mdb", packed, self._go_on)
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

    def export(self, store: Store, identity: Identity) -> BinaryIO:
        """The export of an agent as it is now, from its beginning. The store may be at work: a copy of it is told."""

        def make(folder: Path, into: BinaryIO) -> None:
            self._copy(store, folder)
            copy = self.data.open_copy(folder / "copy", AgentId(identity.agent_id))
            try:
                write_export(into, copy, self.ebbtide_version, self.now_ms, self._go_on)
            finally:
                copy.close()

        return self._made(make)

    def _copy(self, store: Store, folder: Path) -> None:
        into = folder / "copy"
        into.mkdir()
        if not store.copy(into, self.is_given_up, self.rest):
            raise _given_up()

    def _go_on(self) -> None:
        self.rest()
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
    return Unavailable("nobody waits for this any more", reason="AGENT_CLOSING")
