"""The lifetimes in docs/memory-model.md are those of the memory model, and its sentences are those of recall."""

from __future__ import annotations

import re

import pytest

from ebbtide.cli.commands import simulation
from ebbtide.memory.wording import _SENTENCES, word_dangling, word_entity
from ebbtide.parameters import AgentParameters
from tests.tidy.pages import read, rows

PAGE = "docs/memory-model.md"
ENOUGH_PASSES = 600


def lifetimes() -> list[list[str]]:
    """Return the rows of the table of lifetimes."""
    return [row for row in rows(read(PAGE), "## Parameters worth changing") if len(row) == 4]


@pytest.mark.parametrize("row", lifetimes(), ids=lambda row: "-".join(row[:2]))
def test_lifetimes_are_those_of_the_simulation(row: list[str]) -> None:
    """Each row gives the passes until a memory of 60 characters is first cut and until it is forgotten."""
    rate, factor, first_cut, gone = row
    curve = simulation.simulate(simulation.Case(float(rate), float(factor)), ENOUGH_PASSES)
    assert (curve.first_cut, curve.gone) == (int(first_cut), int(gone))


@pytest.mark.parametrize("characters", [20, 200])
def test_lifetimes_of_other_lengths(characters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of the page for shorter and longer memories are those of the default parameters."""
    told = dict(re.findall(r"(\d+) characters (?:are forgotten )?after (\d+)", read(PAGE)))
    monkeypatch.setattr(simulation, "CHARACTERS", characters)
    defaults = AgentParameters()
    case = simulation.Case(defaults.decay_rate, defaults.long_term_factor)
    assert simulation.simulate(case, ENOUGH_PASSES).gone == int(told[str(characters)])


def test_the_default_is_named() -> None:
    """The page states the correct defaults."""
    defaults = AgentParameters()
    assert re.search(rf"{defaults.decay_rate:g}\b[^|\n]{{0,60}}\b{defaults.long_term_factor:g}\b", read(PAGE))
    for name in ("decay_rate", "link_break_threshold", "delete_threshold", "focus_limit"):
        value = getattr(defaults, name)
        assert re.search(rf"{value:g}[^|.]{{0,20}} \(`{name}`\)|`{name}` \({value:g}\)", read(PAGE)), name


def test_sentences_about_forgotten_memories_are_those_of_recall() -> None:
    """The pages contain the sentences about forgotten memories byte for byte, docs/api.md all of them."""
    assert word_entity("Clara", knows_more=False, is_chinese=False) in read("README.md")
    assert word_dangling("Clara", "English", "en") in read(PAGE)
    sentences = {word_dangling(name, "", locale) for name in ("R", *_SENTENCES) for locale in ("en", "zh")}
    sentences |= {
        word_entity("X", knows_more=more, is_chinese=zh) for more in (True, False) for zh in (True, False)
    }
    assert [one for one in sentences if f"`{one}`" not in read("docs/api.md")] == []
