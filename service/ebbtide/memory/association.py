"""Association: from the focus outward along the strongest paths (memory model, section 6).

A path is worth the product of its links' strengths; a node is worth its strongest path **of at most `depth`
hops**. So this is not Dijkstra: a stronger but longer path must not hide what a weaker, shorter one could
still reach. Bellman-Ford by hops (R. Bellman, "On a routing problem", 1958): hop h extends only what became
better with exactly h - 1 hops; anything else is dominated by a path that is no weaker and no longer.

Of equally strong paths the one from the newest focus counts, so a path is compared by (strength rounded to
12 significant digits, newness of its focus).

Nothing here changes anything, and no text is read: whether a node matches is asked of the caller, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ebbtide.memory.network import Network, round_strength
from ebbtide.memory.wording import MEMORIES_OF_LOSS, word_dangling
from ebbtide.vocabulary import Cue, NodeId

NEIGHBOUR_SYNONYMS = {"previous": "上文", "next": "下文"}
"""Names that mean the same in both languages, folded to one."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A node within reach: the worth of its strongest path, and the newest focus such a path starts from."""

    node_id: NodeId
    strength: float
    position: int


@dataclass(frozen=True, slots=True)
class Text:
    """What a node says, as far as matching and wording need it."""

    content: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a recall found: memories in order, and sentences about what was forgotten."""

    memories: tuple[tuple[Reached, str], ...] = ()
    once_known: tuple[str, ...] = ()


def fold_relation(name: str) -> str:
    """A relation name as it is compared."""
    folded = name.casefold()
    return NEIGHBOUR_SYNONYMS.get(folded, folded)


def reach(network: Network, relations: Sequence[str], depth: int) -> list[Reached]:
    """Every node within `depth` hops of the focus, strongest path first.

    Order: path strength (12 significant digits) descending, position of the newest focus among its strongest
    paths, id descending. With `relations`, only links of these names are followed.
    """
    followed = {fold_relation(name) for name in relations}
    # Label: (rounded strength, -position of the focus, strength). Compared by the first two.
    best = {node_id: (1.0, -position, 1.0) for position, node_id in enumerate(network.focus)}
    frontier = dict(best)
    for _ in range(depth):
        found: dict[NodeId, tuple[float, int, float]] = {}
        for source, (_, newness, so_far) in frontier.items():
            for target, relation, strength in network.links_from(source):
                if target not in network.nodes or (followed and fold_relation(relation) not in followed):
                    continue
                worth = so_far * strength
                label = (round_strength(worth), newness, worth)
                known = found.get(target) or best.get(target)
                if known is None or label[:2] > known[:2]:
                    found[target] = label
        if not found:
            break
        best.update(found)
        frontier = found
    reached = [Reached(node_id, label[0], -label[1]) for node_id, label in best.items()]
    return sorted(reached, key=lambda r: (-r.strength, r.position, -r.node_id))


def recall(network: Network, cue: Cue, text_of: Callable[[NodeId], Text], locale: str) -> Answer:
    """The memories that match a cue, and what is told of forgotten ones.

    `text_of` gives a node's text. Empty keywords match everything; with relations, focus nodes are where the
    walk starts but no results themselves.
    """
    order = reach(network, cue.relations, cue.depth)
    wanted = tuple(keyword.casefold() for keyword in cue.keywords)
    matching: list[tuple[Reached, Text]] = []
    others: list[tuple[Reached, Text]] = []
    for reached in order:
        text = text_of(reached.node_id)
        (matching if matches(text, wanted) else others).append((reached, text))
    results = [
        (reached, text.content)
        for reached, text in matching
        if not (cue.relations and reached.node_id in network.focus)
    ]
    tellers = ((reached.node_id, text.content) for reached, text in matching or others)
    sentences = _once_known(network, tellers, cue.relations, locale)
    return Answer(tuple(results[: cue.max_results]), sentences)


def matches(text: Text, wanted: Sequence[str]) -> bool:
    """Whether any casefolded keyword occurs in the content or in one of the keywords."""
    if not wanted:
        return True
    content = text.content.casefold()
    if any(keyword in content for keyword in wanted):
        return True
    own = [keyword.casefold() for keyword in text.keywords]
    return any(keyword in known for keyword in wanted for known in own)


def _once_known(
    network: Network,
    tellers: Iterator[tuple[NodeId, str]],
    relations: Sequence[str],
    locale: str,
) -> tuple[str, ...]:
    """At most three different sentences about links to forgotten nodes, in the order of who has them."""
    followed = {fold_relation(name) for name in relations}
    sentences: dict[str, None] = {}
    for node_id, content in tellers:
        for _, relation in network.dangling(node_id):
            if followed and fold_relation(relation) not in followed:
                continue
            sentences.setdefault(word_dangling(relation, content, locale))
            if len(sentences) == MEMORIES_OF_LOSS:
                return tuple(sentences)
    return tuple(sentences)
