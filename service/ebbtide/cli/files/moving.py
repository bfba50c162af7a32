"""Where agents leave from and come back to: a running daemon, or a data directory that no daemon holds.

Both are asked the same: for an agent as a file, and to take one. What a file is called, and which, is for the commands.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ebbtide.cli.credentials import NO_CREDENTIALS, Credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.source import refuse_master_key

if TYPE_CHECKING:
    from ebbtide.settings import Settings
    from ebbtide.store.directory.data_directory import DataDirectory

PIECE_BYTES = 1 << 20

Json = dict[str, Any]
Told = Callable[[int], None]
"""Hears how many bytes have moved."""


class Place(Protocol):
    """What can be asked of both."""

    def agent_ids(self) -> list[str]: ...
    def fetch(self, agent_id: str, form: str, into: BinaryIO, moved: Told) -> None: ...
    def put(self, agent_id: str, file: BinaryIO, *, replace: bool, rename: bool, moved: Told) -> Json: ...


@contextmanager
def place(
    url: str,
    data_dir: Path | None,
    credentials: Credentials = NO_CREDENTIALS,
    master_key_file: Path | None = None,
    *,
    make: bool = False,
) -> Iterator[Place]:
    """The data directory where one is named, else the daemon; with `make` the directory need not be there yet."""
    if data_dir is None:
        refuse_master_key(master_key_file)
        from ebbtide.cli.remote import Remote

        with Remote(url, credentials) as remote:
            yield remote
        return
    from ebbtide.cli.offline import held

    if make:
        (data_dir / "agents").mkdir(parents=True, exist_ok=True, mode=0o700)
    with held(data_dir, master_key_file) as (data, settings):
        yield AtRest(data, settings)


class AtRest:
    """A data directory that we hold."""

    def __init__(self, data: DataDirectory, settings: Settings) -> None:
        self._data = data
        self._settings = settings

    def agent_ids(self) -> list[str]:
        """Every agent; where its id cannot be read, the name of its directory."""
        from ebbtide.cli.offline import told_agents

        return [told.agent_id for told in told_agents(self._data)]

    def fetch(self, agent_id: str, form: str, into: BinaryIO, moved: Told) -> None:
        """Write the backup or the export of an agent."""
        from ebbtide import __version__
        from ebbtide.cli.offline import refuse_nameless
        from ebbtide.clock import SystemClock
        from ebbtide.errors import NotFound
        from ebbtide.ids import parse_agent_id
        from ebbtide.store.transfer.sending import Sending

        refuse_nameless(self._data, agent_id)
        owner = parse_agent_id(agent_id)
        if not self._data.exists(owner):
            raise NotFound("there is no agent of this id", reason="AGENT_NOT_FOUND")
        store = self._data.open_store(owner)
        how = Sending(self._data, __version__, SystemClock().now_ms())
        try:
            identity = store.read(lambda txn: txn.meta.identity)
            assert identity is not None, "an open store has its identity"
            made = how.export(store, identity) if form == "export" else how.backup(store, identity)
        finally:
            store.close()
        with made:
            shutil.copyfileobj(made, Counted(into, moved), PIECE_BYTES)

    def put(self, agent_id: str, file: BinaryIO, *, replace: bool, rename: bool, moved: Told) -> Json:
        """Take an agent in."""
        from ebbtide.clock import SystemClock
        from ebbtide.errors import Conflict
        from ebbtide.ids import parse_agent_id
        from ebbtide.store.transfer.receiving import receive
        from ebbtide.verbs.moving import restored

        owner = parse_agent_id(agent_id)
        exists = self._data.has_files(owner) and (replace or self._data.exists(owner))
        if exists and not replace:
            raise Conflict("an agent of this id exists; say --replace", reason="AGENT_EXISTS")
        folder = self._data.make_transfer()
        try:
            defaults = self._settings.memory
            staged = receive(
                self._data,
                file,
                folder,
                expected=owner,
                rename=rename,
                defaults=defaults,
                now_ms=SystemClock().now_ms(),
            )
            self._data.install(owner, staged.path, staged.entry)
        finally:
            self._data.end_transfer(folder)
        return restored(staged, exists).model_dump(mode="json")


class Counted:
    """A file that tells how much was written to it."""

    def __init__(self, file: BinaryIO, moved: Told) -> None:
        self._file = file
        self._moved = moved

    def write(self, piece: bytes) -> int:
        """Write, and tell."""
        self._moved(len(piece))
        return self._file.write(piece)


def opened(path: Path) -> BinaryIO:
    """A regular file to be read; a Failure for anything else. A pipe may have no end, a device no beginning."""
    import stat

    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise Failure(f"{path} is {kind}, not a file.", ExitCode.BAD_INPUT)
        return path.open("rb")
    except FileNotFoundError:
        raise Failure(f"There is no file {path}.", ExitCode.BAD_INPUT) from None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.", ExitCode.BAD_INPUT) from None


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to be written: it is there once all of it is, durably, and not before."""
    import os

    fresh = path.with_name(f".{path.name}.new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        fresh.replace(path)
    except OSError as error:
        raise Failure(
            f"{path} cannot be written: {error.strerror}.", ExitCode.REFUSED, ends_all=True
        ) from None
    finally:
        fresh.unlink(missing_ok=True)
