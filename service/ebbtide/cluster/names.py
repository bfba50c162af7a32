"""The names of a cluster's streams and subjects on the log servers."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.cluster.slots import slot_of


@dataclass(frozen=True, slots=True)
class Names:
    """The names in one cluster. `slot_count` and `log_streams` were fixed when it was created."""

    cluster: str
    slot_count: int
    log_streams: int

    def subject_of(self, directory: str) -> str:
        """Return the subject of the log of the agent in a directory."""
        return f"{self.slot_prefix(slot_of(directory, self.slot_count))}.{directory}"

    def slot_prefix(self, slot: int) -> str:
        """Return the beginning of the subjects of the logs of one slot."""
        return f"{self.log_prefix(slot % self.log_streams)}.{slot}"

    def log_prefix(self, number: int) -> str:
        """Return the beginning of the subjects of one log stream."""
        return f"{self.cluster}.log.{number}"

    def log_stream(self, number: int) -> str:
        """Return the name of one log stream."""
        return f"{self.cluster}_log_{number}"

    def stream_of(self, subject: str) -> str:
        """Return the name of the stream that has a subject."""
        part = subject.removeprefix(f"{self.cluster}.").split(".")
        return self.log_stream(int(part[1])) if part[0] == "log" else state_stream(self.cluster)

    @property
    def table(self) -> str:
        """The subject of the table of slots."""
        return f"{self.cluster}.state.slots"

    @property
    def api_keys(self) -> str:
        """The subject of the API keys."""
        return f"{self.cluster}.state.api_keys"

    @property
    def master_key(self) -> str:
        """The subject of the fingerprint of the master key."""
        return f"{self.cluster}.state.master_key"

    @property
    def secret(self) -> str:
        """The subject of the fingerprint of the nodes' secret."""
        return f"{self.cluster}.state.secret"

    @property
    def snapshots(self) -> str:
        """The subject of the setting that says where the contents of agents are."""
        return f"{self.cluster}.state.snapshots"

    def data_keys(self, directory: str) -> str:
        """Return the subject of the wrapped data keys of the agent in a directory."""
        return f"{self.all_data_keys}.{directory}"

    def next_data_keys(self, directory: str) -> str:
        """Return the subject of wrapped data keys that are about to replace those of an agent."""
        return f"{self.data_keys(directory)}.next"

    def data_keys_in(self, subject: str) -> str:
        """Return the directory of the agent whose wrapped data keys have a subject, also one of a replacement."""
        return subject.removeprefix(f"{self.all_data_keys}.").partition(".")[0]

    @property
    def all_data_keys(self) -> str:
        """The beginning of the subjects of wrapped data keys."""
        return f"{self.cluster}.state.data_keys"

    def erased(self, number: int) -> str:
        """Return the subject of a record of the log of erased agents."""
        return f"{self.cluster}.state.erased.{number}"

    def erased_piece(self, name: str, place: int) -> str:
        """Return the subject of a piece of a large record of that log."""
        return f"{self.cluster}.state.erased_piece.{name}.{place}"

    def node(self, name: str) -> str:
        """Return the subject of a node's lease."""
        return f"{self.nodes}.{name}"

    @property
    def nodes(self) -> str:
        """The beginning of the subjects of nodes' leases."""
        return f"{self.cluster}.state.node"


def state_stream(cluster: str) -> str:
    """Return the name of the stream with the small shared documents of a cluster."""
    return f"{cluster}_state"


def settings_subject(cluster: str) -> str:
    """Return the subject of what was fixed when the cluster was created."""
    return f"{cluster}.state.settings"
