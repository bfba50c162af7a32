"""A plain-dictionary implementation of the memory model page.

Section numbers in the comments are those of the page. Nothing is cached: every call recomputes importance and paths.
Comments that start with CHOICE name the interpretation chosen where the page allows more than one.
"""

import dataclasses
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class OracleParameters:
    """The per-agent parameters of section 7 that this model needs."""

    focus_limit: int = 5
    strategy: str = "scan"
    max_nodes: int = 10000
    decay_rate: float = 0.97
    compression_batch_size: int = 100
    link_initial_strength: float = 0.5
    slot_sample_size: int = 16
    link_break_threshold: float = 0.01
    long_term_factor: float = 0.02
    delete_threshold: int = 5
    default_search_depth: int = 2
    min_shrink: float = 0.25
    max_search_results: int = 100
    locale: str = "auto"
    max_owed_passes: int = 100


@dataclass
class OracleRewrite:
    """One recorded rewrite of a node's content (5, step 4)."""

    pass_number: int
    importance: float
    length_before: int
    length_after: int


@dataclass
class OracleNode:
    """A node (1), as far as it can be observed here."""

    content: str
    first_content: str
    keywords: list[str]
    original_length: int
    scan_count: int = 0
    last_scan_pass: int = 0  # number of the pass of the latest scan; 0 = never scanned
    rewrites: list[OracleRewrite] = field(default_factory=list)  # the latest 16


@dataclass
class OracleLink:
    """The stored half of a link (3): what was written, and when."""

    strength_written: float
    scan_count_when_written: int


@dataclass
class OracleAnswer:
    """The result of a recall: (id, path strength) in order, and the text form."""

    results: list[tuple[int, float]]
    text: str


# 6: 上文/previous and 下文/next are equal, in stored names and in filters.
EQUAL_RELATIONS = {"previous": "上文", "next": "下文"}

# 6: a Han character.
# CHOICE: a code point whose Unicode script is Han.
HAN_RANGES = [
    (0x2E80, 0x2E99),
    (0x2E9B, 0x2EF3),
    (0x2F00, 0x2FD5),  # radicals
    (0x3005, 0x3005),
    (0x3007, 0x3007),  # 々 〇
    (0x3021, 0x3029),
    (0x3038, 0x303B),  # Hangzhou numerals, 〻
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFA6D),
    (0xFA70, 0xFAD9),
    (0x16FE2, 0x16FE3),
    (0x16FF0, 0x16FF1),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B739),
    (0x2B740, 0x2B81D),
    (0x2B820, 0x2CEA1),
    (0x2CEB0, 0x2EBE0),
    (0x2EBF0, 0x2EE5D),
    (0x2F800, 0x2FA1D),
    (0x30000, 0x3134A),
    (0x31350, 0x323AF),
]


def has_han(text: str) -> bool:
    """Whether the text contains a Han character."""
    return any(first <= ord(c) <= last for c in text for first, last in HAN_RANGES)


def round12(value: float) -> float:
    """Return the value rounded to 12 significant digits."""
    return float(f"{value:.12g}")


def relation_key(relation: str) -> str:
    """Return the key of a relation name; two names are equal for a filter if their keys are equal (6)."""
    folded = relation.casefold()
    return EQUAL_RELATIONS.get(folded, folded)


def one_space(content: str) -> str:
    """Replace every run of white space by one space (6, text form)."""
    # CHOICE: str.isspace() defines white space. A run at either end becomes one space too; nothing is stripped.
    return re.sub(r"\s+", " ", content)


class Oracle:
    """The memory of one agent. It starts empty (1)."""

    def __init__(self, parameters: OracleParameters):
        self.parameters = dataclasses.replace(parameters)
        self.next_id = 1
        self.pass_number = 0
        self.owed = 0
        self.nodes: dict[int, OracleNode] = {}
        self.focus: list[int] = []  # newest first
        self.link_records: dict[tuple[int, int, str], OracleLink] = {}

    # ---- 3. Strength and decay ------------------------------------------------------

    def strength(self, source: int, target: int, relation: str) -> float:
        """Return the current strength of an existing link. Raise KeyError if there is no such link.

        A link whose source is in focus counts 1.0. A broken link keeps its number.
        """
        link = self.link_records[(source, target, relation)]
        if source in self.focus:
            return 1.0
        scans = self.nodes[source].scan_count - link.scan_count_when_written
        return link.strength_written * self.parameters.decay_rate**scans

    def put_link(self, source: int, target: int, relation: str, strength: float) -> None:
        """Write a link at this strength now; an existing one gets the new strength."""
        self.link_records[(source, target, relation)] = OracleLink(
            strength_written=strength,
            scan_count_when_written=self.nodes[source].scan_count,
        )

    def is_live(self, key: tuple[int, int, str]) -> bool:
        """Whether the link's source exists and its strength is not below the threshold (2).

        Its target may be forgotten: such a link is live and dangles (3).
        """
        # CHOICE: a broken link is kept, so lowering the threshold makes it live again.
        source, target, relation = key
        if source not in self.nodes:
            return False
        return self.strength(source, target, relation) >= self.parameters.link_break_threshold

    def links(self) -> dict[tuple[int, int, str], float]:
        """Return all links that still exist, including broken and dangling ones, with their current strength."""
        return {key: self.strength(*key) for key in self.link_records}

    def leave_focus(self, node_id: int) -> None:
        """Remove the node from focus, and write all its links as 1.0 at that moment (3)."""
        self.focus.remove(node_id)
        for source, target, relation in list(self.link_records):
            if source == node_id:
                self.put_link(source, target, relation, 1.0)

    def cut_focus(self) -> None:
        """Remove the oldest nodes from focus until at most focus_limit remain (4.5; 5.1, lowered limit)."""
        while len(self.focus) > self.parameters.focus_limit:
            self.leave_focus(self.focus[-1])

    def forget(self, node_id: int) -> None:
        """Delete the node and its outgoing links; links that point at it stay (3)."""
        for key in list(self.link_records):
            if key[0] == node_id:
                del self.link_records[key]
        del self.nodes[node_id]

    def erase(self, node_id: int) -> None:
        """Delete the node, even from focus. Raise KeyError if there is none."""
        if node_id in self.focus:
            self.focus.remove(node_id)
        self.forget(node_id)

    def patch(self, **changes) -> None:
        """Change parameters.

        A changed decay_rate first re-anchors every link at its present strength (3).
        Lowered limits take effect at the next pass or batch (5.1).
        """
        # CHOICE: a patch to the current value is no change: nothing is re-anchored.
        if "decay_rate" in changes and changes["decay_rate"] != self.parameters.decay_rate:
            for source, target, relation in list(self.link_records):
                now = self.strength(source, target, relation)
                self.put_link(source, target, relation, now)
        self.parameters = dataclasses.replace(self.parameters, **changes)

    # ---- 2. Importance --------------------------------------------------------------

    def links_to(self, node_id: int) -> list[tuple[int, int, str]]:
        """Return the links that point at the node, live or broken."""
        return [key for key in self.link_records if key[1] == node_id]

    def importance(self, node_id: int) -> float:
        """Return the sum of the strengths of the live links that point at the node."""
        return math.fsum(self.strength(*key) for key in self.links_to(node_id) if self.is_live(key))

    # ---- 4. Remember ----------------------------------------------------------------

    def remember(
        self,
        segments: list[tuple[str, list[str]]],
        *,
        neighbour_names: tuple[str, str],
        relate: Callable[[int, int], str],
        rng: random.Random,
    ) -> list[int]:
        """Digest one batch of (content, keywords), in text order. Return the ids of the new nodes."""
        # 4.1: no segment at all: no node, no pass.
        # CHOICE: a batch that ends here does not cut the focus to a lowered limit either.
        if not segments:
            return []

        # 5.1: a lowered focus_limit takes effect, before step 3.
        self.cut_focus()

        # Step 3: create nodes.
        new_ids: list[int] = []
        for content, keywords in segments:
            if self.parameters.strategy == "slots":
                self.remove_least_important(self.parameters.max_nodes - 1, new_ids, rng)
            self.nodes[self.next_id] = OracleNode(
                content=content,
                first_content=content,
                keywords=list(keywords),
                original_length=len(content),
            )
            new_ids.append(self.next_id)
            self.next_id += 1

        # Step 3: link neighbours in text order, both ways.
        earlier_to_later, later_to_earlier = neighbour_names
        for earlier, later in zip(new_ids, new_ids[1:]):
            initial = self.parameters.link_initial_strength
            self.put_link(earlier, later, earlier_to_later, initial)
            self.put_link(later, earlier, later_to_earlier, initial)

        # Step 5 will put these in focus, newest first.
        entering = list(reversed(new_ids))[: self.parameters.focus_limit]

        # Step 4: link to focus, both ways, 1.0, one name. If the focus is empty, the nodes that step 5 will
        # put in focus replace it for the other nodes of the batch.
        # CHOICE: this applies to any batch that finds an empty focus, not only to the first: the focus may
        # have been erased.
        if self.focus:
            partners = list(self.focus)
            to_link = list(new_ids)
        else:
            partners = entering
            to_link = [node_id for node_id in new_ids if node_id not in entering]
        for i, new_id in enumerate(new_ids):
            if new_id not in to_link:
                continue
            for j, partner in enumerate(partners):
                name = relate(i, j)
                self.put_link(new_id, partner, name, 1.0)
                self.put_link(partner, new_id, name, 1.0)

        # Step 5: update focus; the oldest leave, and their links are written as 1.0.
        self.focus = entering + self.focus
        self.cut_focus()

        # Step 6: one more pass is owed; above max_owed_passes they merge (5.3).
        # CHOICE: the limit applies here, when a pass is added, and not in patch(). Only the added pass is
        # merged: if more are owed than a lowered limit allows, these stay owed ("none merged" when they were
        # added).
        self.owed = max(self.owed, min(self.owed + 1, self.parameters.max_owed_passes))
        return new_ids

    # ---- 5.1 slots: room for nodes --------------------------------------------------

    def remove_least_important(self, most: int, batch: list[int], rng: random.Random) -> None:
        """Forget nodes, one draw each, until at most `most` live or no more may be removed.

        Each draw removes the least important of slot_sample_size random nodes that are neither in focus nor in the
        batch; among equals the one with the lowest id.
        """
        while len(self.nodes) > most:
            candidates = [
                node_id
                for node_id in sorted(self.nodes)
                if node_id not in self.focus and node_id not in batch
            ]
            if not candidates:
                return
            sample = rng.sample(candidates, min(self.parameters.slot_sample_size, len(candidates)))
            # CHOICE: importances are compared without rounding.
            self.forget(min(sample, key=lambda node_id: (self.importance(node_id), node_id)))

    # ---- 5. Compression -------------------------------------------------------------

    def compress(
        self,
        *,
        shorten: Callable[[str, int], str | None],
        rng: random.Random,
        keywords_of: Callable[[str], list[str]] | None = None,
    ) -> None:
        """Run one complete pass.

        shorten(first_content, target) returns a text of at most `target` characters, or None if no server answered.
        keywords_of(content) returns the keywords that come with a rewrite.
        """
        # CHOICE: a requested pass runs whether or not one is owed.
        self.pass_number += 1

        # 5.1: lowered limits take effect first.
        self.cut_focus()
        if self.parameters.strategy == "slots":
            self.remove_least_important(self.parameters.max_nodes, [], rng)

        for node_id in self.order_of_pass(rng):
            self.visit(node_id, shorten, keywords_of)

        self.owed = max(self.owed - 1, 0)

    def order_of_pass(self, rng: random.Random) -> list[int]:
        """Return the nodes that this pass visits, in order (5.1)."""
        if self.parameters.strategy == "slots":
            candidates = [node_id for node_id in sorted(self.nodes) if node_id not in self.focus]
            drawn = rng.sample(candidates, min(self.parameters.compression_batch_size, len(candidates)))
            return sorted(drawn, key=lambda node_id: (round12(self.importance(node_id)), node_id))
        due = [node_id for node_id in self.nodes if self.is_due(node_id)]
        return sorted(due, key=lambda node_id: (self.nodes[node_id].scan_count, node_id))

    def is_due(self, node_id: int) -> bool:
        """Whether the node is due in the current pass (5.1, scan)."""
        node = self.nodes[node_id]
        if node.scan_count == 0:
            return True
        # CHOICE: the current long_term_factor counts, not that of the last scan.
        # CHOICE: the product is floored without a tolerance; the 1e-9 of section 2 does not apply.
        wait = 1 + math.floor(node.scan_count * self.parameters.long_term_factor)
        return self.pass_number >= node.last_scan_pass + wait

    def visit(
        self,
        node_id: int,
        shorten: Callable[[str, int], str | None],
        keywords_of: Callable[[str], list[str]] | None = None,
    ) -> None:
        """Apply the five steps of a pass to one node (5)."""
        # Step 1.
        if node_id in self.focus:
            return

        # Step 2. Importance is the current one: sources scanned earlier in this pass have their new scan count, and
        # nodes forgotten in it have no links.
        node = self.nodes[node_id]
        importance = self.importance(node_id)
        if importance == 0:
            self.forget(node_id)
            return
        if importance < 1 - 1e-9:
            target = math.floor(node.original_length * min(importance, 1) + 1e-9)

            # Step 3.
            if target < self.parameters.delete_threshold:
                self.forget(node_id)
                return

            # Step 4.
            # CHOICE: plain float64, no tolerance; a target equal to the length of the content is rewritten if
            # min_shrink is 0.
            # CHOICE: without keywords_of the node keeps its keywords.
            if target <= (1 - self.parameters.min_shrink) * len(node.content):
                shorter = shorten(node.first_content, target)
                # Server failure: the content stays, the scan counts.
                if shorter is not None:
                    assert len(shorter) <= target, "shorten() gave more than it was asked for"
                    node.rewrites.append(
                        OracleRewrite(self.pass_number, importance, len(node.content), len(shorter))
                    )
                    node.rewrites = node.rewrites[-16:]
                    node.content = shorter
                    if keywords_of is not None:
                        node.keywords = keywords_of(shorter)

        # Step 5: protected nodes too.
        node.scan_count += 1
        node.last_scan_pass = self.pass_number

    # ---- 6. Recall ------------------------------------------------------------------

    def dangling(self, node_id: int) -> list[tuple[int, str]]:
        """Return the (target, relation) of the node's live links whose target was forgotten.

        Strongest first (12 significant digits), then target id descending, then relation.
        """
        keys = [
            key
            for key in self.link_records
            if key[0] == node_id and key[1] not in self.nodes and self.is_live(key)
        ]
        keys.sort(key=lambda key: (-round12(self.strength(*key)), -key[1], key[2]))
        return [(target, relation) for _, target, relation in keys]

    def strongest_from(self, focus_id: int, depth: int, allowed: Callable[[str], bool]) -> dict[int, float]:
        """Return the strongest path of at most `depth` hops to each node that this focus reaches with it."""
        best = {focus_id: 1.0}
        for _ in range(depth):
            one_hop_more = dict(best)
            for key in self.link_records:
                source, target, relation = key
                if source not in best or target not in self.nodes:
                    continue
                if not self.is_live(key) or not allowed(relation):
                    continue
                path = best[source] * self.strength(*key)
                if target not in one_hop_more or path > one_hop_more[target]:
                    one_hop_more[target] = path
            best = one_hop_more
        return best

    def matches(self, node_id: int, keywords: list[str]) -> bool:
        """Whether any keyword occurs, casefolded, in content or a keyword of the node; true without keywords."""
        if not keywords:
            return True
        node = self.nodes[node_id]
        return any(
            keyword.casefold() in text.casefold()
            for keyword in keywords
            for text in [node.content, *node.keywords]
        )

    def is_zh(self, node_id: int) -> bool:
        """Whether a block that comes from this node is in Chinese."""
        if self.parameters.locale == "auto":
            return has_han(self.nodes[node_id].content)
        return self.parameters.locale == "zh"

    def memory_block(self, node_id: int) -> str:
        """Return the text form of a memory."""
        prefix = "[记忆] " if self.is_zh(node_id) else "[Memory] "
        return prefix + one_space(self.nodes[node_id].content)

    def dangling_block(self, node_id: int, relation: str) -> str:
        """Return the sentence for a dangling link of this node."""
        # CHOICE: the relation is printed as stored: white space runs are for content only.
        if self.is_zh(node_id):
            if relation:
                return f"[记忆] 它有个{relation}，但我想不起来了"
            return "[记忆] 与某个已遗忘的事物有关联"
        if relation:
            return f'[Memory] There was something it "{relation}", but I can\'t recall it'
        return "[Memory] It was linked to something now forgotten"

    def recall(
        self,
        keywords: list[str],
        relations: list[str],
        depth: int,
        max_results: int | None = None,
    ) -> OracleAnswer:
        """Recall by keywords and relations. Change nothing.

        max_results replaces max_search_results if it is given.
        """
        # Empty focus: empty result.
        if not self.focus:
            return OracleAnswer(results=[], text="")

        allowed_keys = {relation_key(relation) for relation in relations}

        def allowed(relation: str) -> bool:
            return not relations or relation_key(relation) in allowed_keys

        # Reach from each focus separately, the newest first.
        reached = [self.strongest_from(focus_id, depth, allowed) for focus_id in self.focus]

        # The strongest path of each node, and the newest focus among its strongest paths.
        # CHOICE: paths are equally strong if they agree in 12 significant digits.
        # CHOICE: this includes focus nodes: one that a newer focus reaches at 1.0 takes that focus's
        # position.
        path_strength: dict[int, float] = {}
        position: dict[int, int] = {}
        for best in reached:
            for node_id, value in best.items():
                path_strength[node_id] = max(value, path_strength.get(node_id, value))
        for node_id, value in path_strength.items():
            position[node_id] = min(
                place
                for place, best in enumerate(reached)
                if node_id in best and round12(best[node_id]) == round12(value)
            )

        # Order: path strength, position, id descending.
        visited = sorted(
            path_strength,
            key=lambda node_id: (
                -round12(path_strength[node_id]),
                position[node_id],
                -node_id,
            ),
        )
        matching = [node_id for node_id in visited if self.matches(node_id, keywords)]

        # With a relation filter focus nodes themselves are not results.
        results = [node_id for node_id in matching if not (relations and node_id in self.focus)]
        limit = self.parameters.max_search_results if max_results is None else max_results
        if limit == 0:
            limit = 10000  # 7: 0 = 10000
        results = results[:limit]

        # Dangling links: of the matching nodes, or, without a match, of the others visited; equal sentences
        # once, at most 3.
        # CHOICE: keywords alone decide what matches: a matching focus node that the relation filter excludes
        # from the results counts, and so does a matching node beyond the maximum.
        sentences: list[str] = []
        for node_id in matching if matching else visited:
            for _, relation in self.dangling(node_id):
                if allowed(relation):
                    sentence = self.dangling_block(node_id, relation)
                    if sentence not in sentences:
                        sentences.append(sentence)
        sentences = sentences[:3]

        blocks = [self.memory_block(node_id) for node_id in results] + sentences
        return OracleAnswer(
            results=[(node_id, path_strength[node_id]) for node_id in results],
            text="\n---\n".join(blocks),
        )
