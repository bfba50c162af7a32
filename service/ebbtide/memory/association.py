"""Association: what comes to mind at a cue (memory model, section 6).

Keywords name entities and memories. The search starts there and at the focus, and follows the strongest paths
(`walk.py`). The memories that match the keywords are the result, ordered by the number of keywords matched and then by
the strength of their paths. Sentences report links to forgotten memories.

Only reached nodes are examined: texts are matched in order of strength until enough match; if that would take too
long, all texts are searched at once. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ebbtide.entity_names import entity_key, find_word
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.naming import LINK_NAMES, NEIGHBOUR_NAMES
from ebbtide.memory.network import Network
from ebbtide.memory.strength import round_strength
from ebbtide.memory.texts import folded
from ebbtide.memory.walk import LAST_POSITION, Follow, Reach, strengths, walk
from ebbtide.memory.wording import LOOSE_ENDS, ORDER_NAMES, joined, word_dangling, word_entity, word_memory
from ebbtide.records import Cue, Node

SYNONYMS = {
    english: chinese
    for names in (LINK_NAMES, NEIGHBOUR_NAMES)
    for english, chinese in zip(names["en"], names["zh"], strict=True)
}
"""Names of links with the same meaning in both languages."""

MAX_NAMED_ENTITIES = 16
"""Most entities that one keyword names."""

FEW_MEMORIES = 3
"""With fewer memories in an answer, it may say that more was known."""

ROWS_AT_ONCE = 1 << 16
"""Links examined at once to find out whether a relation name is in use."""

FIRST_TRY = 4
"""How many times the requested results are matched first; that suffices for common words."""

GROWTH = 4
"""Growth of that number when too few match."""

SHARE_OF_BOUNDED = 4
"""A walk is bounded if the agent has more than this many times the memories that are needed."""


@dataclass(frozen=True, slots=True)
class Start:
    """A node at which a recall starts. `keyword` is what named it; empty for the focus."""

    node_id: NodeId
    position: int
    keyword: str = ""


@dataclass(frozen=True, slots=True)
class Reached:
    """A memory of the result: its strongest path, and the lowest position at which such a path starts."""

    node_id: NodeId
    strength: float
    position: int
    matched: int = 0
    """The number of keywords that it matches."""
    keywords: tuple[str, ...] = ()
    """With `explains`: the keywords that it matches."""
    path: tuple[tuple[NodeId, str], ...] = ()
    """With `explains`: the nodes of its path, each with the name of the link to it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a recall: memories in order, and sentences about forgotten ones."""

    memories: tuple[tuple[Reached, Node], ...] = ()
    loose_ends: tuple[str, ...] = ()
    relations_unknown: tuple[str, ...] = ()
    """Requested relations that no link and no entity has; they were ignored."""
    starts: tuple[Start, ...] = ()
    """With `explains`: where the search started."""

    def text(self, locale: str, date_of: Callable[[int], str] | None = None) -> str:
        """Return the answer for a language model to read, optionally with the date of each memory."""
        return joined(self.blocks(locale, date_of))

    def blocks(self, locale: str, date_of: Callable[[int], str] | None = None) -> list[str]:
        """Return the blocks of the text."""
        memories = [
            word_memory(node.content, locale, node.label, date_of(node.created_at_ms) if date_of else "")
            for _, node in self.memories
        ]
        return [*memories, *self.loose_ends]


def fold_relation(name: str) -> str:
    """Return a relation name in the form in which names are compared."""
    name = name.casefold()
    return SYNONYMS.get(name, name)


@dataclass(frozen=True, slots=True)
class Association:
    """Reached nodes as unordered arrays: ids and the strength of the strongest path to each."""

    node_ids: Array
    worths: Array


def associate(network: Network, depth: int, start: Sequence[NodeId] | None = None) -> Association:
    """Return the memories within `depth` hops of the memories in focus, or of the `start` nodes.

    Links with entities are not followed.
    """
    nodes = (
        network.focus if start is None else [n for n in start if n in network and n not in network.entities]
    )
    slots = network.slots_of(list(dict.fromkeys(nodes))[:LAST_POSITION])
    reached, worths = strengths(network, slots, depth, Follow(skips_entities=True))
    return Association(network.slots["id"][reached], worths)


def recall(network: Network, cue: Cue, node_of: Callable[[NodeId], Node], locale: str) -> Answer:
    """Return the memories that match a cue, and sentences about forgotten ones.

    `node_of` returns a memory. Empty keywords match every memory reached. With relations, a start is a result only if a
    followed link reaches it.
    """
    follow, unknown = _follow(network, cue.relations)
    named = _Named(network, cue)
    starts = _starts(network, named)
    if not starts:
        return Answer(relations_unknown=unknown)
    search = _Search(network, cue, follow, starts)
    matcher = _Matcher(network, search, named)
    results = matcher.first(cue.max_results)
    reached = _reached(network, search.found, results, matcher.counts_of_results(results))
    memories = tuple((one, node_of(one.node_id)) for one in reached)
    if cue.explains:
        memories = tuple((_explained(network, search.found, named, one), node) for one, node in memories)
    loose_ends = _LooseEnds(network, follow, named, search, matcher, locale)
    sentences = loose_ends.sentences([node for _, node in memories])
    return Answer(memories, sentences, unknown, tuple(starts) if cue.explains else ())


class _Search:
    """The walk of a recall. It first finds the memories with the strongest paths, and the others on request."""

    def __init__(self, network: Network, cue: Cue, follow: Follow, starts: Sequence[Start]) -> None:
        self._network = network
        self._cue = cue
        self._follow = follow
        self.starts = network.slots_of([start.node_id for start in starts])
        self._positions = np.array([start.position for start in starts], dtype=np.int64)
        self.found = Reach.nothing()
        """The memories of the last walk, within the time range."""

    def widen(self, most: int) -> None:
        """Find at least the first `most` memories."""
        network, cue = self._network, self._cue
        # In a small memory, the cost of a walk hardly depends on the number of links. Which of equal paths is explained
        # may depend on the bound.
        is_bounded = not cue.explains and SHARE_OF_BOUNDED * most < network.node_count
        is_bounded &= cue.time_range == (None, None)
        found = walk(
            network,
            self.starts,
            self._positions,
            cue.depth,
            self._follow,
            most=most if is_bounded else None,
            is_traced=cue.explains,
        )
        is_memory = ~network.slots["is_entity"][found.slots]
        are_memories = is_memory & _are_in_range(network, found.slots, cue.time_range)
        self.found = found.chosen(np.flatnonzero(are_memories))

    @property
    def allowed(self) -> Array:
        """The positions of the memories that may be results: with relations, those that a followed link reaches."""
        if self._follow.relations is not None:
            return np.flatnonzero(self.found.arrived)
        return np.arange(len(self.found.slots))


def _reached(network: Network, found: Reach, places: Array, counts: Iterable[int]) -> list[Reached]:
    """Return the memories at these positions of what was found."""
    return list(
        map(
            Reached,
            network.slots["id"][found.slots[places]].tolist(),
            map(round_strength, found.worths[places].tolist()),
            (LAST_POSITION - (found.labels[places] & LAST_POSITION)).tolist(),
            counts,
        )
    )


def _explained(network: Network, found: Reach, named: _Named, one: Reached) -> Reached:
    slot = network.slot_of(one.node_id)
    slots = np.array([slot])
    keywords = tuple(keyword for word, keyword in named.words.items() if named.matches(word, slots)[0])
    return replace(one, keywords=keywords, path=tuple(found.path_to(network, slot)))


# --- cue ---------------------------------------------------------------------------------------------------


class _Named:
    """The nodes that the keywords of a cue name and match."""

    def __init__(self, network: Network, cue: Cue) -> None:
        self._network = network
        self._cue = cue
        self.words: dict[str, str] = {}
        """The keywords by their folded form; equal ones count once."""
        for keyword in cue.keywords:
            self.words.setdefault(keyword.casefold(), keyword)
        self._entities = {word: self._named_entities(word) for word in self.words}
        self.in_texts: dict[str, Array] = {}
        """By slot, which texts contain a word, after all texts were searched for it."""
        self._linked: dict[str, Array] = {}
        self._speakers: dict[str, Array] = {}

    def _named_entities(self, word: str) -> list[NodeId]:
        """Return the entities that a keyword names: equal first, then shorter, then older."""
        network, key_of_word = self._network, entity_key(word)
        if not key_of_word or not network.entities or network.parameters.focus_policy == "nodes":
            return []
        slots = np.flatnonzero(network.keys.matches_all([folded(key_of_word)], network.slots.count))
        found = []
        for node_id in network.slots["id"][slots].tolist():
            key = network.entities[node_id].key
            if find_word(key, key_of_word) >= 0:
                found.append((key != key_of_word, len(key), node_id))
        return [node_id for _, _, node_id in sorted(found)[:MAX_NAMED_ENTITIES]]

    @property
    def entities(self) -> list[NodeId]:
        """The entities that the keywords name, each once, keywords in order."""
        return list(dict.fromkeys(one for word in self.words for one in self._entities[word]))

    def starts(self) -> Iterator[Start]:
        """Yield what the keywords name."""
        for word, keyword in self.words.items():
            for node_id in self._entities[word]:
                yield Start(node_id, 0, keyword)
            for node_id in self._network.slots["id"][self._newest_memories(word)].tolist():
                yield Start(node_id, 0, keyword)

    def _newest_memories(self, word: str) -> Array:
        """Return the newest memories whose content or keywords contain a keyword, within the time range."""
        network, most = self._network, self._network.parameters.cue_memories
        if word and self._cue.time_range == (None, None):
            newest, is_complete = network.texts.newest_with(folded(word), most)
            if is_complete:
                self.in_texts[word] = np.zeros(network.slots.count, dtype=np.bool_)
                self.in_texts[word][newest] = True
            return newest[:most]
        chosen = network.slots["alive"] & ~network.slots["is_entity"]
        if word:
            chosen &= network.texts.matches_all([folded(word)], network.slots.count)
        slots = np.flatnonzero(chosen)
        slots = slots[_are_in_range(network, slots, self._cue.time_range)]
        in_range: Array = slots[::-1][:most]
        return in_range

    def matches(self, word: str, slots: Array, in_text: Array | None = None) -> Array:
        """Return which memories a keyword matches: by text, by speaker, or by an entity that it names.

        `in_text` is whether the text of each contains it, if that is known.
        """
        if in_text is None:
            in_text = self._network.texts.matches_each(slots, [folded(word)])
        matching: Array = in_text | self.matches_without_text(word, slots)
        return matching

    def matches_without_text(self, word: str, slots: Array) -> Array:
        """Return which memories a keyword matches by their speaker or by an entity that it names."""
        network = self._network
        if word not in self._speakers:
            # The first name is empty: no speaker is known.
            said = [bool(name) and word in name.casefold() for name in network.speakers]
            self._speakers[word] = np.array(said, dtype=np.bool_)
        matching: Array = self._speakers[word][network.slots["speaker"][slots]]
        if self._entities[word]:
            matching |= self._linked_with(word)[slots]
        return matching

    def _linked_with(self, word: str) -> Array:
        """Return, by slot, which nodes have a live link from or to an entity that a keyword names."""
        if word not in self._linked:
            network, table = self._network, self._network.links.rows
            linked = np.zeros(network.slots.count, dtype=np.bool_)
            for slot in network.slots_of(self._entities[word]).tolist():
                own, others = network.rows_from(slot), network.rows_to(slot)
                linked[table["target"][own[network.is_live(own)]]] = True
                linked[table["source"][others[network.is_live(others)]]] = True
            self._linked[word] = linked
        return self._linked[word]


def _are_in_range(network: Network, slots: Array, time_range: tuple[int | None, int | None]) -> Array:
    begin, end = time_range
    within = np.ones(len(slots), dtype=np.bool_)
    if begin is not None:
        within &= network.slots["created_at_ms"][slots] >= begin
    if end is not None:
        within &= network.slots["created_at_ms"][slots] < end
    return within


def _starts(network: Network, named: _Named) -> list[Start]:
    """Return where the search starts, each node once: what the keywords name, then the focus."""
    found: dict[NodeId, Start] = {}
    for start in named.starts() if network.parameters.focus_policy == "both" else ():
        found.setdefault(start.node_id, start)
    for position, node_id in enumerate((*network.focus, *network.entity_focus), start=1):
        found.setdefault(node_id, Start(node_id, position))
    return list(found.values())


def _follow(network: Network, relations: Sequence[str]) -> tuple[Follow, tuple[str, ...]]:
    """Return which links are followed, and the requested relations that neither a live link nor an entity has."""
    if not relations:
        return Follow(), ()
    folded_names = [fold_relation(name) for name in network.relations]
    numbers = np.zeros(len(network.relations), dtype=np.bool_)
    entities = np.zeros(network.slots.count, dtype=np.bool_)
    unknown: dict[str, None] = {}
    for name in relations:
        folded_name = fold_relation(name)
        own = np.array([one == folded_name for one in folded_names], dtype=np.bool_)
        entity = network.entity_of_key.get(entity_key(name))
        if entity is not None:
            entities[network.slot_of(entity)] = True
        elif not _is_in_use(network, own):
            unknown[name] = None
            continue
        numbers |= own
    if len(unknown) == len(set(relations)):
        return Follow(), tuple(unknown)
    return Follow(numbers, entities), tuple(unknown)


def _is_in_use(network: Network, numbers: Array) -> bool:
    """Return whether a live link has one of these relations."""
    if not numbers.any():
        return False
    relation = network.links.rows["relation"]
    for begin in range(0, len(relation), ROWS_AT_ONCE):
        rows = begin + np.flatnonzero(numbers[relation[begin : begin + ROWS_AT_ONCE]])
        if len(rows) and network.is_live(rows).any():
            return True
    return False


# --- matching ----------------------------------------------------------------------------------------------


class _Matcher:
    """Matches found memories against keywords, no more of them than necessary."""

    def __init__(self, network: Network, search: _Search, named: _Named) -> None:
        self._network = network
        self._search = search
        self._named = named
        self._has_results = False

    def first(self, most: int) -> Array:
        """Return the first `most` matching positions in order."""
        words, search = len(self._named.words), self._search
        search.widen(self._needed(max(1, most)))
        if not words:
            return search.found.first(search.allowed, most)
        tries, whole = FIRST_TRY * most, search.allowed[:0]
        while len(whole) < most:
            allowed = search.allowed
            if self._is_worth(tries, len(allowed)):
                # Memories that match every keyword precede all others.
                whole = self._matching_every(search.found.first(allowed, tries))
                tries *= GROWTH
            elif self._has_all():
                counts = self.counts(allowed)
                whole = self._by_count(allowed[counts > 0], counts[counts > 0], most)
                break
            else:
                whole = search.found.first(self._matching_every(allowed), most)
                if len(whole) < most:
                    search.widen(GROWTH * tries)
        self._has_results = len(whole) > 0
        return whole[:most]

    def _matching_every(self, places: Array) -> Array:
        """Return those of these positions that match every keyword."""
        for word in self._named.words:
            places = places[self._match(word, places)]
        return places

    def _is_worth(self, tries: int, most: int) -> bool:
        """Whether matching the best `tries` memories one by one costs less than matching all that were found."""
        return tries < most and self._network.texts.are_few(GROWTH * tries)

    @cached_property
    def _known(self) -> Array | None:
        """The slots of all memories that match, if all texts that contain a keyword are known."""
        if any(word not in self._named.in_texts for word in self._named.words):
            return None
        network = self._network
        slots = np.flatnonzero(network.slots["alive"] & ~network.slots["is_entity"])
        matching = np.zeros(len(slots), dtype=np.bool_)
        for word in self._named.words:
            matching |= self._named.matches(word, slots, self._named.in_texts[word][slots])
        return slots[matching]

    def _has_all(self) -> bool:
        """Return whether every memory in reach that matches a keyword was found."""
        found = self._search.found
        return found.is_whole or (self._known is not None and bool(np.isin(self._known, found.slots).all()))

    def _needed(self, most: int) -> int:
        """Return how many of the nearest memories to find first."""
        if not self._named.words:
            return most
        if self._known is None or len(self._known) >= most:
            return FIRST_TRY * most
        # All that match are results.
        return most if np.isin(self._known, self._search.starts).all() else self._network.node_count

    def _by_count(self, places: Array, counts: Array, most: int) -> Array:
        """Return the first `most` positions by the number of keywords matched, then in the order of paths."""
        found, missing = [places[:0]], most
        for count in range(len(self._named.words), 0, -1):
            if missing > 0:
                found.append(self._search.found.first(places[counts == count], missing))
                missing -= len(found[-1])
        return np.concatenate(found)

    def matches(self, places: Array) -> Array:
        """Return which of these positions match a keyword; all do without keywords."""
        matching = np.zeros(len(places), dtype=np.bool_)
        for word in self._named.words:
            matching |= self._match(word, places)
        return matching if self._named.words else ~matching

    def _match(self, word: str, places: Array) -> Array:
        slots = self._search.found.slots[places]
        matching = self._named.matches_without_text(word, slots)
        left = np.flatnonzero(~matching)
        texts, in_texts = self._network.texts, self._named.in_texts
        if word not in in_texts and texts.are_few(len(left)):
            matching[left] = texts.matches_each(slots[left], [folded(word)])
            return matching
        if word not in in_texts:
            in_texts[word] = texts.matches_all([folded(word)], self._network.slots.count)
        matching[left] = in_texts[word][slots[left]]
        return matching

    def counts(self, places: Array) -> Array:
        """Return the number of keywords that each of these positions matches."""
        counts = np.zeros(len(places), dtype=np.int64)
        for word in self._named.words:
            counts += self._match(word, places)
        return counts

    def counts_of_results(self, results: Array) -> list[int]:
        """Return the number of keywords that each result matches."""
        words = len(self._named.words)
        found: list[int] = self.counts(results).tolist() if words > 1 else [words] * len(results)
        return found

    @cached_property
    def matches_any(self) -> bool:
        """Whether any memory in reach matches."""
        return self._has_results or bool(self.matches(np.arange(len(self._search.found.slots))).any())

    def matching_in_order(self, places: Array, *, are_all: bool) -> Iterator[Array]:
        """Yield the matching ones of these positions in the order of results, a few at a time.

        Unless `are_all`, other memories may follow on weaker paths; yield only those that precede them.
        """
        words, found = len(self._named.words), self._search.found
        if words > 1:
            counts = self.counts(places)
            least = 1 if are_all else words
            yield from _stretches(
                self._by_count(places[counts >= least], counts[counts >= least], len(places))
            )
            return
        for stretch in _stretches(found.in_order(places)):
            matching = stretch[self.matches(stretch)]
            if len(matching):
                yield matching


# --- loose ends --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LooseEnds:
    """The sentences about forgotten memories: at most three, equal ones once."""

    network: Network
    follow: Follow
    named: _Named
    search: _Search
    matcher: _Matcher
    locale: str

    def sentences(self, results: Sequence[Node]) -> tuple[str, ...]:
        """Return the sentences of an answer with these memories."""
        found: dict[str, None] = {}
        for sentence in self._all(results):
            found.setdefault(sentence)
            if len(found) == LOOSE_ENDS:
                break
        return tuple(found)

    def _all(self, results: Sequence[Node]) -> Iterator[str]:
        yield from self._of_entities(results)
        dangling_count = self.network.slots["dangling_count"]
        are_memories = self.network.slots["alive"] & ~self.network.slots["is_entity"]
        in_all = int(np.count_nonzero(are_memories & (dangling_count > 0)))
        while True:
            # Most memories have no loose end, so the others are not matched.
            found = self.search.found
            with_dangling = np.flatnonzero(dangling_count[found.slots] > 0)
            are_all = found.is_whole or len(with_dangling) == in_all
            if len(with_dangling):
                yield from self._of_found(with_dangling, are_all=are_all)
            if are_all:
                return
            self.search.widen(self.network.node_count)

    def _of_found(self, with_dangling: Array, *, are_all: bool) -> Iterator[str]:
        """Yield the sentences about the dangling links of these found memories, as far as no other precedes them."""
        if self.matcher.matches_any:
            matching = self.matcher.matching_in_order(with_dangling, are_all=are_all)
            yield from self._of_memories(matching, with_order_names=False)
        elif not self.named.entities:
            stretches = _stretches(self.search.found.in_order(with_dangling))
            yield from self._of_memories(stretches, with_order_names=True)

    def _of_entities(self, results: Sequence[Node]) -> Iterator[str]:
        """Yield the sentences about entities that the keywords name; without keywords, about those in focus."""
        has_keywords, knows_more = bool(self.named.words), False
        entities = self.named.entities if has_keywords else self.network.entity_focus
        for entity_id in entities:
            slot = self.network.slot_of(entity_id)
            if not self.network.slots["dangling_count"][slot] or not len(self._dangling_rows(slot)):
                continue
            more = self._has_memories(slot)
            if more and (not has_keywords or knows_more or len(results) >= FEW_MEMORIES):
                continue
            knows_more |= more
            name = self.network.entities[entity_id].name
            yield word_entity(name, knows_more=more, is_chinese=self._is_chinese(name, results))

    def _is_chinese(self, name: str, results: Sequence[Node]) -> bool:
        if self.locale != "auto":
            return self.locale == "zh"
        return any(map(contains_han, (name, *self.named.words))) or any(
            contains_han(node.content) for node in results
        )

    def _has_memories(self, slot: int) -> bool:
        """Return whether a live link joins an entity with a living memory."""
        network, table = self.network, self.network.links.rows
        own = network.rows_from(slot)
        own = own[network.is_live(own)]
        if network.slots["alive"][table["target"][own]].any():
            return True
        others = network.rows_to(slot)
        return bool(network.is_live(others).any())

    def _dangling_rows(self, slot: int) -> Array:
        """Return the live followed links of a node to forgotten memories."""
        network = self.network
        rows = network.rows_from(slot)
        rows = rows[network.is_live(rows) & ~network.slots["alive"][network.links.rows["target"][rows]]]
        followed: Array = rows[self.follow.are_followed(network, rows)]
        return followed

    def _of_memories(self, stretches: Iterable[Array], *, with_order_names: bool) -> Iterator[str]:
        """Yield the sentences about the dangling links of memories, which come in their order."""
        network = self.network
        telling = np.array(
            [
                with_order_names or (name != "" and name.casefold() not in ORDER_NAMES)
                for name in network.relations
            ],
            dtype=np.bool_,
        )
        seen: set[tuple[int, bool]] = set()
        for stretch in stretches:
            for slot in self._first_of_each(self.search.found.slots[stretch], telling):
                has_han = bool(network.slots["has_han"][slot])
                rows = self._dangling_rows(slot)
                rows = rows[telling[network.links.rows["relation"][rows]]]
                states = [
                    (-round_strength(state.strength), -state.link.target, state.link.relation)
                    for state in network.link_states(rows)
                ]
                for _, _, relation in sorted(states):
                    kind = (network.relation_number(relation), has_han)
                    if kind not in seen:
                        seen.add(kind)
                        yield word_dangling(relation, _LIKE[has_han], self.locale)

    def _first_of_each(self, slots: Array, telling: Array) -> list[int]:
        """Return the first of these memories with each (relation, script) of dangling links, in order."""
        network, table = self.network, self.network.links.rows
        rank = np.zeros(network.slots.count, dtype=np.int32)
        rank[slots] = np.arange(1, len(slots) + 1)
        rows = network.links.of_sources(slots, rank > 0)
        if rows is None:
            rows = np.flatnonzero(rank[table["source"]])
        gone = ~network.slots["alive"][table["target"][rows]]
        rows = rows[gone & (table["now"][rows] >= network.parameters.link_break_threshold)]
        rows = rows[telling[table["relation"][rows]] & self.follow.are_followed(network, rows)]
        sources = table["source"][rows]
        kinds = table["relation"][rows].astype(np.int64) * 2 + network.slots["has_han"][sources]
        by_rank = np.argsort(rank[sources], kind="stable")
        first = by_rank[np.unique(kinds[by_rank], return_index=True)[1]]
        found: list[int] = slots[np.unique(rank[sources[first]]) - 1].tolist()
        return found


def _stretches(places: Array) -> Iterator[Array]:
    """Yield growing ranges: usually the first few suffice."""
    begin, size = 0, 16
    while begin < len(places):
        yield places[begin : begin + size]
        begin, size = begin + size, size * 8


_LIKE = {True: "忆", False: "a"}
"""Stand-ins for a content, of which only the script matters."""
