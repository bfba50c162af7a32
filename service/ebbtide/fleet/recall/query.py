"""A query of a recall with its filters, and the passages that the filters allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.archive.archive import Archive, conversation_key
from ebbtide.ids import NodeId
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.records import EPISODE
from ebbtide.retrieval.passages import ROLES, PassageIndex
from ebbtide.statements import STATEMENT_KINDS

MAX_RESULTS_BY_DEFAULT = 20
"""Most memories of a response to a query whose size the caller leaves open."""

ROLE_NAMES = {"statement": "tool"}
"""The roles of passages that messages show under another name."""

ArchiveUse = Literal["always", "never", "when_needed"]
"""When the archive takes part: `when_needed` means only if living memories do not suffice."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query with everything that narrows its results."""

    text: str
    max_results: int
    is_size_open: bool = False
    """Whether the caller requested neither a number of memories nor a token budget."""
    depth: int = 2
    start_nodes: Sequence[NodeId] = ()
    token_budget: int | None = None
    archive: ArchiveUse = "always"
    speakers: Sequence[str] = ()
    conversations: Sequence[str] = ()
    kinds: Collection[str] = ()
    """Only memories of these kinds: `episode`, kinds of statements, or kinds of the caller's own."""
    with_memories: bool = True
    with_records: bool = False
    """Whether the result has memories, and records."""
    time_range: tuple[int | None, int | None] = (None, None)
    created_after: int | None = None
    """Only what was accepted at or after this time."""
    without: Collection[str] = ()
    key_sentences: bool = False
    """Whether a memory that does not fit the budget is shortened to its key sentences."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    cites: bool = False
    """Whether each memory cites its source in the text."""
    dates: bool = False
    """Whether each memory has its date in the text."""
    min_relevance: float = 0.0
    """Relevance that the best memory must have; otherwise the result is empty."""
    vector: NDArray[np.float32] | None = None
    """The query as a vector of the embedding model."""
    embedding_model: str = ""
    no_vector: str = "not available"
    """Why there is no `vector`."""
    is_vector_given: bool = False
    """Whether the caller sent the vector."""
    needs_vectors: bool = False
    """Whether the vector is the whole query."""
    ranks_only: bool = False
    """Whether the result has the scores and the relevance of messages, and no memories."""
    explains: bool = False
    """Whether the result lists the dropped memories."""


def allowed_passages(query: Query, archive: Archive, network: Network, ledger: Ledger) -> NDArray[np.bool_]:
    """Return which passages the filters of a query let through."""
    index = archive.index
    allowed = np.ones(len(index), dtype=np.bool_)
    if query.speakers:
        allowed &= _said_by(query.speakers, index)
    if query.conversations:
        keys = index.conversation_numbers(map(conversation_key, query.conversations))
        allowed &= np.isin(index.column("conversation"), keys)
    if query.kinds:
        allowed &= _of_kinds(query.kinds, archive, network, ledger)
    begin, end = query.time_range
    if begin is not None:
        allowed &= index.column("time_ms") >= begin
    if end is not None:
        allowed &= index.column("time_ms") < end
    if query.created_after is not None:
        allowed &= index.column("accepted_ms") >= query.created_after
    # A passage without text and without a living memory has nothing to return.
    allowed &= (index.column("withdrawn") == 0) | (index.column("word_count") > 0)
    if query.metadata:
        allowed &= archive.metadata_of_passages.matching(query.metadata)
    if query.archive == "never":
        allowed &= archive.with_living_memories(network.are_alive)
    return allowed


def _of_kinds(
    kinds: Collection[str], archive: Archive, network: Network, ledger: Ledger
) -> NDArray[np.bool_]:
    """Return which passages belong to memories of these kinds. A message without memory counts as `episode`."""
    index = archive.index
    found = np.isin(index.column("message"), ledger.messages_of(kinds))
    own = set(network.kinds) - STATEMENT_KINDS - {EPISODE}
    if wanted := own.intersection(kinds):
        found |= archive.with_living_memories(lambda ids: network.are_of_kinds(ids, wanted))
    if EPISODE in kinds:
        is_episode = index.column("role") != ROLES.index("statement")
        if own:
            is_episode &= ~archive.with_living_memories(lambda ids: network.are_of_kinds(ids, own))
        found |= is_episode
    return found


def _said_by(speakers: Sequence[str], index: PassageIndex) -> NDArray[np.bool_]:
    """Which passages these speakers said. The name of a role also means messages of that role without a speaker."""
    numbers = index.speaker_numbers
    said = np.isin(index.column("speaker"), [numbers[name] for name in speakers if name in numbers])
    roles = [number for number, role in enumerate(ROLES) if ROLE_NAMES.get(role, role) in speakers]
    if roles and "" in numbers:
        said |= (index.column("speaker") == numbers[""]) & np.isin(index.column("role"), roles)
    return said
