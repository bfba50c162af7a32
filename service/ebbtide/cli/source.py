"""Where a look at agents comes from: a running daemon, or a data directory at rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ebbtide.cli.credentials import NO_CREDENTIALS, Credentials

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


@contextmanager
def source(url: str, data_dir: Path | None, credentials: Credentials = NO_CREDENTIALS) -> Iterator[Source]:
    """The data directory where one is named, else the daemon."""
    if data_dir is None:
        from ebbtide.cli.remote import Remote

        with Remote(url, credentials) as remote:
            yield remote
        return
    from ebbtide.cli.offline import Resting, held

    with held(data_dir) as (data, settings):
        yield Resting(data, settings)
