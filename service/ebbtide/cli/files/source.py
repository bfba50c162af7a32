"""Where a look at agents comes from: a running daemon, or a data directory at rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ebbtide.cli.credentials import NO_CREDENTIALS, Credentials
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure

Json = dict[str, Any]


class Source(Protocol):
    """What can be asked of both."""

    def agents(self) -> list[Json]: ...
    def agent(self, agent_id: str) -> Json: ...
    def batches(self, agent_id: str) -> list[Json]: ...
    def node(self, agent_id: str, node_id: str) -> Json: ...
    def audit(self, agent_id: str) -> list[Json]: ...
    def verify_audit(self, agent_id: str, texts: list[str]) -> Json: ...
    def erased_agents(self) -> list[Json]: ...
    def verify_erased(self, texts: list[str]) -> Json: ...


def refuse_master_key(master_key_file: Path | None) -> None:
    """A Failure where a master key is shown to a daemon, which has its own."""
    if master_key_file is not None:
        raise Failure("--master-key-file: only with --data-dir; a daemon has its own.", ExitCode.USAGE)


@contextmanager
def source(
    url: str,
    data_dir: Path | None,
    credentials: Credentials = NO_CREDENTIALS,
    master_key_file: Path | None = None,
) -> Iterator[Source]:
    """The data directory where one is named, else the daemon."""
    if data_dir is None:
        refuse_master_key(master_key_file)
        from ebbtide.cli.remote import Remote

        with Remote(url, credentials) as remote:
            yield remote
        return
    from ebbtide.cli.offline import OfflineClient, held

    with held(data_dir, master_key_file) as (data, settings):
        yield OfflineClient(data, settings)
