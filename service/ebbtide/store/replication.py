"""How the files of a data directory are kept equal to a log, in a cluster. Without a cluster there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ebbtide.errors import EbbtideError
from ebbtide.store.journal import Journal, Position


class Log(Journal, Protocol):
    """The log of one agent that this node has taken."""

    on_long: Callable[[], None]
    """Called when the log has become long: when idle, the agent should be closed, taken again and shortened."""

    @property
    def is_long(self) -> bool:
        """Whether the log should be shortened when the agent is idle."""
        ...

    @property
    def is_very_long(self) -> bool:
        """Whether the log should be shortened now."""
        ...

    def append_gone(self) -> None:
        """Append that the agent was deleted, and erase all entries before."""
        ...


class Replication(Protocol):
    """The agents of this node in a cluster. Calls block, but for `owns`."""

    def owns(self, directory: str) -> bool:
        """Return whether this node owns the agent in a directory now."""
        ...

    def refusal(self) -> EbbtideError:
        """Return the error for a request for an agent that this node does not own now."""
        ...

    def take(self, agent_id: str, path: Path, *, shortens: bool = False) -> bool:
        """Complete the closed file in an agent's directory from the log. Return whether the agent exists.

        `shortens` replaces a long log by the content of the file.

        Raise AGENT_MOVING if this node does not own the agent, LOG_BEHIND, NOT_ENOUGH_LOG_SERVERS.
        """
        ...

    def position(self, path: Path) -> Position:
        """Return where the closed file in the directory of an agent of another node ends.

        Raise AGENT_MOVING if it may be open.
        """
        ...

    def copy(self, agent_id: str, path: Path) -> bool:
        """Complete the closed file of an agent of another node from the log. Return whether the agent exists.

        Raise LOG_BEHIND, NOT_ENOUGH_LOG_SERVERS.
        """
        ...

    def discard(self, directory: str, path: Path, *, only_obsolete: bool) -> bool:
        """Delete the closed file of an agent of another node, or only one that is no part of its log any more.

        Return whether it was deleted.
        """
        ...

    def log(self, agent_id: str) -> Log:
        """Return the log of an agent, as the latest `take` left it."""
        ...

    def data_keys(self, directory: str) -> bytes | None:
        """Return the wrapped data keys of an encrypted agent; None without any."""
        ...

    def put_data_keys(self, agent_id: str, content: bytes | None) -> None:
        """Replace the wrapped data keys of an agent that this node has taken; None erases them."""
        ...
