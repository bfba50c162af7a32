"""Choose between a running daemon and a data directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebbtide.cli.client import MemoryClient
from ebbtide.cli.credentials import NO_CREDENTIALS, Credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure


@contextmanager
def connected(
    url: str,
    data_dir: Path | None,
    credentials: Credentials = NO_CREDENTIALS,
    master_key_file: Path | None = None,
    *,
    create: bool = False,
) -> Iterator[MemoryClient]:
    """Yield a client of the data directory if one is given, else of the daemon. `create` creates the directory."""
    if data_dir is None:
        if master_key_file is not None:
            raise Failure("--master-key-file needs --data-dir; a daemon has its own key.", ExitCode.USAGE)
        from ebbtide.cli.remote import RemoteClient

        with RemoteClient(url, credentials) as remote:
            yield remote
        return
    from ebbtide.cli.offline import OfflineClient, locked

    if create:
        (data_dir / "agents").mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(data_dir, master_key_file) as (data, settings):
        yield OfflineClient(data, settings)
