"""Events in the life of a memory: strategies shared by the property tests.

Contents consist of a few words, scripts and kinds of white space, so that keywords match, case folding matters and
lengths fall on every side of the thresholds; some are arbitrary. Parameters include extreme values. `small` makes
`max_nodes` far smaller than a daemon would accept, because small numbers find more errors.
"""

from __future__ import annotations

import os
from dataclasses import fields
from random import Random

from hypothesis import settings
from hypothesis import strategies as st

from ebbtide.parameters import AgentParameters
from tests.support.second_edition.records import Parameters
from tests.support.tier import IS_ALL

WORDS = [
    "tea", "Tea", "TEA house", "Ann", "river", "straße", "STRASSE", "ﬁsh", "İstanbul", "naïve", "Ω",
    "猫", "猫喜欢鱼", "北京", "茶馆", "今天下雨", "我们去了西湖边的茶馆", "〇", "々", "カナ", "한글",
    "---", "[记忆] ", "[Memory] ", "它有个", "😀", "n1",
]  # fmt: skip
GAPS = ["", "", " ", " ", "  ", "\n", "\n---\n", "\t", "\u3000", "\u00a0 ", "\x1c", "\u2028", "，", ". "]
NAMES = [
    "", "", "next", "previous", "Next", "PREVIOUS", "上文", "下文", "因果", "朋友", "friend of",
    "Friend Of", "straße", "STRASSE", "a",
]  # fmt: skip

HOSTILE_NAMES = [
    "İstanbul", "ﬁsh's", "《红楼梦》", "红楼梦", "a\u200bb", "𠮷野家", "\x1cx ab", "cafés", "Café", "Straße", "STRASSE",
    "C++", "node.js", "(x y", "'s", "…", "AT&T's", "5000万", "[email]", "[email:ab12]", "10%", "ſun", "sun", "x" * 31,
    "Boss's's", "Ann\nLee", "\n---\n", "关于", "it", "\u202eAnn", "e\u0301a", "أحمد", "한글", "ﷺ", "ẞoo", "ǅ ab",
    "〇〇", "U.S.", "U.S", "news", "glass", "ties", "Windows 10", "[记忆] x", " tea  house ", "TEA HOUSES",
]  # fmt: skip
"""Keywords of unusual scripts, marks and white space; some are equal when normalised, some are no names."""

ORACLE_FIELDS = [field.name for field in fields(Parameters)]


def examples(count: int, *, steps: int | None = None) -> settings:
    """Return settings with so many examples in `make test-all`, a tenth of them in `make test`.

    The profile `thorough` has ten times as many.
    """
    is_thorough = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
    factor = 10 if is_thorough else 1 if IS_ALL else 0.1
    more = {} if steps is None else {"stateful_step_count": steps}
    return settings(max_examples=max(1, int(count * factor)), **more)


def _content(seed: int) -> str:
    dice = Random(seed)
    size = dice.choice([0, 1, 5, 10, 19, 20, 21, 40, 60, 80])
    text = ""
    while len(text) < size:
        text += dice.choice(GAPS) + dice.choice(WORDS)
    return text[:size]


def batch_from(seed: int) -> list[tuple[str, list[str]]]:
    """Return the batch that a number determines; histories consist mostly of these."""
    dice = Random(seed)
    return [
        (_content(dice.randrange(10**6)), dice.sample(WORDS, dice.randrange(4)))
        for _ in range(dice.choice([1, 2, 3, 5, 8]))
    ]


# Unassigned code points are left out: whether one counts as Han is undefined.
texts = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=80)
contents = st.one_of(
    st.integers(0, 10**6).map(_content),
    st.lists(st.tuples(st.sampled_from(GAPS), st.sampled_from(WORDS)), max_size=24).map(
        lambda pieces: "".join(gap + word for gap, word in pieces)[:80]
    ),
    st.sampled_from(["", " ", "\n\n", "a", "猫" * 80, "tea " * 20, "x" * 19, "x" * 20]),
    texts,
)
keywords = st.lists(st.sampled_from([*WORDS, "", "te", "SS", "喜欢", " "]), max_size=3)
segments = st.lists(st.tuples(contents, keywords), max_size=8)
many_batches = st.lists(st.integers(0, 10**6).map(batch_from), min_size=1, max_size=6)

# Relation names are one line, which the callers of the memory ensure.
single_line = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), max_size=8)
relation_names = st.lists(st.one_of(st.sampled_from(NAMES), single_line), min_size=1, max_size=7)

cues = st.fixed_dictionaries(
    {
        "keywords": st.lists(st.sampled_from([*WORDS, "", "E", "ss", "湖", " ", "x"]), max_size=3),
        "relations": st.one_of(
            st.just([]), st.lists(st.sampled_from([*NAMES, "FRIEND OF", "ſ"]), max_size=3)
        ),
        "depth": st.integers(0, 8),
        "max_results": st.one_of(st.none(), st.integers(0, 6)),
    }
)

SHARES = [0.0, 0.01, 0.25, 0.5, 0.9, 1.0]
VALUES: dict[str, list] = {
    "focus_limit": [1, 2, 3, 5, 64],
    "strategy": ["scan", "slots"],
    "decay_rate": [1.0, 0.97, 0.9, 0.8, 0.5, 0.3, 0.05, 1e-3, 1e-9],
    "link_initial_strength": SHARES,
    "link_break_threshold": [0.0, 0.01, 0.01, 0.3, 0.5, 1.0],
    "delete_threshold": [0, 1, 5, 10, 50, 1000],
    "min_shrink": SHARES,
    "max_nodes": [1, 3, 8, 14, 20, 40],
    "compression_batch_size": [1, 3, 12, 100],
    "slot_sample_size": [1, 2, 6],
    "long_term_factor": [0.0, 0.02, 0.3, 0.5, 1.0],
    "max_search_results": [0, 1, 3, 20],
    "locale": ["auto", "zh", "en"],
    "max_owed_passes": [1, 2, 6, 100],
    "focus_policy": ["both", "both", "nodes"],
    "entities_per_memory": [0, 1, 3, 5],
    "entity_memories": [1, 2, 32],
    "entity_wait_max": [1, 2, 3],
    "cue_memories": [0, 1, 32],
    "max_pinned": [0, 1, 100],
}
"""Values for every parameter that the memory model reads: extremes and values near the default."""

RANGES = {
    "focus_limit": st.integers(1, 64),
    "decay_rate": st.floats(0, 1, exclude_min=True, allow_subnormal=False),
    "link_initial_strength": st.floats(0, 1),
    "link_break_threshold": st.floats(0, 1),
    "delete_threshold": st.integers(0, 100),
    "min_shrink": st.floats(0, 1),
    "long_term_factor": st.floats(0, 1),
}


def parameter_values(*, small: bool) -> dict[str, st.SearchStrategy]:
    """Return a strategy for every parameter that the memory model reads."""
    values = {
        name: st.one_of(st.sampled_from(known), RANGES.get(name, st.sampled_from(known)))
        for name, known in VALUES.items()
    }
    return values if small else {**values, "max_nodes": st.integers(164, 300)}


def changes(*, small: bool = True) -> st.SearchStrategy[dict]:
    """Return some parameters with new values."""
    values = parameter_values(small=small)
    names = st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=4, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: values[name] for name in chosen}))


def changes_from(dice: Random) -> dict[str, object]:
    """Like `changes`, drawn with a generator, for long histories."""
    return {name: dice.choice(VALUES[name]) for name in dice.sample(sorted(VALUES), dice.randint(1, 3))}


def cue_from(dice: Random) -> dict[str, object]:
    """Return a cue drawn with a generator."""
    return {
        "keywords": dice.sample(["tea", "ß", "猫", "E", "x", "湖", ""], dice.choice([0, 0, 1, 2])),
        "relations": dice.sample(NAMES[1:], dice.choice([0, 0, 1, 3])),
        "depth": dice.randint(0, 8),
        "max_results": dice.choice([None, None, 0, 1, 4]),
    }


def starting_changes(*, small: bool = True) -> st.SearchStrategy[dict]:
    """Return the parameters of a new agent, mostly with fast forgetting, so that short histories cover everything."""
    gentle = st.fixed_dictionaries({})
    brisk = st.fixed_dictionaries(
        {
            "decay_rate": st.sampled_from([0.9, 0.8, 0.6]),
            "focus_limit": st.integers(1, 4),
            "delete_threshold": st.integers(0, 6),
            "strategy": st.sampled_from(["scan", "scan", "slots"]),
            "max_nodes": st.integers(2, 14) if small else st.integers(164, 300),
        }
    )
    return st.one_of(brisk, brisk, gentle, changes(small=small))


def unbounded(parameters: AgentParameters, **updates: object) -> AgentParameters:
    """Return the parameters with these values, ignoring the bounds."""
    return parameters.model_copy(update=updates)


def for_oracle(parameters: AgentParameters) -> Parameters:
    """Return the same values for the oracle."""
    return Parameters(**{name: getattr(parameters, name) for name in ORACLE_FIELDS})


def shorten(text: str, target: int, salt: int = 0) -> str | None:
    """Return at most `target` characters from either end of a text; None simulates an unavailable server."""
    mood = (len(text) * 7 + target * 3 + salt) % 11
    if salt and mood == 0:
        return None
    length = max(0, target - mood % 3)
    return text[:length] if mood % 2 else text[len(text) - length :]


def keywords_for(content: str) -> list[str]:
    """Return the keywords of a shortened content."""
    return [content[:2], content[-3:].upper()]
