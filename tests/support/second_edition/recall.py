"""Recall: cue, starts, walk, match, order, loose ends (6). It changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.oracle import round12
from tests.support.second_edition import relations, wording
from tests.support.second_edition.names import names_key, normalise
from tests.support.second_edition.network import Network
from tests.support.second_edition.records import LinkKey

WALK_WIDTH = 256
ENTITIES_A_KEYWORD = 16
MOST_LOOSE_ENDS = 3
MORE_BELOW = 3


@dataclass
class Query:
    """The request."""

    keywords: list[str] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    depth: int = 2
    time_range: tuple[int | None, int | None] = (None, None)
    max_results: int | None = None  # in place of max_search_results
    dates: bool = False


@dataclass
class Answer:
    """The response: (id, path strength) in order, and the text form."""

    results: list[tuple[int, float]]
    text: str
    relations_unknown: list[str]
    starts: list[list[int]]  # by position; position 0 is what the keywords name
    matched_keywords: dict[int, list[str]]  # of the results


def recall(network: Network, query: Query) -> Answer:
    """Return what comes to mind."""
    return Recall(network, query).answer()


class Recall:
    """The steps of one recall."""

    def __init__(self, network: Network, query: Query) -> None:
        self.network = network
        self.query = query
        # CHOICE 40 (6): equal keywords are those equal when casefolded; the first one is reported.
        self.keywords = list({keyword.casefold(): keyword for keyword in reversed(query.keywords)}.values())[
            ::-1
        ]
        self.named = {keyword: self.entities_named(keyword) for keyword in self.keywords}
        self.unknown, self.filter = self.relation_filter()

    # ---- cue and starts ---------------------------------------------------------------------------

    def entities_named(self, keyword: str) -> list[int]:
        """Return the entities that a keyword names: equal first, then shorter, then lower id (cue a)."""
        # CHOICE 41 (7): under focus_policy `nodes` a keyword names nothing, also where entities are left.
        if self.network.parameters.focus_policy == "nodes":
            return []
        wanted = normalise(keyword)
        found = [i for i, entity in self.network.entities.items() if names_key(keyword, entity.key)]

        def rank(entity_id: int) -> tuple[bool, int, int]:
            key = self.network.entities[entity_id].key
            return (key != wanted, len(key), entity_id)

        return sorted(found, key=rank)[:ENTITIES_A_KEYWORD]

    def says(self, memory_id: int, keyword: str) -> bool:
        """Whether a memory's content or keywords contain a keyword, casefolded."""
        memory = self.network.memories[memory_id]
        return any(keyword.casefold() in text.casefold() for text in [memory.content, *memory.keywords])

    def memories_named(self, keyword: str) -> list[int]:
        """Return the memories that a keyword names: the newest that contain it (cue b)."""
        if self.network.parameters.focus_policy == "nodes":
            return []
        found = [i for i in self.network.memories if self.is_in_time(i) and self.says(i, keyword)]
        return sorted(found, reverse=True)[: self.network.parameters.cue_memories]

    def starts(self) -> list[list[int]]:
        """Return the starts by position: the cue, then the memories in focus, then the entities in focus."""
        cue: list[int] = []
        for keyword in self.keywords:
            for node_id in [*self.named[keyword], *self.memories_named(keyword)]:
                if node_id not in cue:
                    cue.append(node_id)
        return [cue, *([i] for i in self.network.memory_focus), *([i] for i in self.network.entity_focus)]

    def is_in_time(self, memory_id: int) -> bool:
        """Whether a memory is in the time range."""
        begin, end = self.query.time_range
        created = self.network.memories[memory_id].created_at
        return (begin is None or begin <= created) and (end is None or created < end)

    # ---- relations --------------------------------------------------------------------------------

    def relation_filter(self) -> tuple[list[str], list[str]]:
        """Return the relations that nothing bears, and those that make the filter."""
        # CHOICE 42 (6): the name of an entity equals a relation when their normalised keys are equal. A dangling live
        # link bears its name too.
        network = self.network
        living = {relations.relation_key(key[2]) for key in network.links if network.is_live(key)}
        keys = {entity.key for entity in network.entities.values()}
        unknown = [
            relation
            for relation in self.query.relations
            if relations.relation_key(relation) not in living and normalise(relation) not in keys
        ]
        return unknown, [relation for relation in self.query.relations if relation not in unknown]

    def is_allowed(self, key: LinkKey) -> bool:
        """Whether the relation filter lets a link pass: by its name, or by an entity at either end."""
        if not self.filter:
            return True
        if relations.relation_key(key[2]) in [relations.relation_key(relation) for relation in self.filter]:
            return True
        names = [normalise(relation) for relation in self.filter]
        ends = [self.network.entities[i] for i in key[:2] if i in self.network.entities]
        return any(entity.key in names for entity in ends)

    # ---- walk -------------------------------------------------------------------------------------

    def steps_from(self, node_id: int) -> list[LinkKey]:
        """Return the links that a walk follows from a node; of an entity the 256 strongest."""
        network = self.network
        steps = [
            key
            for key in network.links_from(node_id)
            if network.lives(key[1]) and network.is_live(key) and self.is_allowed(key)
        ]
        if node_id not in network.entities:
            return steps
        # CHOICE 43 (6): strengths are equal when they are so in 12 significant digits; "newest" = highest target id.
        steps.sort(key=lambda key: (-round12(network.strength(key)), -key[1], key[2]))
        return steps[:WALK_WIDTH]

    def walk(self, starts: list[int]) -> tuple[dict[int, float], set[int]]:
        """Return each node within depth hops with its strongest path, and the nodes that a followed link reaches."""
        best = dict.fromkeys(starts, 1.0)
        arrived: set[int] = set()
        for _ in range(self.query.depth):
            one_hop_more = dict(best)
            for source in sorted(best):
                for key in self.steps_from(source):
                    path = best[source] * self.network.strength(key)
                    one_hop_more[key[1]] = max(path, one_hop_more.get(key[1], path))
                    arrived.add(key[1])
            best = one_hop_more
        return best, arrived

    def visited(self, starts: list[list[int]]) -> tuple[dict[int, tuple[float, int]], set[int]]:
        """Return strength and position of every node reached, and the nodes that a followed link reaches."""
        walks = [self.walk(nodes) for nodes in starts]
        reached: dict[int, tuple[float, int]] = {}
        for node_id in {node_id for best, _ in walks for node_id in best}:
            strength = max(best[node_id] for best, _ in walks if node_id in best)
            # CHOICE 44 (6): paths are equally strong when they are so in 12 significant digits.
            position = min(
                place
                for place, (best, _) in enumerate(walks)
                if node_id in best and round12(best[node_id]) == round12(strength)
            )
            reached[node_id] = (strength, position)
        return reached, {node_id for _, arrived in walks for node_id in arrived}

    # ---- match ------------------------------------------------------------------------------------

    def matched(self, memory_id: int) -> list[str]:
        """Return the keywords that a memory matches."""
        speaker = self.network.memories[memory_id].speaker.casefold()
        own = set(self.network.entities_of(memory_id))
        return [
            keyword
            for keyword in self.keywords
            if self.says(memory_id, keyword)
            or keyword.casefold() in speaker
            or own & set(self.named[keyword])
        ]

    # ---- answer -----------------------------------------------------------------------------------

    def answer(self) -> Answer:
        """Return the answer."""
        starts = self.starts()
        reached, arrived = self.visited(starts)
        memories = [i for i in reached if i in self.network.memories and self.is_in_time(i)]
        matched = {memory_id: self.matched(memory_id) for memory_id in memories}

        def rank(memory_id: int) -> tuple[int, float, int, int]:
            strength, position = reached[memory_id]
            return (-len(matched[memory_id]), -round12(strength), position, -memory_id)

        visited = sorted(memories, key=rank)
        matching = [i for i in visited if matched[i] or not self.keywords]
        # CHOICE 45 (6): a start that a followed link reaches keeps its path strength 1.0. The link may come from any
        # node visited, along a cycle too.
        all_starts = {node_id for nodes in starts for node_id in nodes}
        results = [i for i in matching if not self.filter or i not in all_starts or i in arrived]
        limit = self.query.max_results
        limit = self.network.parameters.max_search_results if limit is None else limit
        results = results[: limit or 10000]  # 7: 0 = 10000
        locale = self.network.parameters.locale
        blocks = [wording.memory_block(self.network.memories[i], locale, self.query.dates) for i in results]
        return Answer(
            results=[(memory_id, reached[memory_id][0]) for memory_id in results],
            text=wording.SEPARATOR.join(blocks + self.loose_ends(results, matching, visited)),
            relations_unknown=self.unknown,
            starts=starts,
            matched_keywords={memory_id: matched[memory_id] for memory_id in results},
        )

    # ---- loose ends -------------------------------------------------------------------------------

    def loose_ends(self, results: list[int], matching: list[int], visited: list[int]) -> list[str]:
        """Return the sentences about what was forgotten: at most 3, equal ones once."""
        # CHOICE 46 (6): "matching" is what keywords and time say: a start that the relation filter keeps out of the
        # results counts. "Nothing matches" is judged by the same list.
        sentences = self.sentences_of_entities(results)
        if matching:
            sentences += self.sentences_of_memories(matching, with_order=False)
        elif not any(self.named.values()):
            sentences += self.sentences_of_memories(visited, with_order=True)
        return list(dict.fromkeys(sentences))[:MOST_LOOSE_ENDS]

    def sentences_of_entities(self, results: list[int]) -> list[str]:
        """Rule 1: entities that the keywords name, or else those in focus."""
        # CHOICE 47 (6): a time range does not change whether an entity has living memories.
        network = self.network
        entity_ids = list(dict.fromkeys(i for keyword in self.keywords for i in self.named[keyword]))
        if not self.keywords:
            entity_ids = network.entity_focus
        texts = [*self.keywords, *(network.memories[i].content for i in results)]
        sentences: list[str] = []
        is_more_said = False
        for entity_id in entity_ids:
            name = network.entities[entity_id].name
            if not any(self.is_allowed(key) for key in network.loose_ends(entity_id)):
                continue
            if not network.memories_of(entity_id):
                sentences.append(wording.something_block(name, network.parameters.locale, texts))
            elif self.keywords and len(results) < MORE_BELOW and not is_more_said:
                sentences.append(wording.more_block(name, network.parameters.locale, texts))
                is_more_said = True
        return sentences

    def sentences_of_memories(self, memory_ids: list[int], *, with_order: bool) -> list[str]:
        """Rules 2 and 3: the dangling links of these memories, each memory's strongest first."""
        network = self.network
        sentences: list[str] = []
        for memory_id in memory_ids:
            keys = [key for key in network.loose_ends(memory_id) if self.is_allowed(key)]
            if not with_order:
                unnamed = ["", *relations.ORDER]
                keys = [key for key in keys if relations.relation_key(key[2]) not in unnamed]
            # CHOICE 48 (6): of equally strong links to one target, the lower relation name comes first.
            keys.sort(key=lambda key: (-round12(network.strength(key)), -key[1], key[2]))
            memory = network.memories[memory_id]
            sentences += [wording.dangling_block(memory, key[2], network.parameters.locale) for key in keys]
        return sentences
