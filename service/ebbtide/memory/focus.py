"""The focus: what the agent attends to now, newest first. Memories and entities have a list each.

The links of a memory in focus count 1.0 and it is never scanned, so the current topic and everything linked to it is
protected. The links of an entity in focus to its newest memories count 1.0 too. The newest memories of a batch and the
entities that it mentions move to the front, and the oldest leave.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.changes import Change
from ebbtide.ids import NodeId
from ebbtide.memory.draft import Draft, ends_of
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters


def moved_focus(focus: Sequence[NodeId], new_nodes: Sequence[NodeId], limit: int) -> tuple[NodeId, ...]:
    """Return the focus after a batch created `new_nodes` (oldest first)."""
    newest = list(reversed(new_nodes))[:limit]
    return tuple(newest + list(focus))[:limit]


def trim_focus(draft: Draft) -> None:
    """Remove the oldest from a focus that exceeds a lowered limit, and all entities under the policy `nodes`."""
    parameters = draft.network.parameters
    if len(draft.focus) > parameters.focus_limit:
        draft.set_focus(draft.focus[: parameters.focus_limit])
    most = 0 if parameters.focus_policy == "nodes" else parameters.focus_limit
    if len(draft.entity_focus) > most:
        draft.set_entity_focus(draft.entity_focus[:most])


# --- by hand -----------------------------------------------------------------------------------------------


def focus_by_hand(network: Network, node_id: NodeId) -> Change:
    """Return the change that moves a memory or an entity to the front of its list, as if it had just been mentioned."""
    draft = Draft(network)
    if node_id in network.entities:
        draft.mention([node_id])
    else:
        others = tuple(one for one in draft.focus if one != node_id)
        if node_id not in draft.focus:
            draft.drop_broken_links(node_id)
        draft.set_focus((node_id, *others)[: network.parameters.focus_limit])
    return draft.change


def unfocus_by_hand(network: Network, node_id: NodeId) -> Change:
    """Return the change that removes a memory or an entity from its list."""
    draft = Draft(network)
    if node_id in network.entity_focus:
        draft.set_entity_focus(tuple(one for one in network.entity_focus if one != node_id))
    elif node_id in network.focus:
        draft.set_focus(tuple(one for one in network.focus if one != node_id))
    return draft.change


def pin_by_hand(network: Network, node_id: NodeId) -> Change:
    """Return the change that pins a memory.

    A link that its entity lost on entering focus is written again, so that the entity's name finds the memory.
    """
    draft = Draft(network)
    draft.pin(node_id)
    return draft.change


def unpin_by_hand(network: Network, node_id: NodeId) -> Change:
    """Return the change that unpins a memory; it is empty if the memory is not pinned."""
    draft = Draft(network)
    if network.slots["is_pinned"][network.slot_of(node_id)]:
        draft.unpin(node_id)
    return draft.change


# --- parameters --------------------------------------------------------------------------------------------


def reparametrised(network: Network, parameters: AgentParameters) -> Change:
    """Return the change to write before the parameters change.

    Links that are broken now do not come back, and a new `decay_rate` applies from the present strengths on.
    """
    draft = Draft(network)
    draft.settle_focus()
    if parameters.decay_rate == network.parameters.decay_rate:
        return draft.change
    change = network.reanchored()
    broken = {ends_of(link) for link in draft.change.removed_links}
    change.removed_links = draft.change.removed_links
    change.links = [link for link in change.links if ends_of(link) not in broken]
    return change
