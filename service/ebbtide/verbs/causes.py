"""causes: why something is so, as paths of stored links from a node to its causes (`memory/causal_paths.py`)."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from ebbtide.ids import NodeId, node_text_id, parse_node_id
from ebbtide.memory.causal_paths import MAX_DEPTH, CausalPath, Cause, causal_paths
from ebbtide.verbs.inspect import NodeRequest, not_alive
from ebbtide.verbs.limits import Between, Time
from ebbtide.verbs.requests import Response
from ebbtide.verbs.service import Service
from ebbtide.verbs.statements import View, read_at

DEFAULT_DEPTH = 3


class GetCausesRequest(NodeRequest):
    """The node whose causes are requested, and the length of the paths."""

    depth: Annotated[int, Between(1, MAX_DEPTH)] | None = Field(
        None, description=f"Most links of a path, 1-{MAX_DEPTH}; default: {DEFAULT_DEPTH}."
    )
    as_of: Time | None = Field(None, description="The time for which states are given; default: now.")
    known_at: Time | None = Field(None, description="Answer with what was known at this time.")


class CausalStep(Response):
    """A node of a path, and the link between it and the node before it."""

    id: str = Field(description="Id of the node.", examples=["n1"])
    relation: str = Field(
        description="Name of the link, as it was stored in either direction; empty for the start of the path.",
        examples=["causes"],
    )
    strength: float = Field(description="Current strength of that link; 1 for the start of the path.")
    inferred: bool = Field(description="Whether consolidation inferred that link.")
    kind: str = Field(description="episode, or the kind of the statement; empty for a forgotten node.")
    state: str = Field(
        description="State of the statement at this time, such as current or superseded; empty for a living "
        "memory; forgotten."
    )
    since: int | None = Field(
        description="From when the statement is true, ms since the epoch; null for a memory."
    )
    content: str = Field(description="The sentence; empty once the node is forgotten.")


class CausePath(Response):
    """A path from a node to its farthest known cause."""

    steps: list[CausalStep] = Field(description="The node itself, then its cause, the cause of that, …")
    strength: float = Field(description="The product of the strengths of its links.")
    inferred: bool = Field(description="Whether any of its links was inferred.")


class Causes(Response):
    """Why something is so."""

    paths: list[CausePath] = Field(description="The strongest paths, at most 16; empty if no cause is known.")
    truncated: bool = Field(description="Whether a bound has left out further paths.")


async def get_causes(service: Service, request: GetCausesRequest) -> Causes:
    """Return the paths of links from a node to its causes, the strongest first.

    Raise NODE_FORGOTTEN if the node existed once, NODE_NOT_FOUND otherwise.
    """
    return await read_at(service, request.owner, request.as_of, request.known_at, partial(_causes, request))


def _causes(request: GetCausesRequest, view: View) -> Causes:
    network, node_id = view.workspace.network, parse_node_id(request.node_id)
    if node_id not in network:
        raise not_alive(view.workspace, node_id)
    paths, is_cut = causal_paths(network, node_id, request.depth or DEFAULT_DEPTH)
    return Causes(paths=[shown_path(view, one) for one in paths], truncated=is_cut)


def shown_path(view: View, path: CausalPath) -> CausePath:
    """Return a path with the content and the state of each node."""
    start = Cause(path.start, "", 1.0, False)
    return CausePath(
        steps=[_step(view, one) for one in (start, *path.causes)],
        strength=round(path.strength, 4),
        inferred=path.is_inferred,
    )


def _step(view: View, cause: Cause) -> CausalStep:
    node = view.txn.nodes.get(cause.node_id)
    kind, state, since = _state(view, cause.node_id)
    return CausalStep(
        id=node_text_id(cause.node_id),
        relation=cause.relation,
        strength=round(cause.strength, 4),
        inferred=cause.is_inferred,
        kind=kind or ("" if node is None else node.kind),
        state="forgotten" if node is None and state in ("", "current", "contested", "planned") else state,
        since=since,
        content="" if node is None else node.content,
    )


def _state(view: View, node_id: NodeId) -> tuple[str, str, int | None]:
    """Return the kind, the state and the begin of a statement; empty for another node."""
    version = view.replay.version_of(node_id)
    if version is None:
        return "", "", None
    return version.first.kind, view.replay.state(version, view.as_of_ms), version.since_ms
