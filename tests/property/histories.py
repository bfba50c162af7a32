"""What can happen to a memory: strategies shared by the property tests.

Contents are built from a few words, scripts and kinds of white space, so that keywords hit, case folding
matters and lengths land on every side of the thresholds; now and then any text at all. Parameters are drawn
with their extremes. `small` makes `max_nodes` far smaller than a daemon would accept (the bound
`focus_limit + 100` only keeps room for victims): small numbers find more.
"""

from __future__ import annotations

import os
from dataclasses import fields

from hypothesis import settings
from hypothesis import strategies as st

from ebbtide.parameters import AgentParameters
from tests.support.oracle import OracleParameters

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

DECAY_RATES = [1.0, 0.97, 0.9, 0.8, 0.5, 0.3, 0.05, 1e-3, 1e-9]
ORACLE_FIELDS = [field.name for field in fields(OracleParameters)]


def examples(count: int, *, steps: int | None = None) -> settings:
    """So many examples under `ci`, ten times as many under `thorough`."""
    factor = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1
    more = {} if steps is None else {"stateful_step_count": steps}
    return settings(max_examples=count * factor, **more)


def _joined(pieces: list[tuple[str, str]]) -> str:
    return "".join(gap + word for gap, word in pieces)[:80]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
contents = st.one_of(
    st.lists(st.tuples(st.sampled_from(GAPS), st.sampled_from(WORDS)), max_size=24).map(_joined),
    st.lists(st.tuples(st.sampled_from(GAPS), st.sampled_from(WORDS)), min_size=8, max_size=24).map(_joined),
    st.sampled_from(["", " ", "\n\n", "a", "猫" * 80, "tea " * 20, "x" * 19, "x" * 20]),
    texts,
)
keywords = st.lists(st.sampled_from([*WORDS, "", "te", "SS", "喜欢", " "]), max_size=3)
segments = st.lists(st.tuples(contents, keywords), max_size=8)

# Relation names are one line: whoever names them sees to that before they reach the memory.
single_line = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), max_size=8)
relation_names = st.lists(st.one_of(st.sampled_from(NAMES), single_line), min_size=1, max_size=7)

cues = st.fixed_dictionaries(
    {
        "keywords": st.lists(st.sampled_from([*WORDS, "", "E", "ss", "湖", " ", "x"]), max_size=3),
        "relations": st.one_of(st.just([]), st.lists(st.sampled_from([*NAMES, "FRIEND OF", "ſ"]), max_size=3)),
        "depth": st.integers(0, 8),
        "max_results": st.one_of(st.none(), st.integers(0, 6)),
    }
)

shares = st.one_of(st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.9, 1.0]), st.floats(0, 1))


def parameter_values(*, small: bool) -> dict[str, st.SearchStrategy]:
    """A strategy for every parameter that the memory model reads."""
    return {
        "focus_limit": st.one_of(st.integers(1, 6), st.integers(1, 64)),
        "strategy": st.sampled_from(["scan", "slots"]),
        "decay_rate": st.one_of(
            st.sampled_from(DECAY_RATES), st.floats(0, 1, exclude_min=True, allow_subnormal=False)
        ),
        "link_initial_strength": shares,
        "link_break_threshold": st.one_of(st.sampled_from([0.0, 0.01, 0.01, 0.3, 0.5, 1.0]), st.floats(0, 1)),
        "delete_threshold": st.one_of(st.integers(0, 10), st.integers(0, 100)),
        "min_shrink": shares,
        "max_nodes": st.integers(1, 14) if small else st.integers(164, 300),
        "compression_batch_size": st.integers(1, 12),
        "slot_sample_size": st.integers(1, 6),
        "long_term_factor": shares,
        "max_search_results": st.one_of(st.just(0), st.integers(1, 20)),
        "locale": st.sampled_from(["auto", "zh", "en"]),
        "max_owed_passes": st.integers(1, 6),
    }


def changes(*, small: bool = True) -> st.SearchStrategy[dict]:
    """Some parameters with new values."""
    values = parameter_values(small=small)
    names = st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=4, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: values[name] for name in chosen}))


def starting_changes(*, small: bool = True) -> st.SearchStrategy[dict]:
    """Parameters of a new agent. Mostly a memory that forgets soon, so that short histories see it all."""
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
    return st.one_of(gentle, brisk, brisk, changes(small=small))


def unbounded(parameters: AgentParameters, **updates: object) -> AgentParameters:
    """The parameters with these values, whatever the bounds say."""
    return parameters.model_copy(update=updates)


def for_oracle(parameters: AgentParameters) -> OracleParameters:
    """The same values for the oracle."""
    return OracleParameters(**{name: getattr(parameters, name) for name in ORACLE_FIELDS})


def shorten(text: str, target: int, salt: int = 0) -> str | None:
    """At most `target` characters of a text: from either end, sometimes fewer; None where no server answered."""
    mood = (len(text) * 7 + target * 3 + salt) % 11
    if salt and mood == 0:
        return None
    length = max(0, target - mood % 3)
    return text[:length] if mood % 2 else text[len(text) - length :]


def keywords_for(content: str) -> list[str]:
    """The keywords that come with a rewrite."""
    return [content[:2], content[-3:].upper()]
