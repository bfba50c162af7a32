"""The archive of an open agent: loaded by the first query and updated after every commit.

The rule guarded here: **an archive that cannot be updated is discarded** and loaded again by the next query, because an
outdated archive would return removed texts. A failed update undoes no commit and closes no agent.

The index over many vectors is a separate file next to the store, because it takes long to build. It is loaded with the
archive, saved when the agent closes, and removed before a commit that removes a text, because it is derived from texts.
For the same reason it is not saved for an encrypted store, or after a vector was dropped; then the next query rebuilds
it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ebbtide.fleet.archive.archive import Archive
from ebbtide.store.directory.index_file import INDEX_FILE, load_index, save_index
from ebbtide.store.durable import fresh_file
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.telemetry import get_log


class OpenArchive:
    """The archive of one agent, if it is loaded. Its methods are parts of jobs."""

    def __init__(self, agent_id: str, directory: Path, *, saves_index: bool = True) -> None:
        self._agent_id = agent_id
        self._saves_index = saves_index
        self._index_path = directory / INDEX_FILE
        self.loaded: Archive | None = None
        """The archive; None before the first query and after `discard`."""
        self._saved_stamp = ""

    def of(self, txn: ReadTransaction) -> Archive:
        """Return the archive, loading it if necessary."""
        if self.loaded is None:
            self.loaded = Archive.load(txn)
            self._load_index(self.loaded)
        return self.loaded

    def _load_index(self, archive: Archive) -> None:
        vectors = archive.vectors
        if self._saves_index and vectors is not None and vectors.wants_index:
            stamp = archive.vectors_stamp()
            if load_index(self._index_path, stamp, vectors):
                self._saved_stamp = stamp
                return
        # The file does not match, for example because texts were removed just before the daemon was killed.
        self.remove_index_file()

    def follow(self, what: Callable[[Archive], None]) -> None:
        """Update the archive after a commit, if it is loaded."""
        if self.loaded is None:
            return
        try:
            what(self.loaded)
        except Exception as error:
            self.discard()
            get_log("archive").error(
                "archive discarded because it could not be updated", agent_id=self._agent_id, exc_info=error
            )

    def discard(self) -> None:
        """Discard the archive. The next query loads it."""
        self.loaded = None

    @property
    def needs_index(self) -> bool:
        """Whether there are enough vectors for an index and it does not contain all of them."""
        vectors = None if self.loaded is None else self.loaded.vectors
        return vectors is not None and vectors.wants_index and not vectors.is_indexed

    def has_other_dimension(self, dimension: int) -> bool:
        """Whether the vectors have another dimension."""
        vectors = None if self.loaded is None else self.loaded.vectors
        return vectors is not None and vectors.dimension != dimension

    def build_index(self, is_time_up: Callable[[], bool]) -> bool:
        """Build the vector index until `is_time_up` returns True. Return whether more is to do."""
        if not self.needs_index:
            return False
        assert self.loaded is not None and self.loaded.vectors is not None
        return self.loaded.vectors.build_some(is_time_up)

    def remove_index_file(self) -> None:
        """Remove the index file, which is derived from texts that will be removed."""
        self._saved_stamp = ""
        try:
            self._index_path.unlink(missing_ok=True)
            fresh_file(self._index_path).unlink(missing_ok=True)
        except OSError as error:
            # The file will not be loaded, but it remains on disk.
            get_log("archive").error("vector index not removed", agent_id=self._agent_id, exc_info=error)

    def save_index(self) -> None:
        """Save the index unless the file is up to date. Raise OSError on failure."""
        archive = self.loaded
        if (
            archive is None
            or archive.vectors is None
            or not archive.vectors.is_indexed
            or not self._saves_index
        ):
            return
        stamp = archive.vectors_stamp()
        if stamp != self._saved_stamp:
            save_index(self._index_path, stamp, archive.vectors)
            self._saved_stamp = stamp

    @property
    def resident_bytes(self) -> int:
        """Approximate size in memory."""
        return 0 if self.loaded is None else self.loaded.resident_bytes
