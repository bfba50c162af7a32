"""The archive of an open agent: loaded when a question first needs it, following every commit from then on.

The rule guarded here: **what cannot follow is given up.** An archive behind the disk would tell what was withdrawn;
it is loaded anew by the next question. A commit is never undone for it, nor an agent closed.

Beside the store lies the index over very many vectors, which took long to build: taken up when the archive is
loaded, kept when the agent is closed, and removed before the commit that withdraws a text, since it is made of texts
too. For that reason none is kept beside a store that is sealed, and none from which a vector was dropped: the next
question after a start builds it again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ebbtide.fleet.archive.archive import Archive
from ebbtide.store.directory.index_file import INDEX_FILE, load_index, save_index
from ebbtide.store.durable import fresh_file
from ebbtide.store.port import ReadTransaction
from ebbtide.telemetry import get_log


class OpenArchive:
    """The archive of one agent as far as it is loaded. Its methods are parts of jobs."""

    def __init__(self, agent_id: str, directory: Path, *, saves_index: bool = True) -> None:
        self._agent_id = agent_id
        self._saves_index = saves_index
        self._index_path = directory / INDEX_FILE
        self.loaded: Archive | None = None
        """The archive; None before the first question, and after it was given up."""
        self._saved_stamp = ""

    def of(self, txn: ReadTransaction) -> Archive:
        """The archive, loaded if it is not there."""
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
        # It belongs to something else: texts that were withdrawn just before the daemon was killed, perhaps.
        self.remove_index_file()

    def follow(self, what: Callable[[Archive], None]) -> None:
        """Let the archive follow what was committed, if it is loaded."""
        if self.loaded is None:
            return
        try:
            what(self.loaded)
        except Exception as error:
            self.discard()
            get_log("archive").error("archive given up", agent_id=self._agent_id, exc_info=error)

    def discard(self) -> None:
        """Hold it no longer; the next question loads it."""
        self.loaded = None

    @property
    def needs_index(self) -> bool:
        """Whether there are vectors enough for an index, and it does not hold them all."""
        vectors = None if self.loaded is None else self.loaded.vectors
        return vectors is not None and vectors.wants_index and not vectors.is_indexed

    def has_other_dimension(self, dimension: int) -> bool:
        """Whether there are vectors that have not so many numbers."""
        vectors = None if self.loaded is None else self.loaded.vectors
        return vectors is not None and vectors.dimension != dimension

    def build_index(self, is_time_up: Callable[[], bool]) -> bool:
        """Build at the index of very many vectors for a while; whether more is to do."""
        if not self.needs_index:
            return False
        assert self.loaded is not None and self.loaded.vectors is not None
        return self.loaded.vectors.build_some(is_time_up)

    def remove_index_file(self) -> None:
        """Remove the index beside the store: it holds what a text meant that is withdrawn."""
        self._saved_stamp = ""
        try:
            self._index_path.unlink(missing_ok=True)
            fresh_file(self._index_path).unlink(missing_ok=True)
        except OSError as error:
            # Nobody will take it up, but there it lies.
            get_log("archive").error("index not removed", agent_id=self._agent_id, exc_info=error)

    def save_index(self) -> None:
        """Keep the index for the next opening, where there is one that is not kept yet. OSError where that fails."""
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
        """Bytes held, about."""
        return 0 if self.loaded is None else self.loaded.resident_bytes
