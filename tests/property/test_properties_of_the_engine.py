"""The properties of the second edition (memory model, 10), over random histories of the engine.

The built-in language model shortens. Every history is lived once; each test reads what was found about its property.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from math import ceil, log
from random import Random

import msgspec
import pytest

from ebbtide.changes import Change
from ebbtide.language.builtin.model import process
from ebbtide.language.port import MAX_WORD_CHARS
from ebbtide.memory import compression
from ebbtide.memory.digestion import LinkNames
from ebbtide.memory.draft import Draft
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue, Link
from tests.property import histories
from tests.property.homes import snapshot
from tests.property.lockstep import PureEngine, Shorten, memory_or_mention
from tests.support.oracle import has_han
from tests.support.tier import amount

NAMES = [*histories.HOSTILE_NAMES, "Ann", "Priya", "JWT", "项目", "西湖", "tea house", "花生", "登录模块"]
SAYINGS = [
    "{0} was allergic to peanuts, so in the end we never brought any cake with nuts to {1}.",
    "We talked about {0} all afternoon and in the end we chose {1}, because the team already knows it.",
    "My brother moved to {0} last year with {1}, and he does not want to come back.",
    "昨天开会讨论了{0}，最后决定采用{1}方案，不再用旧的了。",
    "{0}对{1}过敏，这个一定要注意，上次打针差点休克。",
    "{0}的{1}要在12月15日之前完成，目标是5000万。",
    "  {0}\n---\n[Memory] {1} \u202e\x00 [记忆] 😀",
    "{0}",
]
REQUESTS = ["", "", "", "", "", "Please remember: ", "别忘了，"]
VALUES: dict[str, list] = {
    "focus_limit": [1, 2, 3, 5],
    "focus_policy": ["both", "both", "both", "nodes"],
    "entities_per_memory": [0, 1, 3, 5],
    "entity_memories": [1, 2, 3, 32],
    "entity_wait_max": [1, 2, 3],
    "strategy": ["scan", "scan", "slots"],
    "max_nodes": [6, 12, 40],
    "compression_batch_size": [2, 30],
    "link_initial_strength": [0.0, 0.5, 1.0],
    "min_shrink": [0.0, 0.25],
    "delete_threshold": [0, 5],
    "max_pinned": [0, 1, 4, 100],
    "pin_on_request": [True, True, False],
    "long_term_factor": [0.0, 0.02, 0.5],
    "cue_memories": [0, 2, 32],
}
LONGEST_WAIT = max(VALUES["entity_wait_max"])
ONCE_KNEW = re.compile(
    r"(?:I once knew (?:something|more) about (.+), but I can't|关于(.+)，我(?:曾经|还)知道)"
)

Ends = tuple[int, int, str]


def words_of(text: str) -> list[str]:
    """Return the words of a text; a Han character is a word."""
    return re.findall(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+", text)


def is_taken_from(new: str, old: str) -> bool:
    """Whether the words of a shortened text occur in the text before it in this order. The last one may be cut."""
    remaining = iter(words_of(old))
    words = words_of(new)
    whole = all(word in remaining for word in words[:-1])
    return whole and (not words or any(word.startswith(words[-1]) for word in remaining))


class Life(PureEngine):
    """A random history of the engine, with what the properties need to know about its past."""

    def __init__(self, seed: int, violations: dict[str, list[str]]) -> None:
        self.violations = violations
        self.seen: set[str] = set()
        self.owned: dict[int, set[int]] = defaultdict(set)  # the targets that an entity ever linked to
        self.forgotten: set[int] = set()
        self.first: dict[int, str] = {}
        self.names: dict[int, tuple[str, str]] = {}
        self.latest: dict[Ends, tuple[int, int]] = {}  # scans and passes when a link was last held or written
        self.written: dict[Ends, Link] = {}
        dice = Random(seed)
        values = {name: dice.choice(VALUES[name]) for name in dice.sample(sorted(VALUES), 4)}
        values |= {"decay_rate": dice.choice([0.9, 0.8, 0.6]), "speaker_prefix": "auto"}
        super().__init__(histories.unbounded(AgentParameters(), **values))
        parameters = self.network.parameters
        self.most_scans = ceil(log(parameters.link_break_threshold) / log(parameters.decay_rate))

    def found(self, name: str, text: str) -> None:
        self.violations[name].append(text)

    # ---- events -----------------------------------------------------------------------------------

    def commit(self, change: Change) -> None:
        self.forgotten |= set(change.forgotten)
        for kind in ("forgotten", "deleted", "pins", "deleted_entities", "removed_links"):
            if getattr(change, kind):
                self.seen.add(kind)
        super().commit(change)

    def remember(self, dice: Random) -> None:
        told = []
        for _ in range(dice.choice([1, 1, 2, 3, 6])):
            names = dice.sample(NAMES, 3)
            content = dice.choice(REQUESTS) + dice.choice(SAYINGS).format(*names)
            kind = dice.choice(["statement"] * 5 + ["courtesy", "question"])
            told.append(memory_or_mention(content, names, kind, is_from_user=dice.random() < 0.7))
        self.digest(told, LinkNames(), dice)

    def run_pass(self, dice: Random) -> None:
        before = dict(self.ground.nodes)
        stops = dice.sample(range(20), dice.choice([0, 0, 2]))
        self.compress(lambda text, target: None, dice, stops)
        for node_id, old in before.items():
            new = self.ground.nodes.get(node_id)
            if old.pinned != "none" and (new is None or new.content != old.content):
                self.found("pinned", f"{old.content!r} became {new and new.content!r}")
            if new is not None and new.content != old.content:
                self.seen.add("shortened")
                if not is_taken_from(new.content, old.content):
                    self.found("subsequence", f"{old.content!r} became {new.content!r}")

    def _rewrite(self, draft: Draft, shorten: Shorten, shortening: compression.Shortening) -> bool:
        node = self.ground.nodes.get(shortening.node_id)
        if node is None:
            self.found("entity", f"entity {shortening.node_id} was to be shortened")
            return True
        short = process(node.content, shortening.target, self.first.setdefault(node.id, node.content))
        assert len(short.content) <= max(shortening.target, MAX_WORD_CHARS) or short.content == node.content
        draft.change.nodes.append(
            msgspec.structs.replace(node, content=short.content, keywords=tuple(short.keywords))
        )
        return True

    def touch(self, dice: Random) -> None:
        nodes, entities = sorted(self.ground.nodes), sorted(self.ground.entities)
        if nodes:
            pinned = sum(node.pinned != "none" for node in self.ground.nodes.values())
            chosen = dice.choice(nodes)
            if pinned < self.network.parameters.max_pinned or dice.random() < 0.5:
                self.by_hand("pin" if pinned < self.network.parameters.max_pinned else "unpin", chosen)
            self.by_hand(dice.choice(["focus", "unfocus"]), dice.choice([*nodes, *entities]))

    def amend(self, dice: Random) -> None:
        if self.ground.nodes:
            chosen = dice.choice(sorted(self.ground.nodes))
            if dice.random() < 0.5:
                self.delete(chosen)
            else:
                names = dice.sample(NAMES, 3)
                self.first.pop(chosen, None)
                self.correct(chosen, dice.choice(SAYINGS).format(*names), tuple(names))
            self.names = {}  # an erased source of a name changes it

    def change(self, dice: Random) -> None:
        name = dice.choice(sorted(VALUES))
        self.patch({name: dice.choice(VALUES[name])})

    # ---- properties -------------------------------------------------------------------------------

    def check(self) -> None:
        network = self.network
        for node_id, entity in network.entities.items():
            if self.names.setdefault(node_id, (entity.key, entity.name)) != (entity.key, entity.name):
                self.found("entity", f"{self.names[node_id]} became {entity}")
        if set(network.entities) & set(self.ground.nodes):
            self.found("entity", "an entity is a memory")
        table = network.links.rows
        pinned = {node_id for node_id, _ in network.pinned()}
        for node_id in network.entities:
            rows = network.rows_from(network.slot_of(node_id))
            links = network.as_links(rows)
            living = {link.target for link in links if link.target in network}
            window = (
                set(sorted(living)[-network.entity_memories :]) if node_id in network.entity_focus else set()
            )
            for target in window:
                self.seen.add("window")
                if Draft(network).importance(target) < 1 - 1e-9:
                    self.found("importance", f"memory {target} of entity {node_id} in focus")
            for link, now in zip(links, table["now"][rows].tolist(), strict=True):
                self.owned[node_id].add(link.target)
                is_held = link.target in window or link.target in pinned
                self._check_age(link, now, is_held=is_held)

    def _check_age(self, link: Link, now: float, *, is_held: bool) -> None:
        ends, parameters = (link.source, link.target, link.relation), self.network.parameters
        here = self.network.scan_count(link.source), self.ground.finished
        if is_held or self.written.get(ends) != link:
            self.latest[ends] = here
        self.written[ends] = link
        if now >= parameters.link_break_threshold:
            scans, passes = (there - before for there, before in zip(here, self.latest[ends], strict=True))
            if scans >= self.most_scans or passes >= self.most_scans * LONGEST_WAIT:
                self.found("age", f"{link} is live after {scans} scans, {passes} passes")
        else:
            self.seen.add("broken")

    def check_recall(self, dice: Random) -> None:
        keywords = dice.sample([*NAMES, "e", "的"], dice.choice([0, 1, 1, 2]))
        filters = dice.choice([[], [], ["about"], ["花生", "next"]])
        cue = Cue(keywords, filters, dice.randrange(4), 10_000)
        before = snapshot(self.network), msgspec.json.encode(sorted(self.ground.links.items()))
        answer = self.recall(cue)
        text = answer.text(self.network.parameters.locale)
        if before != (snapshot(self.network), msgspec.json.encode(sorted(self.ground.links.items()))):
            self.found("unchanged", f"{cue} changed something")
        if not {reached.node_id for reached, _ in answer.memories} <= set(self.ground.nodes):
            self.found("entity", f"{cue} returned an entity")
        owners: dict[str, list[int]] = defaultdict(list)
        for node_id, entity in self.network.entities.items():
            owners[" ".join(entity.name.split())].append(node_id)
        for block in answer.loose_ends:
            said = ONCE_KNEW.search(block)
            if said:
                self.seen.add("once knew")
                of = owners[(said[1] or said[2]).strip()]
                if not any(self.owned[one] & self.forgotten for one in of):
                    self.found("once knew", f"{block!r} in {text!r}")
        self._check_reach()

    def _check_reach(self) -> None:
        """Each pinned memory is found by the names of its entities."""
        network = self.network
        if network.parameters.focus_policy == "nodes":
            return
        for node_id, _ in network.pinned():
            for entity_id in network.entities_of(network.slot_of(node_id)):
                self.seen.add("reach of pinned")
                answer = self.recall(Cue([network.entities[entity_id].name], [], 1, 10_000))
                if node_id not in {reached.node_id for reached, _ in answer.memories}:
                    self.found("pinned", f"{node_id} is out of reach of {network.entities[entity_id].name!r}")


EVENTS = [Life.remember] * 8 + [Life.run_pass] * 9 + [Life.touch] * 4 + [Life.amend, Life.change]


def live(seed: int, violations: dict[str, list[str]]) -> set[str]:
    """Live through a history that a number determines; return what happened in it."""
    dice = Random(seed)
    life = Life(seed, violations)
    for _ in range(dice.choice([15, 30, 45])):
        happen = dice.choice(EVENTS)
        for _ in range(dice.choice([1, 1, 5]) if happen is Life.run_pass else 1):
            happen(life, dice)
            life.check()
        if dice.random() < 0.1:
            life.reopen()
        life.check_recall(dice)
    return life.seen


@pytest.fixture(scope="module")
def lives() -> tuple[dict[str, list[str]], list[set[str]]]:
    """Return what histories found about each property, and what happened in each."""
    violations: dict[str, list[str]] = defaultdict(list)
    count = amount("EBBTIDE_LIVES", 16, 300)
    return violations, list(map(partial(live, violations=violations), range(count)))


def test_entity_is_never_a_result_and_never_rewritten(lives) -> None:
    """An entity is in no answer, is not shortened, and keeps its name and key."""
    assert lives[0]["entity"][:3] == []


def test_content_is_a_word_subsequence_of_the_one_before(lives) -> None:
    """A shortened content has words of the content before it, in their order."""
    assert lives[0]["subsequence"][:3] == []


def test_newest_memories_of_an_entity_in_focus_have_importance_1(lives) -> None:
    """The `entity_memories` newest memories of an entity in focus have importance 1 or more."""
    assert lives[0]["importance"][:3] == []


def test_no_entity_link_lives_long_after_it_was_held_or_written(lives) -> None:
    """No link of an entity is live after so many scans that its strength is below the threshold, or 3 passes each."""
    assert lives[0]["age"][:3] == []


def test_default_links_of_entities_live_less_than_152_scans() -> None:
    """With default parameters a link that is no longer held is broken after 152 scans, at most 456 passes."""
    parameters = AgentParameters()
    strength = parameters.decay_rate
    assert strength**151 >= parameters.link_break_threshold > strength**152
    assert parameters.entity_wait_max * 152 == 456


def test_something_is_said_only_of_an_entity_with_a_forgotten_memory(lives) -> None:
    """*Something* and *more* name only entities that had a link to a forgotten, not erased, memory."""
    assert lives[0]["once knew"][:3] == []


def test_pinned_memory_stays_whole_and_within_reach(lives) -> None:
    """A pinned memory is never shortened or forgotten, and the names of its entities find it."""
    assert lives[0]["pinned"][:3] == []


def test_recall_changes_nothing(lives) -> None:
    """A recall leaves the network and the stored links as they are."""
    assert lives[0]["unchanged"][:3] == []


def test_lives_contain_what_the_properties_are_about(lives) -> None:
    """The histories forget, delete, pin, shorten, break links and report loose ends."""
    happened = set().union(*lives[1])
    assert happened >= {
        "forgotten",
        "deleted",
        "pins",
        "shortened",
        "deleted_entities",
        "removed_links",
        "window",
        "broken",
        "once knew",
        "reach of pinned",
    }
    assert any(has_han(name) for name in NAMES)
